from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from csl_dist.data.media.pixels import STAND_IN_TRIES, frames_of_span
from csl_dist.data.media.video import Pixels
from csl_dist.errors import DataError
from csl_dist.types import Span


class NumberedFrames:
    """Frame n shows the number n; some are broken."""

    path = "numbers"

    def __init__(self, num_frames: int, broken: set[int]):
        self._num_frames = num_frames
        self._broken = broken

    def times(self) -> np.ndarray:
        return np.arange(self._num_frames) / 10

    def decode(self, times_T: np.ndarray) -> Iterator[Pixels | DataError]:
        for n in np.round(times_T * 10).astype(int):
            broken = n in self._broken
            yield DataError(f"frame {n}") if broken else np.full((1, 1, 3), n, dtype=np.uint8)

    def facts(self) -> dict[str, Any]:
        return {}


def shown(source: NumberedFrames, span: Span) -> list[tuple[int, bool]]:
    frames = frames_of_span(source, source.times(), span, on_bad_frame="repeat_last")
    return [(int(frame[0, 0, 0]), stands_in) for frame, stands_in in frames]


def test_broken_frame_shows_the_one_before_it() -> None:
    source = NumberedFrames(10, {3, 4})
    assert shown(source, Span(2, 6)) == [(2, False), (2, True), (2, True), (5, False)]


def test_broken_frame_at_the_start_of_a_chunk_shows_what_it_would_without_chunks() -> None:
    source = NumberedFrames(10, {3, 4, 5})
    whole = shown(source, Span(0, 10))
    assert shown(source, Span(0, 4)) + shown(source, Span(4, 10)) == whole


def test_broken_frames_at_the_start_of_a_video_show_the_first_good_one() -> None:
    assert shown(NumberedFrames(5, {0, 1}), Span(0, 4)) == [
        (2, True),
        (2, True),
        (2, False),
        (3, False),
    ]


def test_video_without_a_good_frame_is_refused() -> None:
    source = NumberedFrames(200, set(range(200)))
    with pytest.raises(DataError, match=f"none of its {STAND_IN_TRIES} neighbours"):
        shown(source, Span(100, 104))


def test_broken_frame_is_an_error_unless_repeated() -> None:
    source = NumberedFrames(5, {2})
    frames = frames_of_span(source, source.times(), Span(0, 5), on_bad_frame="error")
    with pytest.raises(DataError, match="frame 2"):
        list(frames)
