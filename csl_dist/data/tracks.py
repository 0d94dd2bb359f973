"""Label tracks: the class of a video at any second, from entries at a rate or from segments."""

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from csl_dist.data.documents.segment import Segment, by_priority, overlap_sentence, overlaps
from csl_dist.errors import DataError
from csl_dist.types import UNLABELLED, FloatArray, IntArray, Timeline, frame_seconds

SETTLE_OVERLAPS = "correct it, or set dataset.overlap: first, last or longest"
TRIM_SHARE = 0.05
"""With `length_mismatch: trim`, frames and labels may differ by this share."""


class LabelTrack(Protocol):
    """The labels of one video."""

    def at(self, times_T: FloatArray) -> IntArray:
        """Class ids (T,) at the given seconds; UNLABELLED where there is no label."""
        ...

    def misfit(self, timeline: Timeline) -> "Misfit | None":
        """How the labels fail to cover the video's frames, if they do."""
        ...

    def num_frames(self, fps: float) -> tuple[int, int]:
        """The fewest and the most frames at a rate that go with the labels."""
        ...


@dataclass(frozen=True, slots=True)
class Misfit:
    """Labels and frames that differ in length."""

    words: str
    share: float
    """By how much, of the longer of the two."""


@dataclass(frozen=True, slots=True)
class EntryTrack:
    """One class id after the other, at a rate."""

    ids_N: IntArray
    fps: float

    def at(self, times_T: FloatArray) -> IntArray:
        """Entries as dense as the frames belong to the nearest one; a sparser one, to all frames
        until the next."""
        dense = self.fps * frame_seconds(times_T, default=np.inf) > 0.99
        index_T = np.floor(times_T * self.fps + (0.5 if dense else 1e-3)).astype(np.int64)
        inside_T = index_T < len(self.ids_N)
        ids_T = np.full(len(times_T), UNLABELLED, dtype=np.int64)
        ids_T[inside_T] = self.ids_N[index_T[inside_T]]
        return ids_T

    def misfit(self, timeline: Timeline) -> Misfit | None:
        """Counts must be equal at equal rates; else, what rounding up or down makes of them."""
        expected = timeline.duration * self.fps
        num_labels = len(self.ids_N)
        coarser = max(1.0, self.fps / timeline.source_fps)
        slack = 0.5 if self._same_rate(timeline.source_fps) else coarser - 1e-6
        if abs(num_labels - expected) <= slack:
            return None
        words = f"{num_labels:,} labels but {round(expected):,} frames at {self.fps:g} fps"
        return Misfit(words, abs(num_labels - expected) / max(num_labels, expected))

    def num_frames(self, fps: float) -> tuple[int, int]:
        exact = len(self.ids_N) * fps / self.fps
        if self._same_rate(fps):
            return round(exact), round(exact)
        return math.floor(exact), math.ceil(exact)

    def _same_rate(self, fps: float) -> bool:
        return abs(fps - self.fps) < 0.01 * self.fps


MAX_SECONDS = 1e8
"""No recording runs for three years; such a time is a mistake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentTrack:
    """Segments of one video as they were drawn, and what becomes of frames that lie in two."""

    segments: tuple[Segment, ...]
    ids: Mapping[str, int]
    """Class id by label."""
    file: str
    overlap: str = "error"
    """Which of two segments counts: the one that starts `first` or `last`, or the `longest`."""

    def __post_init__(self) -> None:
        for segment in self.segments:
            if segment.problem:
                raise DataError(segment.problem)
            if any(
                MAX_SECONDS <= s < math.inf for s in (segment.start_seconds, segment.stop_seconds)
            ):
                raise DataError(
                    f"{self.file}:{segment.line}: {segment.words} lies years into the "
                    "video; is its unit another?"
                )
            if segment.label not in self.ids:
                known = ", ".join(list(self.ids)[:12]) + (", …" if len(self.ids) > 12 else "")
                raise DataError(
                    f"{self.file}:{segment.line}: unknown class {segment.label!r}; the classes are "
                    f"{known}"
                )

    @property
    def last(self) -> float:
        return last_second(self.segments)

    def unsettled_overlaps(self) -> list[str]:
        """A sentence for each segment that starts inside an earlier one, unless that is settled."""
        if self.overlap != "error":
            return []
        return [overlap_sentence(pair, self.file) for pair in overlaps(self.segments)]

    def at(self, times_T: FloatArray) -> IntArray:
        found = self.unsettled_overlaps()
        if found:
            more = f" ({len(found):,} of {len(self.segments):,} segments do so)"
            raise DataError(f"{found[0]}{more if len(found) > 1 else ''}; {SETTLE_OVERLAPS}")
        ids_T = np.full(len(times_T), UNLABELLED, dtype=np.int64)
        for segment in by_priority(self.segments, self.overlap):
            # Half a microsecond, so that 0.3 s is inside a segment that starts at 0.1 + 0.2.
            started_T = times_T >= segment.start_seconds - 5e-7
            ids_T[started_T & (times_T < segment.stop_seconds - 5e-7)] = self.ids[segment.label]
        return ids_T

    def misfit(self, timeline: Timeline) -> Misfit | None:
        """Labels may end before the video does, but not more than a second after it."""
        if self.last <= timeline.duration + 1.0:
            return None
        words = f"labels end at {self.last:.1f} s but the video at {timeline.duration:.1f} s"
        return Misfit(words, 1 - timeline.duration / self.last)

    def num_frames(self, fps: float) -> tuple[int, int]:
        """The video may go on after its last segment."""
        return max(1, math.floor((self.last - 1.0) * fps)), sys.maxsize


def last_second(segments: Iterable[Segment]) -> float:
    """Seconds after which there is no label that ends."""
    ends = (s.start_seconds if s.stop_seconds == math.inf else s.stop_seconds for s in segments)
    return max(ends, default=0.0)
