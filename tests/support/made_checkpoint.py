"""What is known of a checkpoint that nobody trained."""

from dataclasses import replace

from csl_dist.training.checkpoints import CheckpointInfo
from csl_dist.training.models import ModelSpec

SPEC = ModelSpec(name="transformer", arguments={"preset": "tiny"}, num_features=8, num_classes=4)


def checkpoint(**changes: object) -> CheckpointInfo:
    info = CheckpointInfo(
        scorer="transformer",
        fold=0,
        epoch=1,
        model=SPEC,
        classes=("a", "b", "c", "d"),
        class_weights=(1.0,) * 4,
        train_ids=("x", "y"),
        encoder="e",
        training="t",
        metrics={},
        content_hash="h",
    )
    return replace(info, **changes)
