"""How far a run is, from storage alone."""

from dataclasses import dataclass

from csl_dist.audit.revision import AuditStore
from csl_dist.config import CNN, RunConfig
from csl_dist.predict.trajectories import TrajectoryStore
from csl_dist.run import feature_storage
from csl_dist.storage.paths import RunPaths
from csl_dist.storage.run_file import read_run_file, read_run_videos
from csl_dist.storage.url import Storage, key_part
from csl_dist.training.record import current_folder, epochs_with
from csl_dist.types import Split


@dataclass(frozen=True, slots=True, kw_only=True)
class StageStatus:
    """Units done of all; `total` is 0 where it is not known yet."""

    stage: str
    done: int
    total: int


def run_status(root: str) -> list[StageStatus]:
    """One line per stage, in order."""
    run = read_run_file(root)
    config = run.config
    paths = RunPaths(Storage(root))
    records = feature_storage(config).list_keys(f"{run.encoder}/records/videos")
    extracted = {key.rsplit("/", 1)[1].split("@")[0] for key in records}
    held_out = {key_part(v.id) for v in read_run_videos(paths.root) if v.split is not Split.TRAIN}
    lines = [StageStatus(stage="extract", done=len(extracted), total=run.num_to_extract)]
    for scorer, num_epochs in _trained_epochs(config).items():
        done = sum(
            min(num_epochs, len(epochs_with(current_folder(paths, scorer, fold))))
            for fold in run.folds
        )
        total = num_epochs * len(run.folds)
        lines.append(StageStatus(stage=f"train {scorer}", done=done, total=total))
        if scorer not in config.scorers:
            continue
        published = TrajectoryStore(paths.scorer(scorer)).published_fingerprints()
        # Copies of videos, predicted for calibration, are not counted.
        done = len(held_out & published.keys())
        lines.append(StageStatus(stage=f"audit {scorer}", done=done, total=run.num_held_out))
    audits = AuditStore(paths)
    newest = audits.newest()
    lines.append(StageStatus(stage="flags", done=int(newest is not None), total=1))
    if run.has_known_errors:
        measured = newest is not None and audits.metrics(newest) is not None
        lines.append(StageStatus(stage="metrics", done=int(measured), total=1))
    return lines


def _trained_epochs(config: RunConfig) -> dict[str, int]:
    """Epochs of every training, that of an adapted encoder first."""
    trained = [name for name, scorer in config.scorers.items() if scorer.train]
    epochs = dict.fromkeys(trained, config.train.epochs)
    adapt = config.features.adapt
    if adapt is None:
        return epochs
    own = {CNN: adapt.epochs}
    return own | epochs | own
