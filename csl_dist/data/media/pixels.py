"""A video's pixels, wherever they are, and what stands in for frames that are broken."""

import itertools
from collections.abc import Iterable, Iterator
from typing import Protocol

import numpy as np

from csl_dist.data.content import Contents
from csl_dist.data.media.display import Pixels
from csl_dist.errors import DataError
from csl_dist.types import FloatArray, Media, Span, Video

STAND_IN_TRIES = 64
"""Neighbours that are tried in place of a broken frame at the start of a chunk."""


class PixelSource(Protocol):
    """A video file or a folder of frames."""

    path: str

    def times(self) -> FloatArray: ...

    def decode(self, times_T: FloatArray) -> Iterator[Pixels | DataError]: ...

    def content(self, contents: Contents) -> str: ...


def pixel_source(video: Video) -> PixelSource:
    """Needs what the extra `video` brings; ModuleNotFoundError where that is not installed."""
    if video.media is Media.FRAMES:
        from csl_dist.data.media.frames import FrameFolder

        return FrameFolder(video.source, video.source_fps)
    from csl_dist.data.media.video import VideoFile

    return VideoFile(video.source, video.start_seconds, video.stop_seconds)


def whole_frames(frames: Iterable[Pixels | DataError]) -> Iterator[Pixels]:
    """The frames, up to the first one that can't be decoded, whose error is raised."""
    for frame in frames:
        if isinstance(frame, DataError):
            raise frame
        yield frame


def frames_of_span(
    source: PixelSource, times_T: FloatArray, span: Span, *, on_bad_frame: str
) -> Iterator[tuple[Pixels, bool]]:
    """Every frame of a span of the wanted times, and whether another one stands in for it.

    With `repeat_last`, that is the last wanted frame before it that can be decoded; at the start
    of a video, the first one.
    """
    last: Pixels | None = None
    wanted = times_T[span.start : span.stop]
    for place, frame in enumerate(source.decode(wanted), start=span.start):
        broken = isinstance(frame, DataError)
        if isinstance(frame, DataError):
            if on_bad_frame == "error":
                raise frame
            last = _neighbour(source, times_T, place, frame) if last is None else last
        else:
            last = frame
        yield last, broken


def _neighbour(source: PixelSource, times_T: FloatArray, place: int, error: DataError) -> Pixels:
    """The nearest frame before a place that can be decoded, or else the nearest after it."""
    places = itertools.chain(range(place - 1, -1, -1), range(place + 1, len(times_T)))
    for near in itertools.islice(places, STAND_IN_TRIES):
        [frame] = source.decode(np.array([times_T[near]]))
        if not isinstance(frame, DataError):
            return frame
    raise DataError(f"{error}; none of its {STAND_IN_TRIES} neighbours can be decoded either")
