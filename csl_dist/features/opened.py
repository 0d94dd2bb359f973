"""RunFeatures: the features that a run has, of its encoder or brought by the user."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from csl_dist.config import CNN, FeaturesConfig, RunConfig
from csl_dist.data.content import Contents
from csl_dist.data.media.pixels import PixelSource, pixel_source
from csl_dist.errors import ConfigError
from csl_dist.features.brought import brought_features, uses_ready_features
from csl_dist.features.decoded import DecodedActivations
from csl_dist.features.encoders import encoder_fingerprint, output_width
from csl_dist.features.sample import Sample
from csl_dist.features.source import FeatureSource, SideBySide
from csl_dist.features.store import FeatureEntry, FeatureStore
from csl_dist.run import Run, feature_storage
from csl_dist.storage.requests import at_once
from csl_dist.types import Video, fingerprint

DECODING = "as shown"
"""How frames are decoded; another word makes features anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceVideo:
    """A video as extraction sees it: its pixels, what identifies them, and its entry."""

    pixels: PixelSource
    content: str
    """Digest of the source."""
    entry: FeatureEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureSet:
    """The features of one encoder."""

    store: FeatureStore
    config: FeaturesConfig
    videos: dict[str, SourceVideo]
    """Videos to extract features of, by id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFeatures:
    """Where each scorer's features come from."""

    base: FeatureSource
    """Of the encoder, or of several side by side, or brought; with `features.adapt`, what the
    frozen stages put out for the sample of frames that it is adapted to, and all videos' times."""
    config: FeaturesConfig
    sets: tuple[FeatureSet, ...]
    """What is extracted; nothing where the user brought features."""
    adapted: Callable[[int], FeatureStore] | None
    """The store of the encoder adapted to a fold; None where encoders are not adapted."""
    sample: Sample | None = None
    """The frames that encoders are adapted to; None where they are not adapted."""

    def of(self, scorer: str, fold: int) -> FeatureSource:
        """What a scorer predicts from: the run's features, those of the encoder adapted to the
        fold, or, for the adapted encoder's own scorer, the videos themselves."""
        if self.adapted is None:
            return self.base
        return self.decoded if scorer == CNN else self.adapted(fold)

    @property
    def to_extract(self) -> dict[str, SourceVideo]:
        """Videos to extract features of, by id; empty where the user brought features."""
        return self.sets[0].videos if self.sets else {}

    @property
    def decoded(self) -> DecodedActivations:
        """What the frozen stages put out for any frame, computed when it is read."""
        pixels = {video: source.pixels for video, source in self.to_extract.items()}
        return DecodedActivations(self.base, pixels, self.config)


def open_base(
    run: Run, contents: Contents
) -> tuple[FeatureSource, tuple[FeatureSet, ...], Sample | None]:
    """The features of a run's encoders, or those brought; what is extracted; the sample."""
    config, dataset = run.config, run.dataset
    if uses_ready_features(dataset):
        if config.features.adapt is not None:
            raise ConfigError(
                "features.adapt: the dataset brings ready-made features, so that there are no "
                "pixels to adapt an encoder to; remove it"
            )
        return brought_features(dataset, config, contents), (), None
    if any(other.files for other in config.features.beside):
        raise ConfigError(
            "features.beside: files stand beside ready-made features only, but the dataset has "
            "videos or frames; name an encoder instead"
        )
    adapt = config.features.adapt
    sample = Sample.of(adapt, frozenset(dataset.trained_ids())) if adapt else None
    sets = []
    for features in config.features.sets():
        videos = source_videos(dataset.videos, replace(config, features=features), contents, sample)
        store = FeatureStore(
            feature_storage(config),
            encoder_fingerprint(features),
            {video: source.entry for video, source in videos.items()},
            output_width(features),
            sample=sample,
        )
        sets.append(FeatureSet(store=store, config=features, videos=videos))
    stores = [one.store for one in sets]
    return stores[0] if len(stores) == 1 else SideBySide(stores), tuple(sets), sample


def source_videos(
    videos: Sequence[Video],
    config: RunConfig,
    contents: Contents,
    sample: Sample | None = None,
) -> dict[str, SourceVideo]:
    """Videos by id, with the fingerprint of all that decides their features."""
    encoder = encoder_fingerprint(config.features)
    chunk_frames = config.features.chunk_frames
    found = at_once(lambda video: pixel_source(video).content(contents), videos)
    sources = {}
    for video, content in zip(videos, found, strict=True):
        parts = [encoder, content, video.source_fps, config.dataset.fps, chunk_frames, DECODING]
        if sample is not None:
            parts.append([sample.fps, sample.max_frames] if video.id in sample.videos else [])
        entry = FeatureEntry(video=video.id, fingerprint=fingerprint(*parts))
        sources[video.id] = SourceVideo(pixels=pixel_source(video), content=content, entry=entry)
    return sources
