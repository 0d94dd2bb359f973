"""Trainings that a run root holds, also those of earlier configs."""

from collections.abc import Iterator
from dataclasses import dataclass

from csl_dist.config import CNN
from csl_dist.storage.paths import RunPaths
from csl_dist.storage.run_file import read_run_file
from csl_dist.storage.url import Storage
from csl_dist.training.checkpoints import CheckpointInfo, CheckpointStore
from csl_dist.training.opened import current_checkpoints


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTraining:
    """The checkpoints that one training of a scorer and fold has published."""

    scorer: str
    fold: int
    training: str
    is_current: bool
    """Whether an audit uses it: it is the one that was asked for last."""
    checkpoints: CheckpointStore
    infos: list[CheckpointInfo]


def stored_trainings(root: str) -> Iterator[StoredTraining]:
    """All trainings under a run root, also those of earlier configs."""
    run = read_run_file(root)
    paths = RunPaths(Storage(root))
    adapted = [CNN] if run.config.features.adapt else []
    for scorer in dict.fromkeys([*adapted, *run.config.scorers]):
        for fold in run.folds:
            keys = paths.fold(scorer, fold).list_keys("checkpoints")
            current = current_checkpoints(paths, scorer, fold)
            for training in sorted({key.split("/")[1] for key in keys}):
                store = CheckpointStore(paths.checkpoints(scorer, fold, training))
                yield StoredTraining(
                    scorer=scorer,
                    fold=fold,
                    training=training,
                    is_current=store == current,
                    checkpoints=store,
                    infos=store.infos(),
                )
