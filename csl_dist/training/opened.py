"""RunCheckpoints: the checkpoints that a run's audits use, each described once."""

from collections.abc import Mapping
from dataclasses import asdict

import numpy as np

from csl_dist.config import CNN
from csl_dist.errors import NotReadyError
from csl_dist.features.encoders import encoder_spec
from csl_dist.features.source import FeatureSource
from csl_dist.features.store import FeatureEntry, FeatureStore
from csl_dist.run import Run, feature_storage
from csl_dist.storage.paths import RunPaths
from csl_dist.strategies import Strategy
from csl_dist.training.checkpoints import CheckpointInfo, CheckpointStore, require_fit
from csl_dist.training.record import (
    NO_TRAINING,
    TrainingRecord,
    current_folder,
    current_training,
    training_record,
)
from csl_dist.training.scorers import num_epochs, train_config
from csl_dist.types import FloatArray, fingerprint


class RunCheckpoints:
    """The checkpoints of every scorer and fold: those of the training that was asked for last."""

    def __init__(self, run: Run):
        self._run = run
        self._stores: dict[tuple[str, int], CheckpointStore] = {}

    def __repr__(self) -> str:
        return f"RunCheckpoints({self._run.paths.root.url!r})"

    def store(self, scorer: str, fold: int) -> CheckpointStore:
        """The checkpoints of a scorer and fold; none where there was no training yet."""
        if (scorer, fold) not in self._stores:
            training = current_training(self._run.paths, scorer, fold)
            store = CheckpointStore(self._run.paths.checkpoints(scorer, fold, training))
            if training == NO_TRAINING:
                return store  # there may be one the next time
            self._stores[scorer, fold] = store
        return self._stores[scorer, fold]

    def current(self, scorer: str, fold: int) -> TrainingRecord | None:
        """The training that was asked for last; None where there was none."""
        folder = self._run.paths.fold(scorer, fold)
        if not folder.exists(RunPaths.TRAINING):
            return None
        return training_record(folder)

    def use(
        self,
        scorer: str,
        fold: int,
        training: str,
        *,
        settings: str = "",
        videos: Mapping[str, str] | None = None,
    ) -> CheckpointStore:
        """Makes a training the one that audits use from now on."""
        record = TrainingRecord(training=training, settings=settings, videos=dict(videos or {}))
        folder = self._run.paths.fold(scorer, fold)
        folder.put_json_if_changed(RunPaths.TRAINING, asdict(record))
        store = CheckpointStore(self._run.paths.checkpoints(scorer, fold, training))
        if self._stores.get((scorer, fold)) != store:
            self._stores[scorer, fold] = store
        return self._stores[scorer, fold]

    def infos(
        self, scorer: str, fold: int, source: FeatureSource, strategy: Strategy = "full"
    ) -> list[CheckpointInfo]:
        """The checkpoints that a strategy picks, which must fit the features and classes."""
        infos = self.store(scorer, fold).select(strategy, num_epochs(self._run.config, scorer))
        require_fit(infos, scorer, encoder=source.encoder, classes=self._run.dataset.classes)
        return infos

    def class_weights(self, scorer: str, fold: int) -> FloatArray:
        """Weights (C,) of the loss in a fold's training."""
        first = self.store(scorer, fold).first()
        if first is None:
            raise NotReadyError(f"scorer {scorer!r} has no checkpoints yet; run `csl train`")
        return np.array(first.class_weights)

    def adapted_encoder(self, fold: int, base: FeatureSource) -> CheckpointInfo:
        """The last checkpoint of the encoder that was adapted to a fold."""
        epochs = train_config(self._run.config, CNN).epochs
        infos = self.infos(CNN, fold, base)
        if len(infos) < epochs:
            raise NotReadyError(
                f"the encoder of fold {fold} is adapted up to epoch {len(infos)} of {epochs}; "
                "run `csl extract`"
            )
        return infos[-1]

    def adapted_features(self, fold: int, base: FeatureStore) -> FeatureStore:
        """The store of the encoder adapted to a fold; its features may not be there yet."""
        encoder = fingerprint(base.encoder, self.adapted_encoder(fold, base).content_hash)
        entries = {
            video.id: FeatureEntry(
                video=video.id, fingerprint=fingerprint(encoder, base.fingerprint(video.id))
            )
            for video in self._run.dataset.videos
        }
        config = self._run.config
        width = encoder_spec(config.features).width
        return FeatureStore(feature_storage(config), encoder, entries, width)


def current_checkpoints(paths: RunPaths, scorer: str, fold: int) -> CheckpointStore:
    """The checkpoints of the training that was asked for last; none where there was none."""
    return CheckpointStore(current_folder(paths, scorer, fold))
