"""Candidate edits of an annotation: the best of each kind for every segment, boundary and pair.

A candidate says which frames would change, to what, and how the segments would then be. It makes no
claim: `evidence.py` weighs it. The quick gain that chooses among places and names is
0.3 * sum of emission + bigram + 0.5 * duration.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

import numpy as np

from csl_dist.data.segments import Segment, neighbour_pairs
from csl_dist.flag.edits.emission import Emission
from csl_dist.flag.edits.statistics import MOST_SQUARED, Statistics, merged
from csl_dist.types import UNLABELLED, FloatArray, IntArray

EMISSION_WEIGHT = 0.3
DURATION_WEIGHT = 0.5
LEAST_FRAMES = 3
"""Frames of the shortest step that may be inserted."""


class EditKind(StrEnum):
    """What an edit does."""

    RENAME = "rename"
    """A segment gets a name that neither neighbour has."""
    DELETE = "delete"
    """A segment becomes part of a neighbour."""
    INSERT = "insert"
    """A step is put inside a segment, at one of its ends, or between two that share its frames."""
    BOUNDARY = "boundary"
    """The place between two segments moves."""
    SWAP = "swap"
    """Two neighbours change places."""


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


class _Context:
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


def candidate_edits(
    segments: Sequence[Segment], emission: Emission, statistics: Statistics, *, fps: float
) -> list[Edit]:
    """Every candidate of a video, in the order of its segments."""
    context = _Context(segments, emission, statistics, fps)
    pairs = set(neighbour_pairs(segments))
    renames, deletions = _renames(context), _deletions(context)
    steps = _best_steps(context)
    insertions, between = _insertions(context, steps), _between(context, steps, pairs)
    edits: list[Edit] = []
    for i in context.places:
        edits += renames.get(i, [])
        edits += deletions.get(i, [])
        edits += insertions.get(i, [])
        if i in pairs:
            edits += between.get(i, [])
            edits += _boundaries(context, i)
            edits.append(_swap(context, i))
    return edits


def _renames(context: _Context) -> dict[int, list[Edit]]:
    """The best other name for each segment."""
    C, G, label_L = context.num_classes, context.bigram_CC, context.label_L
    grammar_LC = G[context.before_L, :C] + G[:C, context.after_L].T
    duration_LC = context.durations(np.arange(C), context.frames_L[:, None])
    total_LC = EMISSION_WEIGHT * context.emission_LC + grammar_LC + DURATION_WEIGHT * duration_LC
    # The bigram of a class with itself is impossible, so that only the own name is left to bar.
    rows = np.arange(len(label_L))
    gain_LC = total_LC - total_LC[rows, label_L][:, None]
    gain_LC[rows, label_L] = -np.inf
    best_L = gain_LC.argmax(axis=1)
    return {
        i: [_relabelling(context, i, EditKind.RENAME, *context.segments[i][:2], best, gain)]
        for i, best, gain in zip(
            context.places, best_L.tolist(), gain_LC[rows, best_L].tolist(), strict=True
        )
        if np.isfinite(gain)
    }


def _deletions(context: _Context) -> dict[int, list[Edit]]:
    """Each segment as part of the neighbour that gains more by it."""
    C, G, label_L = context.num_classes, context.bigram_CC, context.label_L
    before_L, after_L, rows = context.before_L, context.after_L, np.arange(len(label_L))
    joined_L = np.where(before_L == after_L, 0.0, G[before_L, after_L])
    grammar_L = joined_L - G[before_L, label_L] - G[label_L, after_L]
    own_L = context.durations(label_L, context.frames_L)

    def gains(neighbour_L: IntArray, step: int) -> list[float]:
        """By becoming part of the segment so many places on; means nothing where there is none."""
        name_L = np.where(neighbour_L < C, neighbour_L, 0)
        frames_L = np.array(
            [
                context.segments[i + step].num_frames if name < C else 0
                for i, name in zip(context.places, neighbour_L.tolist(), strict=True)
            ],
            dtype=int,
        )
        duration_L = (
            context.durations(name_L, frames_L + context.frames_L)
            - context.durations(name_L, frames_L)
            - own_L
        )
        emission_L = context.emission_LC[rows, name_L] - context.emission_LC[rows, label_L]
        gain_L = EMISSION_WEIGHT * emission_L + grammar_L + DURATION_WEIGHT * duration_L
        return [float(gain) for gain in gain_L]

    edits: dict[int, list[Edit]] = {}
    for i, before, after, gain_before, gain_after in zip(
        context.places,
        before_L.tolist(),
        after_L.tolist(),
        gains(before_L, -1),
        gains(after_L, 1),
        strict=True,
    ):
        # Of two neighbours of one name, the one after.
        by_name = {before: gain_before, after: gain_after}
        by_name = {name: gain for name, gain in by_name.items() if name < C}
        if by_name and np.isfinite(max(by_name.values())):
            best = max(by_name, key=lambda name: by_name[name])
            span = context.segments[i][:2]
            edits[i] = [_relabelling(context, i, EditKind.DELETE, *span, best, by_name[best])]
    return edits


@dataclass(frozen=True, slots=True, kw_only=True)
class _BestSteps:
    """The best step of every class in each segment that has room for one.

    Along the second axis: inside, at the start, at the end. Frames are counted from the segment's
    start.
    """

    places_L: IntArray
    """Of these segments, among the labelled ones."""
    gain_L3C: FloatArray
    low_L3C: IntArray
    high_L3C: IntArray


def _best_steps(context: _Context) -> _BestSteps:
    long_L = np.flatnonzero(context.frames_L >= LEAST_FRAMES + 1)
    found = [
        _best_places(context.sum_TC[start : stop + 1], y)
        for start, stop, y in zip(
            context.start_L[long_L].tolist(),
            context.stop_L[long_L].tolist(),
            context.label_L[long_L].tolist(),
            strict=True,
        )
    ]
    parts = zip(*found, strict=True) if found else [np.empty((0, 3, context.num_classes))] * 3
    gain_L3C, low_L3C, high_L3C = (np.array(part) for part in parts)
    return _BestSteps(
        places_L=long_L,
        gain_L3C=gain_L3C,
        low_L3C=low_L3C.astype(int),
        high_L3C=high_L3C.astype(int),
    )


def _insertions(context: _Context, steps: _BestSteps) -> dict[int, list[Edit]]:
    """The best step inside each segment, and the best one at one of its ends."""
    C, G, long_L = context.num_classes, context.bigram_CC, steps.places_L
    low_L3C, high_L3C = steps.low_L3C, steps.high_L3C
    y_L, frames_L = context.label_L[long_L], context.frames_L[long_L]
    before_L, after_L = context.before_L[long_L], context.after_L[long_L]
    to_y_LC, from_y_LC = G[:C, y_L].T, G[y_L, :C]
    grammar_L3C = np.stack(
        [
            from_y_LC + to_y_LC,
            G[before_L, :C] + to_y_LC - G[before_L, y_L][:, None],
            from_y_LC + G[:C, after_L].T - G[y_L, after_L][:, None],
        ],
        axis=1,
    )
    y_L11, frames_L11 = y_L[:, None, None], frames_L[:, None, None]
    rest_L3C = np.maximum(frames_L11 - high_L3C, 0)
    duration_L3C = (
        context.durations(np.arange(C), high_L3C - low_L3C)
        + np.where(low_L3C > 0, context.durations(y_L11, low_L3C), 0.0)
        + np.where(high_L3C < frames_L11, context.durations(y_L11, rest_L3C), 0.0)
        - context.durations(y_L11, frames_L11)
    )
    total_L3C = EMISSION_WEIGHT * steps.gain_L3C + grammar_L3C + DURATION_WEIGHT * duration_L3C
    rows = np.arange(len(long_L))
    total_L3C[rows, :, y_L] = -np.inf
    for place, neighbour_L in ((1, before_L), (2, after_L)):
        has_one = neighbour_L < C
        total_L3C[rows[has_one], place, neighbour_L[has_one]] = -np.inf
    total_L3C[np.isnan(total_L3C)] = -np.inf
    best_L3 = total_L3C.argmax(axis=2)
    edits: dict[int, list[Edit]] = {}
    for row, k in enumerate(long_L.tolist()):
        i, found = context.places[k], []
        for place, best in enumerate(best_L3[row].tolist()):
            gain = float(total_L3C[row, place, best])
            if not np.isfinite(gain):
                continue
            first = context.segments[i].start
            low, high = first + int(low_L3C[row, place, best]), int(high_L3C[row, place, best])
            edit = _relabelling(context, i, EditKind.INSERT, low, first + high, best, gain)
            found.append((place, edit))
        inside = [edit for place, edit in found if place == 0]
        ends = [edit for place, edit in found if place > 0]
        edits[i] = inside + ([max(ends, key=lambda edit: edit.quick_gain)] if ends else [])
    return edits


def _between(context: _Context, steps: _BestSteps, pairs: set[int]) -> dict[int, list[Edit]]:
    """The best step between each segment and the next, of frames of both."""
    C, G, long_L = context.num_classes, context.bigram_CC, steps.places_L
    first_P = np.array(
        [
            row
            for row, (k, following) in enumerate(pairwise(long_L.tolist()))
            if following == k + 1 and context.places[k] in pairs
        ],
        dtype=int,
    )
    y_P, z_P = context.label_L[long_L[first_P]], context.label_L[long_L[first_P + 1]]
    frames_y_P1 = context.frames_L[long_L[first_P]][:, None]
    frames_z_P1 = context.frames_L[long_L[first_P + 1]][:, None]
    low_PC, high_PC = steps.low_L3C[first_P, 2], steps.high_L3C[first_P + 1, 1]
    before_PC, after_PC = steps.gain_L3C[first_P, 2], steps.gain_L3C[first_P + 1, 1]
    grammar_PC = G[y_P, :C] + G[:C, z_P].T - G[y_P, z_P][:, None]
    duration_PC = (
        context.durations(np.arange(C), frames_y_P1 - low_PC + high_PC)
        + context.durations(y_P[:, None], low_PC)
        + context.durations(z_P[:, None], frames_z_P1 - high_PC)
        - context.durations(y_P[:, None], frames_y_P1)
        - context.durations(z_P[:, None], frames_z_P1)
    )
    emission_PC = EMISSION_WEIGHT * (before_PC + after_PC)
    total_PC = emission_PC + grammar_PC + DURATION_WEIGHT * duration_PC
    # Where frames of one neighbour alone prefer the step, it is at that one's end.
    total_PC[np.minimum(before_PC, after_PC) <= 0] = -np.inf
    rows = np.arange(len(first_P))
    total_PC[rows, y_P] = total_PC[rows, z_P] = -np.inf
    edits = {}
    for row, best in enumerate(total_PC.argmax(axis=1).tolist()):
        gain = float(total_PC[row, best])
        if not np.isfinite(gain):
            continue
        i = context.places[int(long_L[first_P[row]])]
        first, second = context.segments[i : i + 2]
        start = first.start + int(low_PC[row, best])
        stop = second.start + int(high_PC[row, best])
        parts = [
            Segment(first.start, start, first.label),
            Segment(start, stop, best),
            Segment(stop, second.stop, second.label),
        ]
        edits[i] = [
            Edit(
                kind=EditKind.INSERT,
                start=start,
                stop=stop,
                label=first.label,
                last_label=second.label,
                new_label=best,
                place=second.start,
                segments=_replaced(context.segments, i, i + 2, parts),
                changed_share=(stop - start) / (second.stop - first.start),
                quick_gain=gain,
            )
        ]
    return edits


def _best_places(
    sum_TC: FloatArray, label: int
) -> tuple[Sequence[FloatArray], Sequence[IntArray], Sequence[IntArray]]:
    """Gain, start and stop, (C,) each, of every class's best step inside, at the start, at the end.

    `sum_TC` (n + 1, C) are sums over the frames before, from the segment's start to its stop.
    """
    over_TC = (sum_TC - sum_TC[0]) - (sum_TC[:, label] - sum_TC[0, label])[:, None]
    gain_C, low_C, high_C = largest_intervals(over_TC[1:-1])
    starts, ends = largest_starts(over_TC), largest_ends(over_TC)
    gains, lows = (gain_C, starts[0], ends[0]), (low_C + 1, starts[1], ends[1])
    return gains, lows, (high_C + 1, starts[2], ends[2])


def _boundaries(context: _Context, i: int) -> Iterator[Edit]:
    """The best other place between segments i and i + 1; both keep a frame."""
    first, second = context.segments[i], context.segments[i + 1]
    place, num = second.start, second.stop - first.start
    if num < 3:
        return
    sum_TC = context.sum_TC[first.start : second.stop + 1]
    # Of a boundary at t: the frames before t as the first name, those after as the second.
    total_T = sum_TC[1:-1, first.label] - sum_TC[1:-1, second.label]
    duration_T = context.durations(first.label, slice(1, num)) + context.durations(
        second.label, slice(num - 1, 0, -1)
    )
    score_T = EMISSION_WEIGHT * total_T + DURATION_WEIGHT * duration_T
    now = place - first.start - 1
    gain_T = score_T - score_T[now]
    gain_T[now] = -np.inf
    best = int(gain_T.argmax())
    new_place = first.start + 1 + best
    start, stop = min(place, new_place), max(place, new_place)
    forward = new_place > place
    yield Edit(
        kind=EditKind.BOUNDARY,
        start=start,
        stop=stop,
        label=second.label if forward else first.label,
        last_label=second.label if forward else first.label,
        new_label=first.label if forward else second.label,
        place=new_place,
        segments=(
            *context.segments[:i],
            Segment(first.start, new_place, first.label),
            Segment(new_place, second.stop, second.label),
            *context.segments[i + 2 :],
        ),
        changed_share=(stop - start) / (second if forward else first).num_frames,
        quick_gain=float(gain_T[best]),
    )


def _swap(context: _Context, i: int) -> Edit:
    """Segments i and i + 1 in the other order, each with its own frames."""
    first, second = context.segments[i], context.segments[i + 1]
    cut = first.start + second.num_frames
    parts = [Segment(first.start, cut, second.label), Segment(cut, second.stop, first.label)]
    return Edit(
        kind=EditKind.SWAP,
        start=first.start,
        stop=second.stop,
        label=first.label,
        last_label=second.label,
        new_label=second.label,
        place=second.start,
        segments=_replaced(context.segments, i, i + 2, parts),
        changed_share=1.0,
        quick_gain=0.0,
    )


def _relabelling(
    context: _Context,
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
        segments=_replaced(context.segments, i, i + 1, parts),
        changed_share=(stop - start) / own.num_frames,
        quick_gain=gain,
    )


def _replaced(
    segments: tuple[Segment, ...], first: int, last: int, parts: list[Segment]
) -> tuple[Segment, ...]:
    """An annotation with other segments in the place of some; only their neighbours can merge."""
    low, high = max(0, first - 1), last + 1
    around = merged([*segments[low:first], *parts, *segments[last:high]])
    return (*segments[:low], *around, *segments[high:])


def largest_intervals(sum_TC: FloatArray) -> tuple[FloatArray, IntArray, IntArray]:
    """Per class the interval of at least LEAST_FRAMES with the largest sum: sum, start, stop (C,).

    `sum_TC` (n + 1, C) are sums over the frames before. Sum -inf where there is no such interval.
    """
    num, C = len(sum_TC) - 1, sum_TC.shape[1]
    if num < LEAST_FRAMES:
        nothing = np.zeros(C, dtype=int)
        return np.full(C, -np.inf), nothing, nothing + LEAST_FRAMES
    starts_TC = sum_TC[: num + 1 - LEAST_FRAMES]
    least_TC = np.minimum.accumulate(starts_TC, axis=0)
    gain_TC = sum_TC[LEAST_FRAMES:] - least_TC
    stop_C = gain_TC.argmax(axis=0)
    columns = np.arange(C)
    # The first start at which the sum before is as low as it ever was up to there.
    start_C = (starts_TC == least_TC[stop_C, columns]).argmax(axis=0)
    return gain_TC[stop_C, columns], start_C, stop_C + LEAST_FRAMES


def largest_starts(sum_TC: FloatArray) -> tuple[FloatArray, IntArray, IntArray]:
    """The same among intervals that begin with the segment and leave a frame of it."""
    inner_TC = sum_TC[LEAST_FRAMES:-1]
    stop_C = inner_TC.argmax(axis=0)
    gain_C = inner_TC[stop_C, np.arange(sum_TC.shape[1])]
    return gain_C, np.zeros_like(stop_C), stop_C + LEAST_FRAMES


def largest_ends(sum_TC: FloatArray) -> tuple[FloatArray, IntArray, IntArray]:
    """The same among intervals that end with the segment and leave a frame of it."""
    num = len(sum_TC) - 1
    inner_TC = sum_TC[-1] - sum_TC[1 : num + 1 - LEAST_FRAMES]
    start_C = inner_TC.argmax(axis=0)
    gain_C = inner_TC[start_C, np.arange(sum_TC.shape[1])]
    return gain_C, start_C + 1, np.full_like(start_C, num)
