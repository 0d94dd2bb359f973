"""Plan the extraction of features: which spans of which videos are still to be decoded."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from csl_dist.config import RunConfig
from csl_dist.encoder import encoder_fingerprint
from csl_dist.features import FeatureEntry
from csl_dist.records import FloatArray, Span, Video, fingerprint
from csl_dist.video import source_facts


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceVideo:
    """A video as extraction sees it: its file, what tells the file apart, and its entry."""

    video: Video
    facts: dict[str, Any]
    entry: FeatureEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkTask:
    """One span of one video, to be decoded and encoded."""

    entry: FeatureEntry
    source: str
    span: Span
    times_T: FloatArray


def source_videos(videos: Sequence[Video], config: RunConfig) -> list[SourceVideo]:
    """Videos with the fingerprint of all that decides their features."""
    encoder = encoder_fingerprint(config.features)
    sources = []
    for video in videos:
        facts = source_facts(video.source)
        parts = fingerprint(encoder, facts, config.dataset.fps, config.features.chunk_frames)
        entry = FeatureEntry(video=video.id, fingerprint=parts)
        sources.append(SourceVideo(video=video, facts=facts, entry=entry))
    return sources


def chunk_spans(num_frames: int, chunk_frames: int) -> list[Span]:
    """Consecutive spans that cover a video, each one chunk of the store."""
    return [
        Span(start, min(num_frames, start + chunk_frames))
        for start in range(0, num_frames, chunk_frames)
    ]
