"""RunFeatures: the features that a run has, of its encoder or brought by the user."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from csl_dist.config import CNN, RunConfig
from csl_dist.data.content import Contents
from csl_dist.data.media.pixels import PixelSource, pixel_source
from csl_dist.errors import ConfigError
from csl_dist.features.brought import ready_features, uses_ready_features
from csl_dist.features.encoders import encoder_fingerprint, output_width
from csl_dist.features.source import FeatureSource
from csl_dist.features.store import FeatureEntry, FeatureStore
from csl_dist.run import Run, feature_storage
from csl_dist.storage.url import at_once
from csl_dist.types import Video, fingerprint


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceVideo:
    """A video as extraction sees it: its pixels, what identifies them, and its entry."""

    pixels: PixelSource
    content: str
    """Digest of the source."""
    entry: FeatureEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFeatures:
    """Where each scorer's features come from."""

    base: FeatureSource
    """Of the encoder, or brought; with `features.adapt`, what the frozen stages put out."""
    to_extract: dict[str, SourceVideo]
    """Videos to extract features of, by id; empty where the user brought features."""
    adapted: Callable[[int], FeatureStore] | None
    """The store of the encoder adapted to a fold; None where encoders are not adapted."""

    def of(self, scorer: str, fold: int) -> FeatureSource:
        """What a scorer sees: the run's features, or those of the encoder adapted to the fold."""
        if self.adapted is None or scorer == CNN:
            return self.base
        return self.adapted(fold)


def open_base(run: Run, contents: Contents) -> tuple[FeatureSource, dict[str, SourceVideo]]:
    """The features of a run's encoder, or those brought; and the videos to extract."""
    config, dataset = run.config, run.dataset
    if uses_ready_features(dataset):
        if config.features.adapt is not None:
            raise ConfigError(
                "features.adapt: the dataset brings ready-made features, so that there are no "
                "pixels to adapt an encoder to; remove it"
            )
        return ready_features(dataset, config.dataset, contents), {}
    videos = source_videos(dataset.videos, config, contents)
    store = FeatureStore(
        feature_storage(config),
        encoder_fingerprint(config.features),
        {video: source.entry for video, source in videos.items()},
        output_width(config.features),
    )
    return store, videos


def source_videos(
    videos: Sequence[Video], config: RunConfig, contents: Contents
) -> dict[str, SourceVideo]:
    """Videos by id, with the fingerprint of all that decides their features."""
    encoder = encoder_fingerprint(config.features)
    chunk_frames = config.features.chunk_frames
    found = at_once(lambda video: pixel_source(video).content(contents), videos)
    sources = {}
    for video, content in zip(videos, found, strict=True):
        parts = fingerprint(encoder, content, video.source_fps, config.dataset.fps, chunk_frames)
        entry = FeatureEntry(video=video.id, fingerprint=parts)
        sources[video.id] = SourceVideo(pixels=pixel_source(video), content=content, entry=entry)
    return sources
