"""Run: a configuration with its dataset and stores; what every stage starts from."""

import platform
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version

import numpy as np
import torch

from csl_dist.config import ENSEMBLE, RunConfig, ScorerConfig, TrainConfig, config_as_dict
from csl_dist.data.layouts import Dataset, open_dataset, read_errors
from csl_dist.data.planted import Corruption, corrupted, planted_kinds
from csl_dist.errors import ConfigError, NotReadyError
from csl_dist.features.brought import ready_features, uses_ready_features
from csl_dist.features.encoders import FEATURE_WIDTH, encoder_fingerprint, output_width
from csl_dist.features.sources import SourceVideo, source_videos
from csl_dist.features.store import FeatureEntry, FeatureSource, FeatureStore
from csl_dist.predict.trajectories import TrajectoryStore
from csl_dist.score.store import ScoreStore
from csl_dist.storage.paths import FORMAT_VERSION, RunLayout
from csl_dist.storage.run_file import put_videos
from csl_dist.storage.url import Storage, at_once
from csl_dist.strategies import Strategy
from csl_dist.training.checkpoints import CheckpointInfo, CheckpointStore, require_fit
from csl_dist.training.models import ModelSpec, build_scorer, sees_context
from csl_dist.types import (
    Annotation,
    ErrorKind,
    IntArray,
    Moved,
    PlantedError,
    Span,
    Split,
    Timeline,
    Video,
    array_fingerprint,
    fingerprint,
    spans_where,
)

CNN = "cnn"
"""The scorer that an adapted encoder is, and the name its checkpoints go by."""
CNN_WINDOW_FRAMES = 16
"""Frames that lie together in a batch of `cnn`: few, so that a batch shows many videos."""


