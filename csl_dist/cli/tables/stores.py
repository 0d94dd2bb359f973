"""What the stores of a run hold."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from csl_dist.cli.tables.plain import headed_table

if TYPE_CHECKING:
    from csl_dist.features.catalog import CatalogEntry
    from csl_dist.training.catalog import StoredTraining


def feature_table(entries: Sequence["CatalogEntry"]) -> Table:
    """What a feature store holds; `repeated` frames could not be decoded."""
    numbers = ("frames", "MiB", "repeated")
    table = headed_table("encoder", "video", "version", *numbers, numbers=numbers)
    for entry in entries:
        stored = entry.stored
        facts = (f"{stored.num_frames:,}", str(len(stored.repeated) or "")) if stored else ("…", "")
        size = f"{entry.num_bytes / 2**20:,.1f}"
        table.add_row(entry.encoder, entry.video, entry.fingerprint, facts[0], size, facts[1])
    total = sum(entry.num_bytes for entry in entries)
    table.caption = f"{len(entries)} entries, {total / 2**20:,.1f} MiB; … is not finished"
    return table


def training_table(trainings: Sequence["StoredTraining"]) -> Table:
    """Trainings under a run root; those that an audit uses are marked."""
    numbers = ("epochs", "last", "trained on", "loss")
    table = headed_table("scorer", "fold", "training", "used", *numbers, numbers=numbers)
    for training in trainings:
        last = training.infos[-1] if training.infos else None
        loss = last.metrics.get("train_loss") if last else None
        table.add_row(
            training.scorer,
            str(training.fold),
            training.training,
            "yes" if training.is_current else "",
            str(len(training.infos)),
            str(last.epoch) if last else "",
            f"{len(last.train_ids)} videos" if last else "",
            f"{loss:.4f}" if loss is not None else "",
        )
    return table
