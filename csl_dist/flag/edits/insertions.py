"""Candidates that insert a step: inside a segment, at one of its ends, or between two segments."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from csl_dist.data.segments import Segment
from csl_dist.flag.edits.edit import (
    DURATION_WEIGHT,
    EMISSION_WEIGHT,
    Context,
    Edit,
    relabelling,
    replaced,
)
from csl_dist.types import EditKind, FloatArray, IntArray

LEAST_FRAMES = 3
"""Frames of the shortest step that may be inserted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BestSteps:
    """The best step of every class in each segment that has room for one.

    Along the second axis: inside, at the start, at the end. Frames are counted from the segment's
    start.
    """

    places_L: IntArray
    """Of these segments, among the labelled ones."""
    gain_L3C: FloatArray
    low_L3C: IntArray
    high_L3C: IntArray


def best_steps(context: Context) -> BestSteps:
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
    return BestSteps(
        places_L=long_L,
        gain_L3C=gain_L3C,
        low_L3C=low_L3C.astype(int),
        high_L3C=high_L3C.astype(int),
    )


def steps_within(context: Context, steps: BestSteps) -> dict[int, list[Edit]]:
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
            edit = relabelling(context, i, EditKind.INSERT, low, first + high, best, gain)
            found.append((place, edit))
        inside = [edit for place, edit in found if place == 0]
        ends = [edit for place, edit in found if place > 0]
        edits[i] = inside + ([max(ends, key=lambda edit: edit.quick_gain)] if ends else [])
    return edits


def steps_between(context: Context, steps: BestSteps, pairs: set[int]) -> dict[int, list[Edit]]:
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
                segments=replaced(context.segments, i, i + 2, parts),
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
