"""What a training has left in storage: which one it is, its epochs, what they measured.

Read without torch, for those who look at a run and compute nothing.
"""

from dataclasses import dataclass, field
from typing import Any

from csl_dist.storage.paths import RunPaths
from csl_dist.storage.requests import at_once
from csl_dist.storage.url import Storage

NO_TRAINING = "none"
META = "meta.json"
"""Of a checkpoint; written last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRecord:
    """Which training of a scorer and fold an audit uses, and what it was trained on."""

    training: str
    settings: str = ""
    """Fingerprint of model, classes and settings; empty where checkpoints were imported."""
    videos: dict[str, str] = field(default_factory=dict)
    """Fingerprint of each training video's labels and features."""


def training_record(folder: Storage) -> TrainingRecord:
    """Which training the folder of a scorer and fold names."""
    return folder.read_json(RunPaths.TRAINING, lambda content: TrainingRecord(**content))


def current_training(paths: RunPaths, scorer: str, fold: int) -> str:
    """The training of a scorer and fold that was asked for last."""
    folder = paths.fold(scorer, fold)
    if not folder.exists(RunPaths.TRAINING):
        return NO_TRAINING
    return training_record(folder).training


def current_folder(paths: RunPaths, scorer: str, fold: int) -> Storage:
    """The checkpoints of the training asked for last; an empty folder where there was none."""
    return paths.checkpoints(scorer, fold, current_training(paths, scorer, fold))


def epoch_name(epoch: int) -> str:
    return f"epoch-{epoch:04d}"


def epochs_with(folder: Storage, file: str = META) -> list[int]:
    """Epochs that have a file, in order; by default those that are published. A single listing."""
    names = (key for key in folder.list_keys() if key.endswith(f"/{file}"))
    return sorted(int(name.split("/")[0].removeprefix("epoch-")) for name in names)


def metrics_of(folder: Storage) -> list[dict[str, float]]:
    """What was measured in every published epoch, in order."""
    keys = [f"{epoch_name(epoch)}/{META}" for epoch in epochs_with(folder)]
    return at_once(lambda key: folder.read_json(key, _metrics), keys)


def _metrics(info: dict[str, Any]) -> dict[str, float]:
    return dict(info["metrics"])
