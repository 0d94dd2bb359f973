"""Edit: a change of an annotation, and what all kinds of candidates are made with."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from csl_dist.data.segments import Segment
from csl_dist.flag.edits.emission import Emission
from csl_dist.flag.edits.statistics import MOST_SQUARED, Statistics, merged
from csl_dist.types import UNLABELLED, EditKind, FloatArray, IntArray

EMISSION_WEIGHT = 0.3
DURATION_WEIGHT = 0.5
"""Of the quick gain: 0.3 * sum of emission + bigram + 0.5 * duration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A candidate: frames [start, stop) labelled `label` would be `new_label`."""

    kind: EditKind
    start: int
    stop: int
    label: int
    last_label: int
    """Of the last of them, which differs where two segments change."""
    new_label: int
    """For a swap: the name of the second segment."""
    place: int
    """For a boundary: where it would be; where two segments change: where they meet; else the
    start."""
    segments: tuple[Segment, ...]
    """The whole annotation after the edit."""
    changed_share: float
    """Frames that change, of the segment or segments that the edit is about."""
    quick_gain: float

    @property
    def num_frames(self) -> int:
        return self.stop - self.start


class Context:
    """One video while candidates are looked for; L are its labelled segments."""

    def __init__(
        self, segments: Sequence[Segment], emission: Emission, statistics: Statistics, fps: float
    ):
        self.segments = tuple(segments)
        self.sum_TC = emission.sum_TC
        self.num_classes = C = statistics.num_classes
        self.bigram_CC = statistics.bigram_CC
        self._mean_C = statistics.log_seconds_mean_C
        self._deviation_C = statistics.log_seconds_deviation_C
        self._log_deviation_C = np.log(statistics.log_seconds_deviation_C)
        frames_T = np.maximum(np.arange(len(emission.sum_TC)), 0.5)
        self._log_seconds_T = np.log(frames_T / fps)
        labels = [UNLABELLED, *(segment.label for segment in segments), UNLABELLED]
        self.places = [i for i, s in enumerate(segments) if s.label != UNLABELLED]
        """Of labelled segments, among all."""
        own = [segments[i] for i in self.places]
        self.start_L = np.array([s.start for s in own], dtype=int)
        self.stop_L = np.array([s.stop for s in own], dtype=int)
        self.label_L = np.array([s.label for s in own], dtype=int)
        self.frames_L = self.stop_L - self.start_L
        before_L, after_L = (
            np.array([labels[i + k] for i in self.places], dtype=int) for k in (0, 2)
        )
        self.before_L = np.where(before_L == UNLABELLED, C, before_L)
        """Labels before each, or the start."""
        self.after_L = np.where(after_L == UNLABELLED, C + 1, after_L)
        self.emission_LC = self.sum_TC[self.stop_L] - self.sum_TC[self.start_L]

    def durations(self, labels: IntArray | int, frames: IntArray | slice | int) -> FloatArray:
        """`duration_terms` of classes for numbers of frames, all of which lie in the video."""
        deviation = self._deviation_C[labels]
        z = (self._log_seconds_T[frames] - self._mean_C[labels]) / deviation
        terms: FloatArray = -np.minimum(z**2, MOST_SQUARED) / 2 - self._log_deviation_C[labels]
        return terms


def relabelling(
    context: Context,
    i: int,
    kind: EditKind,
    start: int,
    stop: int,
    new_label: int,
    gain: float,
) -> Edit:
    own = context.segments[i]
    parts = [
        Segment(own.start, start, own.label),
        Segment(start, stop, new_label),
        Segment(stop, own.stop, own.label),
    ]
    return Edit(
        kind=kind,
        start=start,
        stop=stop,
        label=own.label,
        last_label=own.label,
        new_label=new_label,
        place=start,
        segments=replaced(context.segments, i, i + 1, parts),
        changed_share=(stop - start) / own.num_frames,
        quick_gain=gain,
    )


def replaced(
    segments: tuple[Segment, ...], first: int, last: int, parts: list[Segment]
) -> tuple[Segment, ...]:
    """An annotation with other segments in the place of some; only their neighbours can merge."""
    low, high = max(0, first - 1), last + 1
    around = merged([*segments[low:first], *parts, *segments[last:high]])
    return (*segments[:low], *around, *segments[high:])
