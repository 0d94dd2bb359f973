"""Candidate edits of an annotation: the best of each kind for every segment, boundary and pair.

A candidate says which frames would change, to what, and how the segments would then be. It makes no
claim: `evidence.py` weighs it. The quick gain that chooses among places and names is
0.3 * sum of emission + bigram + 0.5 * duration.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from csl_dist.data.segments import Segment, neighbour_pairs
from csl_dist.flag.edits.emission import Emission
from csl_dist.flag.edits.statistics import Statistics, duration_terms, merged
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
    """A step is put inside a segment, or at one of its ends."""
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
    new_label: int
    """For a swap: the name of the second segment."""
    place: int
    """For a boundary: where it would be; for a swap: where it is; else the start."""
    segments: tuple[Segment, ...]
    """The whole annotation after the edit."""
    changed_share: float
    """Frames that change, of the segment or segments that the edit is about."""
    quick_gain: float

    @property
    def num_frames(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True, slots=True)
class _Context:
    """One video while candidates are looked for."""

    segments: list[Segment]
    emission: Emission
    statistics: Statistics
    fps: float

    def name(self, i: int, *, otherwise: int) -> int:
        """Label of segment i; start or end state where there is none."""
        if not 0 <= i < len(self.segments) or self.segments[i].label == UNLABELLED:
            return otherwise
        return self.segments[i].label

    def around(self, i: int) -> tuple[int, int]:
        """Labels before and after segment i, or start and end."""
        C = self.statistics.num_classes
        return self.name(i - 1, otherwise=C), self.name(i + 1, otherwise=C + 1)

    def sums_C(self, start: int, stop: int) -> FloatArray:
        sums_C: FloatArray = self.emission.sum_TC[stop] - self.emission.sum_TC[start]
        return sums_C

    def durations(self, label: int | IntArray, frames: FloatArray | float) -> FloatArray:
        seconds = np.maximum(frames, 0.5) / self.fps
        return duration_terms(self.statistics, np.asarray(label, dtype=int), seconds)


def candidate_edits(
    segments: Sequence[Segment], emission: Emission, statistics: Statistics, *, fps: float
) -> list[Edit]:
    """Every candidate of a video, in the order of its segments."""
    context = _Context(list(segments), emission, statistics, fps)
    pairs = set(neighbour_pairs(segments))
    edits: list[Edit] = []
    for i, segment in enumerate(segments):
        if segment.label == UNLABELLED:
            continue
        edits += _renames(context, i)
        edits += _deletions(context, i)
        edits += _insertions(context, i)
        if i in pairs:
            edits += _boundaries(context, i)
            edits.append(_swap(context, i))
    return edits


def _renames(context: _Context, i: int) -> Iterator[Edit]:
    """The best other name for segment i."""
    own, (before, after) = context.segments[i], context.around(i)
    C, G = context.statistics.num_classes, context.statistics.bigram_CC
    emission_C = context.sums_C(own.start, own.stop)
    grammar_C = G[before, :C] + G[:C, after]
    duration_C = context.durations(np.arange(C), float(own.num_frames))
    total_C = EMISSION_WEIGHT * emission_C + grammar_C + DURATION_WEIGHT * duration_C
    # The bigram of a class with itself is impossible, so that only the own name is left to bar.
    gain_C = total_C - total_C[own.label]
    gain_C[own.label] = -np.inf
    best = int(gain_C.argmax())
    if np.isfinite(gain_C[best]):
        yield _relabelling(context, i, EditKind.RENAME, own.start, own.stop, best, gain_C[best])


def _deletions(context: _Context, i: int) -> Iterator[Edit]:
    """Segment i as part of the neighbour that gains more by it."""
    own, (before, after) = context.segments[i], context.around(i)
    C, G = context.statistics.num_classes, context.statistics.bigram_CC
    emission_C = context.sums_C(own.start, own.stop)
    joined = 0.0 if before == after else G[before, after]
    grammar = joined - G[before, own.label] - G[own.label, after]
    gains: dict[int, float] = {}
    for neighbour, k in ((before, i - 1), (after, i + 1)):
        if neighbour >= C:
            continue
        frames = context.segments[k].num_frames
        duration = (
            context.durations(neighbour, float(frames + own.num_frames))
            - context.durations(neighbour, float(frames))
            - context.durations(own.label, float(own.num_frames))
        )
        gain = EMISSION_WEIGHT * (emission_C[neighbour] - emission_C[own.label])
        gains[neighbour] = float(gain + grammar + DURATION_WEIGHT * duration)
    if gains and np.isfinite(max(gains.values())):
        best = max(gains, key=lambda name: gains[name])
        yield _relabelling(context, i, EditKind.DELETE, own.start, own.stop, best, gains[best])


def _insertions(context: _Context, i: int) -> Iterator[Edit]:
    """The best step inside segment i, and the best one at one of its ends."""
    own, (before, after) = context.segments[i], context.around(i)
    C, G = context.statistics.num_classes, context.statistics.bigram_CC
    if own.num_frames < LEAST_FRAMES + 1:
        return
    sum_TC = context.emission.sum_TC[own.start : own.stop + 1]
    over_TC = (sum_TC - sum_TC[0]) - (sum_TC[:, own.label] - sum_TC[0, own.label])[:, None]
    y, num = own.label, own.num_frames
    names_C = np.arange(C)
    to_y_C, from_y_C = G[:C, y], G[y, :C]
    places = {
        "inside": (*largest_intervals(over_TC[1:-1]), from_y_C + to_y_C, ()),
        "start": (*largest_starts(over_TC), G[before, :C] + to_y_C - G[before, y], (before,)),
        "end": (*largest_ends(over_TC), from_y_C + G[:C, after] - G[y, after], (after,)),
    }
    best_at: dict[str, Edit] = {}
    for where, (gain_C, low_C, high_C, grammar_C, barred) in places.items():
        offset = 1 if where == "inside" else 0
        low_C, high_C = low_C + offset, high_C + offset
        duration_C = (
            context.durations(names_C, (high_C - low_C).astype(float))
            + np.where(low_C > 0, context.durations(y, low_C.astype(float)), 0.0)
            + np.where(high_C < num, context.durations(y, (num - high_C).astype(float)), 0.0)
            - context.durations(y, float(num))
        )
        total_C = EMISSION_WEIGHT * gain_C + grammar_C + DURATION_WEIGHT * duration_C
        total_C[[c for c in (y, *barred) if c < C]] = -np.inf
        best = int(np.nan_to_num(total_C, nan=-np.inf).argmax())
        if np.isfinite(total_C[best]):
            best_at[where] = _relabelling(
                context,
                i,
                EditKind.INSERT,
                own.start + int(low_C[best]),
                own.start + int(high_C[best]),
                best,
                total_C[best],
            )
    if "inside" in best_at:
        yield best_at["inside"]
    ends = [best_at[where] for where in ("start", "end") if where in best_at]
    if ends:
        yield max(ends, key=lambda edit: edit.quick_gain)


def _boundaries(context: _Context, i: int) -> Iterator[Edit]:
    """The best other place between segments i and i + 1; both keep a frame."""
    first, second = context.segments[i], context.segments[i + 1]
    place = second.start
    sum_TC = context.emission.sum_TC[first.start : second.stop + 1]
    # Of a boundary at t: the frames before t as the first name, those after as the second.
    total_T = sum_TC[:, first.label] - sum_TC[:, second.label]
    t_T = np.arange(1, len(sum_TC) - 1)
    duration_T = context.durations(first.label, t_T.astype(float)) + context.durations(
        second.label, (len(sum_TC) - 1 - t_T).astype(float)
    )
    score_T = EMISSION_WEIGHT * total_T[1:-1] + DURATION_WEIGHT * duration_T
    now = place - first.start - 1
    gain_T = score_T - score_T[now]
    gain_T[now] = -np.inf
    if len(gain_T) < 2:
        return
    new_place = first.start + 1 + int(gain_T.argmax())
    start, stop = min(place, new_place), max(place, new_place)
    forward = new_place > place
    segments = [
        *context.segments[:i],
        Segment(first.start, new_place, first.label),
        Segment(new_place, second.stop, second.label),
        *context.segments[i + 2 :],
    ]
    yield Edit(
        kind=EditKind.BOUNDARY,
        start=start,
        stop=stop,
        label=second.label if forward else first.label,
        new_label=first.label if forward else second.label,
        place=new_place,
        segments=tuple(segments),
        changed_share=(stop - start) / (second if forward else first).num_frames,
        quick_gain=float(gain_T.max()),
    )


def _swap(context: _Context, i: int) -> Edit:
    """Segments i and i + 1 in the other order, each with its own frames."""
    first, second = context.segments[i], context.segments[i + 1]
    cut = first.start + second.num_frames
    segments = merged(
        [
            *context.segments[:i],
            Segment(first.start, cut, second.label),
            Segment(cut, second.stop, first.label),
            *context.segments[i + 2 :],
        ]
    )
    return Edit(
        kind=EditKind.SWAP,
        start=first.start,
        stop=second.stop,
        label=first.label,
        new_label=second.label,
        place=second.start,
        segments=tuple(segments),
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
        new_label=new_label,
        place=start,
        segments=tuple(merged([*context.segments[:i], *parts, *context.segments[i + 1 :]])),
        changed_share=(stop - start) / own.num_frames,
        quick_gain=float(gain),
    )


def largest_intervals(sum_TC: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
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


def largest_starts(sum_TC: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The same among intervals that begin with the segment and leave a frame of it."""
    inner_TC = sum_TC[LEAST_FRAMES:-1]
    stop_C = inner_TC.argmax(axis=0)
    gain_C = inner_TC[stop_C, np.arange(sum_TC.shape[1])]
    return gain_C, np.zeros_like(stop_C), stop_C + LEAST_FRAMES


def largest_ends(sum_TC: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The same among intervals that end with the segment and leave a frame of it."""
    num = len(sum_TC) - 1
    inner_TC = sum_TC[-1] - sum_TC[1 : num + 1 - LEAST_FRAMES]
    start_C = inner_TC.argmax(axis=0)
    gain_C = inner_TC[start_C, np.arange(sum_TC.shape[1])]
    return gain_C, start_C + 1, np.full_like(start_C, num)