@dataclass(frozen=True, slots=True)
class Run:
    """One configuration with all that it reads and produces."""

    config: RunConfig
    layout: RunLayout
    dataset: Dataset
    features: FeatureSource
    sources: dict[str, SourceVideo] = field(repr=False)
    """Videos to extract features of, by id; empty where the user brought features."""
    planted: dict[Split, dict[str, ErrorKind]] = field(repr=False)
    """Kinds of errors to plant, by what the video is used for, then id."""

    def features_of(self, scorer: str, fold: int) -> FeatureSource:
        """What a scorer sees: the run's features, or those of the encoder adapted to the fold."""
        if self.config.features.adapt is None or scorer == CNN:
            return self.features
        return self.adapted_features(fold)

    def adapted_features(self, fold: int) -> FeatureStore:
        """The store of the encoder adapted to a fold; its features may not be there yet."""
        encoder = fingerprint(self.features.encoder, self.adapted_encoder(fold).content_hash)
        entries = {
            video: FeatureEntry(
                video=video, fingerprint=fingerprint(encoder, self.features.fingerprint(video))
            )
            for video in self.sources
        }
        return FeatureStore(self.feature_storage, encoder, entries, FEATURE_WIDTH)

    def adapted_encoder(self, fold: int) -> CheckpointInfo:
        """The last checkpoint of the encoder that was adapted to a fold."""
        num_epochs = self.train_config(CNN).epochs
        infos = self.checkpoints(CNN, fold)
        if len(infos) < num_epochs:
            raise NotReadyError(
                f"the encoder of fold {fold} is adapted up to epoch {len(infos)} of {num_epochs}; "
                "run `csl extract`"
            )
        return infos[-1]

    @property
    def feature_storage(self) -> Storage:
        return feature_storage(self.config)

    def train_config(self, scorer: str) -> TrainConfig:
        """How a scorer is trained; `cnn` as features.adapt says."""
        adapt = self.config.features.adapt
        if scorer != CNN or adapt is None:
            return self.config.train
        return replace(
            self.config.train,
            epochs=adapt.epochs,
            learning_rate=adapt.learning_rate,
            batch_frames=adapt.batch_frames,
            warmup_epochs=0.0,
        )

    def checkpoints(
        self, scorer: str, fold: int, strategy: Strategy = "full"
    ) -> list[CheckpointInfo]:
        """The checkpoints that an audit uses: those of the training that was asked for last."""
        store = self.checkpoint_store(scorer, fold)
        infos = store.select(strategy, self.num_epochs(scorer))
        encoder = self.features_of(scorer, fold).encoder
        require_fit(infos, scorer, encoder=encoder, classes=self.dataset.classes)
        return infos

    def checkpoint_store(self, scorer: str, fold: int) -> CheckpointStore:
        return current_checkpoints(self.layout, scorer, fold)

    def num_epochs(self, scorer: str) -> int | None:
        """Epochs that a scorer is to be trained for; None where its checkpoints are imported."""
        is_trained = scorer == CNN or self.config.scorers[scorer].train
        return self.train_config(scorer).epochs if is_trained else None

    def trajectories(self, scorer: str) -> TrajectoryStore:
        return TrajectoryStore(self.layout.scorer(scorer))

    @property
    def scores(self) -> ScoreStore:
        return ScoreStore(self.layout.scores)

    def annotations(self, videos: Sequence[str], use: Split) -> list[Annotation]:
        """Labels of videos as one use of them sees them: with the errors planted for that use."""
        require_features(self.features, videos)
        by_id = {video.id: video for video in self.dataset.videos}
        timelines = at_once(self.features.timeline, videos)
        return [
            self._annotation(by_id[video], timeline, use)
            for video, timeline in zip(videos, timelines, strict=True)
        ]

    def split_annotations(self, split: Split) -> list[Annotation]:
        """The annotations of all audit, or all validation, videos."""
        return self.annotations([v.id for v in self.dataset.in_split(split)], split)

    def _annotation(self, video: Video, timeline: Timeline, use: Split) -> Annotation:
        labels_T = self.dataset.labels(video, timeline)
        order_T: IntArray | None = None
        corruption = self.corruption(video.id, labels_T, use)
        if corruption is not None:
            labels_T = corruption.labels_T
            order_T = corruption.order_T if corruption.moves_frames else None
        return Annotation(
            video=video.id,
            labels_T=labels_T,
            times_T=timeline.times_T,
            order_T=order_T,
            source_fps=timeline.source_fps,
            duration=timeline.duration,
        )

    def corruption(self, video: str, labels_T: IntArray, use: Split) -> Corruption | None:
        """The error planted in a video for one use of it, if any."""
        kind = self.planted.get(use, {}).get(video)
        if kind is None:
            return None
        num_classes = len(self.dataset.classes)
        return corrupted(labels_T, kind, video, self.config.corrupt, num_classes=num_classes)

    def known_errors(self) -> list[PlantedError]:
        """Label errors of the audit videos whose place is known: planted, listed, or annotated."""
        path = self.config.dataset.truth
        errors = list(read_errors(path)) if path else []
        videos = self.dataset.in_split(Split.AUDIT)
        timelines = at_once(self.features.timeline, [video.id for video in videos])
        for video, timeline in zip(videos, timelines, strict=True):
            true_T = self.dataset.labels(video, timeline)
            corruption = self.corruption(video.id, true_T, Split.AUDIT)
            if corruption is not None:
                errors += self._planted_errors(video.id, true_T, corruption)
            for known in self.dataset.known_segments(video):
                inside_T = (timeline.times_T >= known.start_seconds) & (
                    timeline.times_T < known.stop_seconds
                )
                if corruption is not None:
                    inside_T = inside_T[corruption.order_T]
                errors += [
                    PlantedError(video=video.id, kind=known.kind, span=span)
                    for span in spans_where(inside_T)
                ]
        return errors

    def _planted_errors(
        self, video: str, true_T: IntArray, corruption: Corruption
    ) -> list[PlantedError]:
        def true_label(span: Span) -> str | None:
            if corruption.moves_frames:
                return None
            return self.dataset.classes[int(true_T[span.start])]

        return [
            PlantedError(video=video, kind=corruption.kind, span=span, true_label=true_label(span))
            for span in corruption.spans
        ]

    def has_known_errors(self) -> bool:
        """Whether there is anything that `evaluate` could compare with."""
        if self.config.dataset.truth or self.planted.get(Split.AUDIT):
            return True
        return any(self.dataset.known_segments(v) for v in self.dataset.in_split(Split.AUDIT))

    def model_spec(self, scorer: str) -> ModelSpec:
        adapt = self.config.features.adapt
        num_classes = len(self.dataset.classes)
        if adapt is not None and scorer == CNN:
            return ModelSpec(
                name=CNN,
                arguments={"trainable_stages": adapt.trainable_stages},
                num_features=self.features.width(),
                num_classes=num_classes,
                max_frames=CNN_WINDOW_FRAMES,
            )
        config = self.config.scorers[scorer]
        return ModelSpec(
            name=model_name(scorer, config),
            arguments=config.arguments,
            num_features=self.features.width() if adapt is None else FEATURE_WIDTH,
            num_classes=num_classes,
            max_frames=config.max_frames,
        )

    def flag_scorer(self) -> str:
        """Whose scores decide on flags; by default the ensemble, where the run has one."""
        default = ENSEMBLE if self.has_ensemble() else self.temporal_scorer()
        return self.config.flag.scorer or default

    def has_ensemble(self) -> bool:
        """Whether the run has both a scorer that sees context and one that does not."""
        return self.framewise_scorer() not in (None, self.temporal_scorer())

    def temporal_scorer(self) -> str:
        """The scorer that explains flags: the one that decides, or the first with context."""
        if self.config.flag.scorer in self.config.scorers:
            return self.config.flag.scorer
        scorers = self.config.scorers
        temporal = [n for n, c in scorers.items() if sees_context(model_name(n, c))]
        return (temporal or list(scorers))[0]

    def framewise_scorer(self) -> str | None:
        """A scorer that sees single frames only, if the run has one."""
        scorers = self.config.scorers
        blind = [n for n, c in scorers.items() if not sees_context(model_name(n, c))]
        return blind[0] if blind else None


