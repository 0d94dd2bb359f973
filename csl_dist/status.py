"""How far a run is, from storage alone."""

from dataclasses import dataclass

from csl_dist.layout import RunLayout
from csl_dist.run import current_checkpoints, read_run_config
from csl_dist.storage import Storage
from csl_dist.trajectories import TrajectoryStore


@dataclass(frozen=True, slots=True, kw_only=True)
class StageStatus:
    """Units done of all; `total` is 0 where it is not known yet."""

    stage: str
    done: int
    total: int


def run_status(root: str) -> list[StageStatus]:
    """One line per stage, in order."""
    config = read_run_config(root)
    layout = RunLayout(Storage(root))
    facts = layout.root.read_json(RunLayout.RUN)
    features = Storage(config.features.store) if config.features.store else layout.features
    extracted = {
        key.split("/records/videos/")[1].split("@")[0]
        for key in features.list_keys()
        if "/records/videos/" in key
    }
    lines = [StageStatus(stage="extract", done=len(extracted), total=facts["num_to_extract"])]
    num_epochs = config.train.epochs * facts["num_folds"]
    for scorer in config.scorers:
        done = sum(
            min(
                config.train.epochs,
                len(current_checkpoints(layout, scorer, fold).published_epochs()),
            )
            for fold in range(facts["num_folds"])
        )
        lines.append(StageStatus(stage=f"train {scorer}", done=done, total=num_epochs))
        done = len(TrajectoryStore(layout.scorer(scorer)).published_fingerprints())
        lines.append(StageStatus(stage=f"audit {scorer}", done=done, total=facts["num_scored"]))
    outputs = {"flags": RunLayout.FLAGS}
    if facts["has_known_errors"]:
        outputs["metrics"] = RunLayout.METRICS
    for name, key in outputs.items():
        lines.append(StageStatus(stage=name, done=int(layout.root.exists(key)), total=1))
    return lines
