"""Candidate edits of an annotation: the best of each kind for every segment, boundary and pair.

A candidate says which frames would change, to what, and how the segments would then be. It makes no
claim: `evidence.py` weighs it. The quick gain chooses among places and names.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from csl_dist.data.segments import Segment, neighbour_pairs
from csl_dist.flag.edits.edit import (
    DURATION_WEIGHT,
    EMISSION_WEIGHT,
    Context,
    Edit,
    relabelling,
    replaced,
)
from csl_dist.flag.edits.emission import Emission
from csl_dist.flag.edits.insertions import best_steps, steps_between, steps_within
from csl_dist.flag.edits.statistics import Statistics
from csl_dist.types import EditKind, IntArray


def candidate_edits(
    segments: Sequence[Segment], emission: Emission, statistics: Statistics, *, fps: float
) -> list[Edit]:
    """Every candidate of a video, in the order of its segments."""
    context = Context(segments, emission, statistics, fps)
    pairs = set(neighbour_pairs(segments))
    renames, deletions = _renames(context), _deletions(context)
    steps = best_steps(context)
    within, between = steps_within(context, steps), steps_between(context, steps, pairs)
    edits: list[Edit] = []
    for i in context.places:
        edits += renames.get(i, [])
        edits += deletions.get(i, [])
        edits += within.get(i, [])
        if i in pairs:
            edits += between.get(i, [])
            edits += _boundaries(context, i)
            edits.append(_swap(context, i))
    return edits


def _renames(context: Context) -> dict[int, list[Edit]]:
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
        i: [relabelling(context, i, EditKind.RENAME, *context.segments[i][:2], best, gain)]
        for i, best, gain in zip(
            context.places, best_L.tolist(), gain_LC[rows, best_L].tolist(), strict=True
        )
        if np.isfinite(gain)
    }


def _deletions(context: Context) -> dict[int, list[Edit]]:
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
            edits[i] = [relabelling(context, i, EditKind.DELETE, *span, best, by_name[best])]
    return edits


def _boundaries(context: Context, i: int) -> Iterator[Edit]:
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


def _swap(context: Context, i: int) -> Edit:
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
        segments=replaced(context.segments, i, i + 2, parts),
        changed_share=1.0,
        quick_gain=0.0,
    )