def current_checkpoints(layout: RunLayout, scorer: str, fold: int) -> CheckpointStore:
    """The checkpoints of the training that was asked for last; none where there was no training."""
    folder = layout.fold(scorer, fold)
    started = folder.exists(RunLayout.TRAINING)
    training = folder.read_json(RunLayout.TRAINING)["training"] if started else "none"
    return CheckpointStore(layout.checkpoints(scorer, fold, training))


def require_features(source: FeatureSource, videos: Sequence[str]) -> None:
    """Refuses to go on without the features of these videos."""
    missing = sorted(set(source.missing()) & set(videos))
    if missing:
        raise NotReadyError(
            f"{len(missing)} videos have no features yet ({', '.join(missing[:5])}); "
            "run `csl extract`"
        )


def seen_features(source: FeatureSource, annotation: Annotation) -> str:
    """Fingerprint of the features as an annotation orders them."""
    own = source.fingerprint(annotation.footage)
    if annotation.order_T is None:
        return own
    return fingerprint(own, array_fingerprint(annotation.order_T))


def moved_of(annotations: Sequence[Annotation]) -> dict[str, Moved]:
    """The videos whose frames planted errors moved, for FeatureReader."""
    return {
        a.video: Moved(footage=a.footage, order_T=a.order_T)
        for a in annotations
        if a.order_T is not None
    }


def model_name(scorer: str, config: ScorerConfig) -> str:
    return config.model or scorer


def open_run(config: RunConfig) -> Run:
    """Opens the dataset and stores of a config; writes nothing."""
    dataset = open_dataset(config.dataset)
    layout = RunLayout(Storage(config.root))
    sources: dict[str, SourceVideo] = {}
    features: FeatureSource
    if uses_ready_features(dataset):
        if config.features.adapt is not None:
            raise ConfigError(
                "features.adapt: the dataset brings ready-made features, so that there are no "
                "pixels to adapt an encoder to; remove it"
            )
        features = ready_features(dataset, config.dataset)
    else:
        sources = source_videos(dataset.videos, config)
        features = FeatureStore(
            feature_storage(config),
            encoder_fingerprint(config.features),
            {video: source.entry for video, source in sources.items()},
            output_width(config.features),
        )
    planted = planted_kinds(dataset.audited_ids(), dataset.trained_ids(), config.corrupt)
    run = Run(config, layout, dataset, features, sources, planted)
    for scorer in config.scorers:
        refuse_unbuildable(run, scorer)
    return run


def feature_storage(config: RunConfig) -> Storage:
    """The feature store of a run: its own, or one that runs share."""
    shared = config.features.store
    return Storage(shared) if shared else RunLayout(Storage(config.root)).features


def refuse_unbuildable(run: Run, scorer: str) -> None:
    """Builds a scorer without memory for its weights, so that a mistake shows before any work."""
    if scorer in RunLayout.RESERVED:
        raise ConfigError(f"scorers: {scorer!r} is a name that the run root needs itself")
    with torch.device("meta"):
        build_scorer(run.model_spec(scorer))


def class_weights_of(
    run: Run, scorer: str, fold: int
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Loss weights (C,) of a fold's training, or ones where the run asks for none."""
    weights_C = np.array(run.checkpoints(scorer, fold)[0].class_weights)
    return weights_C if run.config.reduce.weighted else np.ones_like(weights_C)


def write_run_file(run: Run) -> None:
    """Writes `run.json`, the resolved config and versions, and the list of videos."""
    packages = ("csl_dist", "numpy", "ray", "torch", "torchvision", "zarr")
    content = {
        "format_version": FORMAT_VERSION,
        "config": config_as_dict(run.config),
        "classes": list(run.dataset.classes),
        "num_videos": len(run.dataset.videos),
        "num_scored": sum(len(fold.scored) for fold in run.dataset.folds),
        "num_folds": len(run.dataset.folds),
        "num_to_extract": len(run.sources),
        "encoder": run.features.encoder,
        "has_known_errors": run.has_known_errors(),
        "versions": {"python": platform.python_version()} | {p: version(p) for p in packages},
    }
    root = run.layout.root
    if not root.exists(RunLayout.RUN) or root.read_json(RunLayout.RUN) != content:
        root.put_json(RunLayout.RUN, content)
    put_videos(run.layout, run.dataset.videos)
