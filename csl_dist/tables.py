"""Tables for the terminal."""

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.table import Table

from csl_dist.catalog import CatalogEntry
from csl_dist.check import SplitSummary
from csl_dist.plan import StagePlan
from csl_dist.records import ErrorKind
from csl_dist.status import StageStatus
from csl_dist.trainings import StoredTraining


def metrics_table(metrics: dict[str, Any]) -> Table:
    """`metrics.json` in the layout of the paper's tables, in percent."""
    title = (
        f"Known errors found: {metrics['videos']} videos, {metrics['frames']:,} frames, "
        f"{metrics['checkpoints']} checkpoints"
    )
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left")
    table.add_column("error")
    table.add_column("scorer")
    for heading in ("EDA top 10 %", "AUC final", "AUC CSL", "AUC smoothed"):
        table.add_column(heading, justify="right")
    for kind in ErrorKind:
        rows = [(s, m[kind]) for s, m in metrics["scorers"].items() if kind in m]
        best = max((m["auc_smoothed"] or 0.0 for _, m in rows), default=None)
        for scorer, m in rows:
            names = ("eda_top_10", "auc_final", "auc_csl", "auc_smoothed")
            cells = ["-" if m[name] is None else f"{100 * m[name]:.1f}" for name in names]
            if m["auc_smoothed"] == best:
                cells[-1] = f"[bold]{cells[-1]}[/]"
            table.add_row(kind, scorer, *cells, end_section=scorer == rows[-1][0])
    return table


def dataset_table(lines: Sequence[SplitSummary]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("split")
    for heading in ("videos", "hours", "frames"):
        table.add_column(heading, justify="right")
    for line in lines:
        table.add_row(
            line.split, f"{line.num_videos:,}", f"{line.hours:.2f}", f"{line.num_frames:,}"
        )
    return table


def class_table(classes: Sequence[str], lines: Sequence[SplitSummary]) -> Table:
    """Frames of each class in each split."""
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("frames of class")
    for line in lines:
        table.add_column(line.split, justify="right")
    for i, name in enumerate(classes):
        table.add_row(name, *(f"{line.class_frames_C[i]:,}" for line in lines))
    return table


def feature_table(entries: Sequence[CatalogEntry]) -> Table:
    """What a feature store holds; `repeated` frames could not be decoded."""
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("encoder", "video", "version"):
        table.add_column(heading)
    for heading in ("frames", "MiB", "repeated"):
        table.add_column(heading, justify="right")
    for entry in entries:
        stored = entry.stored
        facts = (f"{stored.num_frames:,}", str(len(stored.repeated) or "")) if stored else ("…", "")
        size = f"{entry.num_bytes / 2**20:,.1f}"
        table.add_row(entry.encoder, entry.video, entry.fingerprint, facts[0], size, facts[1])
    total = sum(entry.num_bytes for entry in entries)
    table.caption = f"{len(entries)} entries, {total / 2**20:,.1f} MiB; … is not finished"
    return table


def training_table(trainings: Sequence[StoredTraining]) -> Table:
    """Trainings under a run root; those that an audit uses are marked."""
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("scorer", "fold", "training", "used"):
        table.add_column(heading)
    for heading in ("epochs", "last", "trained on", "loss"):
        table.add_column(heading, justify="right")
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


def status_table(lines: Sequence[StageStatus]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("stage")
    table.add_column("done", justify="right")
    table.add_column("of", justify="right")
    for line in lines:
        table.add_row(line.stage, f"{line.done:,}", f"{line.total:,}")
    return table


def plan_table(stages: Sequence[StagePlan]) -> Table:
    """What each stage of a planned run takes, and all of them."""
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("stage")
    for heading in ("units", "PFLOP", "GB", "hours"):
        table.add_column(heading, justify="right")
    table.add_column("limited by")
    for stage in stages:
        table.add_row(
            stage.stage,
            f"{stage.num_units:,}",
            f"{stage.flops / 1e15:,.1f}",
            f"{stage.num_bytes / 1e9:,.1f}",
            f"{stage.hours:,.2f}",
            stage.limit,
            end_section=stage is stages[-1],
        )
    table.add_row(
        "all",
        f"{sum(stage.num_units for stage in stages):,}",
        f"{sum(stage.flops for stage in stages) / 1e15:,.1f}",
        f"{sum(stage.num_bytes for stage in stages) / 1e9:,.1f}",
        f"{sum(stage.hours for stage in stages):,.2f}",
    )
    return table
