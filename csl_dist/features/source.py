"""Features of videos: what any source of them gives, and how stages read it."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from csl_dist.errors import DataError, NotReadyError
from csl_dist.storage.requests import at_once
from csl_dist.types import (
    DerivedFrames,
    IntArray,
    Timeline,
    Window,
    array_fingerprint,
    fingerprint,
)

Features = npt.NDArray[np.floating[Any]]
"""In float32, or in float16 where they are stored so."""

FEATURE_CACHE_BYTES = 2 * 2**30
"""Features that one worker keeps in memory."""
WHOLE_VIDEO_SHARE = 8
"""A video that takes at most one part in so many of these bytes is kept whole."""

Frames = slice | IntArray
ALL_FRAMES = slice(None)


class FeatureSource(Protocol):
    """Where training and scoring get features from, by video id."""

    encoder: str
    """Names what made the features."""

    def missing(self) -> list[str]:
        """Ids of videos that can't be read yet."""
        ...

    def timeline(self, video: str) -> Timeline:
        """When the frames behind the features are shown."""
        ...

    def read(self, video: str, frames: Frames = ALL_FRAMES) -> Features:
        """Features (T, D) of a video, or of some of its frames."""
        ...

    def width(self) -> int:
        """D."""
        ...

    def fingerprint(self, video: str) -> str:
        """Changes whenever the features do."""
        ...


def require_features(source: FeatureSource, videos: Sequence[str]) -> None:
    """Refuses to go on without the features of these videos."""
    missing = sorted(set(source.missing()) & set(videos))
    if missing:
        raise NotReadyError(
            f"{len(missing)} videos have no features yet ({', '.join(missing[:5])}); "
            "run `csl extract`"
        )


def timelines(source: FeatureSource, videos: Sequence[str]) -> list[Timeline]:
    """When the frames of these videos are shown, all of which must have features."""
    require_features(source, videos)
    return at_once(source.timeline, videos)


class SideBySide:
    """Several sources of the same videos as one: a frame's vectors are put end to end."""

    def __init__(self, sources: Sequence[FeatureSource]):
        self.encoder = fingerprint(*(source.encoder for source in sources))
        self._sources = sources

    def __repr__(self) -> str:
        return f"SideBySide({list(self._sources)!r})"

    def missing(self) -> list[str]:
        return sorted({video for source in self._sources for video in source.missing()})

    def timeline(self, video: str) -> Timeline:
        return self._sources[0].timeline(video)

    def width(self) -> int:
        return sum(source.width() for source in self._sources)

    def read(self, video: str, frames: Frames = ALL_FRAMES) -> Features:
        parts = [source.read(video, frames) for source in self._sources]
        if len({len(part) for part in parts}) > 1:
            raise DataError(
                f"features side by side must have the same frames, but those of video {video!r} "
                f"are {', '.join(f'{len(part):,}' for part in parts)}"
            )
        return np.concatenate(parts, axis=1)

    def fingerprint(self, video: str) -> str:
        return fingerprint(*(source.fingerprint(video) for source in self._sources))


class DerivedFeatures:
    """A view of a source in which some videos are derived from others: their frames reordered."""

    def __init__(self, source: FeatureSource, derived: Mapping[str, DerivedFrames]):
        self.encoder = source.encoder
        self._source = source
        self._derived = derived

    def __repr__(self) -> str:
        return f"DerivedFeatures({self._source!r}, {len(self._derived)} videos)"

    def missing(self) -> list[str]:
        return self._source.missing()

    def timeline(self, video: str) -> Timeline:
        return self._source.timeline(self._original(video))

    def width(self) -> int:
        return self._source.width()

    def read(self, video: str, frames: Frames = ALL_FRAMES) -> Features:
        found = self._derived.get(video)
        if found is None:
            return self._source.read(video, frames)
        return self._source.read(found.original, found.order_T[frames])

    def fingerprint(self, video: str) -> str:
        own = self._source.fingerprint(self._original(video))
        found = self._derived.get(video)
        return own if found is None else fingerprint(own, array_fingerprint(found.order_T))

    def _original(self, video: str) -> str:
        return self._derived[video].original if video in self._derived else video


class FeatureReader:
    """Reads windows and keeps the latest used features, up to some bytes.

    A video that is small beside that bound is read and kept whole, any other window by window.
    """

    def __init__(self, source: FeatureSource, max_bytes: int = FEATURE_CACHE_BYTES):
        self.source = source
        self._max_bytes = max_bytes
        self._num_bytes = 0
        self._kept: OrderedDict[tuple[str, int, int], Features] = OrderedDict()

    def read(self, window: Window) -> Features:
        """Features (T, D) of a window; the caller does not write to them."""
        video_bytes = window.num_frames * self.source.width() * np.dtype(np.float32).itemsize
        if video_bytes <= self._max_bytes // WHOLE_VIDEO_SHARE:
            whole_TD = self._kept_or_read(window.video, 0, window.num_frames)
            return whole_TD[window.span.start : window.span.stop]
        return self._kept_or_read(window.video, window.span.start, window.span.stop)

    def _kept_or_read(self, video: str, start: int, stop: int) -> Features:
        key = (video, start, stop)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        features_TD = self.source.read(video, slice(start, stop))
        self._kept[key] = features_TD
        self._num_bytes += features_TD.nbytes
        while self._num_bytes > self._max_bytes and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            self._num_bytes -= dropped.nbytes
        return features_TD
