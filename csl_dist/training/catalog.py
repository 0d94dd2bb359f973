"""The trainings of a run: list those that storage holds, and bring some from elsewhere."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from csl_dist.errors import ConfigError
from csl_dist.run import CNN, Run, current_checkpoints
from csl_dist.storage.paths import RunLayout
from csl_dist.storage.run_file import read_run_config
from csl_dist.storage.url import Storage
from csl_dist.training.checkpoints import CheckpointInfo, CheckpointStore
from csl_dist.training.imported import epoch_files, import_checkpoints
from csl_dist.training.train import class_counts, class_weights
from csl_dist.types import FloatArray, Split, fingerprint


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

    def infos_with_weights(self) -> list[CheckpointInfo]:
        """Those whose weights `checkpoints.keep` has not deleted."""
        loadable = set(self.checkpoints.loadable_epochs())
        return [info for info in self.infos if info.epoch in loadable]


def stored_trainings(root: str) -> Iterator[StoredTraining]:
    """All trainings under a run root, also those of earlier configs."""
    config = read_run_config(root)
    layout = RunLayout(Storage(root))
    num_folds = layout.root.read_json(RunLayout.RUN)["num_folds"]
    adapted = [CNN] if config.features.adapt else []
    for scorer in dict.fromkeys([*adapted, *config.scorers]):
        for fold in range(num_folds):
            keys = layout.fold(scorer, fold).list_keys("checkpoints")
            current = current_checkpoints(layout, scorer, fold)
            for training in sorted({key.split("/")[1] for key in keys}):
                store = CheckpointStore(layout.checkpoints(scorer, fold, training))
                yield StoredTraining(
                    scorer=scorer,
                    fold=fold,
                    training=training,
                    is_current=store == current,
                    checkpoints=store,
                    infos=store.infos(),
                )


def import_training(
    run: Run, scorer: str, fold: int, pattern: str, train_ids: Sequence[str]
) -> list[CheckpointInfo]:
    """Makes state dicts the checkpoints that audits of a scorer and fold use from now on."""
    if scorer not in run.config.scorers:
        names = ", ".join(run.config.scorers)
        raise ConfigError(f"the config has no scorer {scorer!r}; its scorers are {names}")
    if run.config.scorers[scorer].train:
        raise ConfigError(
            f"scorer {scorer!r} is trained by `csl train`, which would replace what is imported; "
            f"set scorers.{scorer}.train: false"
        )
    if fold >= len(run.dataset.folds):
        raise ConfigError(f"there is no fold {fold}; the run has {len(run.dataset.folds)}, from 0")
    files = epoch_files(pattern)
    model = run.model_spec(scorer)
    contents = {e: hashlib.sha256(path.read_bytes()).hexdigest() for e, path in files.items()}
    training = fingerprint("imported", model, run.dataset.classes, contents, sorted(train_ids))
    store = CheckpointStore(run.layout.checkpoints(scorer, fold, training))
    imported = import_checkpoints(
        store,
        files,
        scorer=scorer,
        fold=fold,
        model=model,
        classes=run.dataset.classes,
        class_weights=_class_weights(run, train_ids).tolist(),
        train_ids=train_ids,
        encoder=run.features_of(scorer, fold).encoder,
        training=training,
    )
    infos = list(imported)
    run.layout.fold(scorer, fold).put_json(RunLayout.TRAINING, {"training": training})
    return infos


def _class_weights(run: Run, train_ids: Sequence[str]) -> FloatArray:
    """Weights by the labels of the training videos; ones where the dataset does not have them."""
    if not train_ids or not set(train_ids) <= {video.id for video in run.dataset.videos}:
        return np.ones(len(run.dataset.classes))
    annotations = run.annotations(train_ids, Split.TRAIN)
    return class_weights(class_counts(annotations, len(run.dataset.classes)))
