"""Candidates and their evidence, one after the other, as plainly as they can be written.

What `csl_dist.flag.edits` computes for many at once must be the same to the last bit: an audit may
not change because it was made faster.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from csl_dist.data.segments import Segment, labelled_chains, neighbour_pairs
from csl_dist.flag.edits.edit import DURATION_WEIGHT, EMISSION_WEIGHT, Edit
from csl_dist.flag.edits.emission import Emission
from csl_dist.flag.edits.evidence import (
    BOUND,
    COLUMNS,
    LEAST_INSERTED_ORDER,
    MOST_WRITTEN_ORDER,
    USUAL_SIZE,
)
from csl_dist.flag.edits.insertions import (
    LEAST_FRAMES,
    largest_ends,
    largest_intervals,
    largest_starts,
)
from csl_dist.flag.edits.statistics import (
    BINS,
    MOST_COUNTED,
    Statistics,
    duration_terms,
    merged,
    usual_log_seconds,
)
from csl_dist.types import UNLABELLED, EditKind, FloatArray, IntArray


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
            edits += _between(context, i)
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


def _between(context: _Context, i: int) -> Iterator[Edit]:
    """The best step between segments i and i + 1, of frames of both."""
    first, second = context.segments[i], context.segments[i + 1]
    C, G = context.statistics.num_classes, context.statistics.bigram_CC
    if min(first.num_frames, second.num_frames) < LEAST_FRAMES + 1:
        return
    over_TC, over_next_TC = (
        (sum_TC - sum_TC[0]) - (sum_TC[:, own.label] - sum_TC[0, own.label])[:, None]
        for own in (first, second)
        for sum_TC in [context.emission.sum_TC[own.start : own.stop + 1]]
    )
    end_C, low_C, _ = largest_ends(over_TC)
    start_C, _, high_C = largest_starts(over_next_TC)
    duration_C = (
        context.durations(np.arange(C), (first.num_frames - low_C + high_C).astype(float))
        + context.durations(first.label, low_C.astype(float))
        + context.durations(second.label, (second.num_frames - high_C).astype(float))
        - context.durations(first.label, float(first.num_frames))
        - context.durations(second.label, float(second.num_frames))
    )
    grammar_C = G[first.label, :C] + G[:C, second.label] - G[first.label, second.label]
    total_C = EMISSION_WEIGHT * (end_C + start_C) + grammar_C + DURATION_WEIGHT * duration_C
    total_C[[first.label, second.label]] = -np.inf
    total_C[np.minimum(end_C, start_C) <= 0] = -np.inf
    best = int(total_C.argmax())
    if not np.isfinite(total_C[best]):
        return
    start, stop = first.start + int(low_C[best]), second.start + int(high_C[best])
    parts = [
        Segment(first.start, start, first.label),
        Segment(start, stop, best),
        Segment(stop, second.stop, second.label),
    ]
    yield Edit(
        kind=EditKind.INSERT,
        start=start,
        stop=stop,
        label=first.label,
        last_label=second.label,
        new_label=best,
        place=second.start,
        segments=tuple(merged([*context.segments[:i], *parts, *context.segments[i + 2 :]])),
        changed_share=(stop - start) / (first.num_frames + second.num_frames),
        quick_gain=float(total_C[best]),
    )


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
        last_label=second.label if forward else first.label,
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
        last_label=second.label,
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
        last_label=own.label,
        new_label=new_label,
        place=start,
        segments=tuple(merged([*context.segments[:i], *parts, *context.segments[i + 1 :]])),
        changed_share=(stop - start) / own.num_frames,
        quick_gain=float(gain),
    )


def sequence_terms(
    segments: Sequence[Segment], statistics: Statistics, *, fps: float
) -> FloatArray:
    """How usual a whole annotation is: a sum for each of TERMS; higher is more usual."""
    C = statistics.num_classes
    chains = labelled_chains(segments)
    bigram = trigram = 0.0
    for chain in chains:
        names = [C, C, *(s.label for s in chain), C + 1]
        bigram += float(statistics.bigram_CC[names[1:-1], names[2:]].sum())
        trigram += float(statistics.trigram_CCC[names[:-2], names[1:-1], names[2:]].sum())
    labelled = [s for chain in chains for s in chain]
    names_S = np.array([s.label for s in labelled], dtype=int)
    seconds_S = np.array([s.num_frames for s in labelled]) / fps
    duration = float(duration_terms(statistics, names_S, seconds_S).sum())
    count_C = np.minimum(np.bincount(names_S, minlength=C), MOST_COUNTED)
    count = float(statistics.count_CK[np.arange(C), count_C].sum())
    before_SS = statistics.before_CC[names_S[:, None], names_S[None]]
    precedence = float(np.triu(before_SS, k=1).sum())
    return np.array([bigram, trigram, duration, count, precedence])


def evidence_rows(
    edits: Sequence[Edit],
    segments: Sequence[Segment],
    emission: Emission,
    statistics: Statistics,
    *,
    fps: float,
) -> FloatArray:
    """Evidence (N, K) of a video's candidates."""
    usual = usual_log_seconds(statistics)
    before = sequence_terms(segments, statistics, fps=fps)
    probability_TC = np.exp(emission.logp_TC)
    entropy_T = -(probability_TC * emission.logp_TC).sum(axis=1)
    entropy_sum_T = np.concatenate([[0.0], entropy_T.cumsum()])
    num_frames = len(emission.logp_TC)
    bins = [t * BINS // num_frames for t in range(num_frames)]
    position_CT = statistics.position_CB[:, bins]
    rows = [
        np.concatenate(
            [
                _emission_evidence(edit, emission, entropy_sum_T),
                _bounded(edit, sequence_terms(edit.segments, statistics, fps=fps) - before),
                [
                    _position_evidence(edit, position_CT),
                    np.log(edit.num_frames / fps) - usual + np.log(USUAL_SIZE),
                    edit.changed_share,
                ],
            ]
        )
        for edit in edits
    ]
    return np.array(rows).reshape(len(edits), len(COLUMNS))


def _bounded(edit: Edit, gain_K: FloatArray) -> list[float]:
    """Of bigram, trigram, duration, count, precedence; the first two have bounds of their own."""
    bounds = [(-BOUND, BOUND)] * 5
    if edit.kind is EditKind.INSERT:
        bounds[:2] = [(LEAST_INSERTED_ORDER, BOUND)] * 2
    if edit.kind in (EditKind.RENAME, EditKind.DELETE):
        bounds[:2] = [(-BOUND, MOST_WRITTEN_ORDER)] * 2
    return [min(max(float(x), low), high) for x, (low, high) in zip(gain_K, bounds, strict=True)]


def _emission_evidence(edit: Edit, emission: Emission, entropy_sum_T: FloatArray) -> list[float]:
    a, b = edit.start, edit.stop
    if edit.kind is EditKind.SWAP:
        return _swap_emission(edit, emission, entropy_sum_T)
    y, z, c = edit.label, edit.last_label, edit.new_label
    m = edit.place if y != z else a
    num, num_frames = b - a, len(emission.logp_TC)
    own_T = np.concatenate([emission.logp_TC[a:m, y], emission.logp_TC[m:b, z]])
    gain_T = emission.logp_TC[a:b, c] - own_T
    over_T = emission.sum_TC[:, c] - emission.sum_TC[:, y]
    over_last_T = emission.sum_TC[:, c] - emission.sum_TC[:, z]
    total = float((over_last_T[b] - over_last_T[m]) + (over_T[m] - over_T[a]))
    first, last = max(0, a - num), min(num_frames, b + num)
    num_outside = (a - first) + (last - b)
    outside = float((over_T[a] - over_T[first]) + (over_last_T[last] - over_last_T[b]))
    contrast = total / num - outside / num_outside if num_outside else 0.0
    family_F = _span_gain(emission.family_sum_FTC, (a, m, b), (y, z, c))
    late_E = _span_gain(emission.late_sum_ETC, (a, m, b), (y, z, c))
    root = float(np.sign(total) * np.sqrt(abs(total)))
    return [
        total / num,
        _low_third(gain_T),
        min(max(root, -2 * BOUND), 2 * BOUND),
        min(max(float(family_F.min()), -BOUND), BOUND),
        np.count_nonzero(late_E > 0) / len(late_E),
        float(
            emission.sum_TC[m, z]
            - emission.sum_TC[b, z]
            + emission.sum_TC[a, y]
            - emission.sum_TC[m, y]
        )
        / num,
        float(entropy_sum_T[b] - entropy_sum_T[a]) / num,
        contrast,
    ]


def _low_third(values_T: FloatArray) -> float:
    """Mean of the lowest third, at least of one."""
    count = max(1, len(values_T) // 3)
    return float(np.partition(values_T, count - 1)[:count].sum()) / count


def _swap_emission(edit: Edit, emission: Emission, entropy_sum_T: FloatArray) -> list[float]:
    """A swap leaves every frame its label: all that counts is how odd these look where they are."""
    a, b, cut = edit.start, edit.stop, edit.place
    own_T = np.concatenate(
        [emission.logp_TC[a:cut, edit.label], emission.logp_TC[cut:b, edit.new_label]]
    )
    rival_T = emission.logp_TC[a:b].max(axis=1)
    gain_T = rival_T - own_T
    doubt = float(-own_T.mean())
    entropy = float(entropy_sum_T[b] - entropy_sum_T[a]) / (b - a)
    return [float(gain_T.mean()), _low_third(gain_T), 0.0, 0.0, 0.0, doubt, entropy, 0.0]


def _position_evidence(edit: Edit, position_CT: FloatArray) -> float:
    a, b = edit.start, edit.stop
    if edit.kind is not EditKind.SWAP:
        m = edit.place if edit.label != edit.last_label else a
        own_T = np.concatenate([position_CT[edit.label, a:m], position_CT[edit.last_label, m:b]])
        return float((position_CT[edit.new_label, a:b] - own_T).mean())
    cut, new_cut = edit.place, a + b - edit.place
    now = position_CT[edit.label, a:cut].sum() + position_CT[edit.new_label, cut:b].sum()
    then = position_CT[edit.new_label, a:new_cut].sum() + position_CT[edit.label, new_cut:b].sum()
    return float((then - now) / (b - a))


def _span_gain(
    sum_FTC: FloatArray, places: tuple[int, int, int], labels: tuple[int, int, int]
) -> FloatArray:
    """Mean gain per frame (F,) of class c in frames [a, b), over y up to m, and then over z."""
    (a, m, b), (y, z, c) = places, labels
    c_F = sum_FTC[:, b, c] - sum_FTC[:, a, c]
    own_F = (sum_FTC[:, b, z] - sum_FTC[:, m, z]) + (sum_FTC[:, m, y] - sum_FTC[:, a, y])
    gain_F: FloatArray = (c_F - own_F) / (b - a)
    return gain_F
