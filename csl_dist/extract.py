"""Plan the extraction of features: what identifies a video's source, and its chunks of frames."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from csl_dist.config import RunConfig
from csl_dist.encoder import encoder_fingerprint
from csl_dist.features import FeatureEntry
from csl_dist.frames import FrameFolder
from csl_dist.records import FloatArray, Media, Span, Video, fingerprint
from csl_dist.video import Pixels, VideoFile


class PixelSource(Protocol):
    """A video file or a folder of frames."""

    path: str

    def times(self) -> FloatArray: ...

    def decode(self, times_T: FloatArray) -> Iterator[Pixels]: ...

    def facts(self) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceVideo:
    """A video as extraction sees it: its pixels, what tells them apart, and its entry."""

    pixels: PixelSource
    facts: dict[str, Any]
    entry: FeatureEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkTask:
    """One span of one video, to be decoded and encoded."""

    entry: FeatureEntry
    pixels: PixelSource
    span: Span
    times_T: FloatArray


def pixel_source(video: Video) -> PixelSource:
    if video.media is Media.FRAMES:
        return FrameFolder(video.source, video.source_fps)
    return VideoFile(video.source)


def source_videos(videos: Sequence[Video], config: RunConfig) -> dict[str, SourceVideo]:
    """Videos by id, with the fingerprint of all that decides their features."""
    encoder = encoder_fingerprint(config.features)
    chunk_frames = config.features.chunk_frames
    sources = {}
    for video in videos:
        pixels = pixel_source(video)
        facts = pixels.facts()
        parts = fingerprint(encoder, facts, video.source_fps, config.dataset.fps, chunk_frames)
        entry = FeatureEntry(video=video.id, fingerprint=parts)
        sources[video.id] = SourceVideo(pixels=pixels, facts=facts, entry=entry)
    return sources


def chunk_spans(num_frames: int, chunk_frames: int) -> list[Span]:
    """Consecutive spans that cover a video, each one chunk of the store."""
    return [
        Span(start, min(num_frames, start + chunk_frames))
        for start in range(0, num_frames, chunk_frames)
    ]
