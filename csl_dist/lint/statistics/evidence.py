"""What the order of steps says against each segment, from the videos of other groups.

All scores are in nats; higher is more suspicious.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from csl_dist.lint.statistics.grammar import Grammar, first_occurrences
from csl_dist.types import BoolArray, FloatArray, IntArray

MIN_PROCEDURE_VIDEOS = 5
"""A procedure with fewer other videos takes precedence from all videos."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderEvidence:
    """Columns over the segments of one video, or of all."""

    surprise: FloatArray
    """How unlikely the transitions into and out of the segment are, mean."""
    swap: FloatArray
    """Gain in log-likelihood by the better swap with a neighbour; negative where order is usual."""
    precedence: FloatArray
    """Sum over other steps of the video of log((1-p)/p), small terms dropped."""
    unanimous: IntArray
    """Other steps of the video with which all other videos have it the other way round."""
    order: FloatArray
    """One score of order: precedence, and more of swap as steps repeat or transitions are sure."""
    inserted: FloatArray
    """Gain in log-likelihood if the segment were not there."""
    missing: FloatArray
    """Gain in log-likelihood if a step that is not there stood before the segment; at least 0."""
    missing_label: IntArray
    """Which step that is, a state of the grammar's tables; -1 for none."""


FIELDS = (
    *("surprise", "swap", "precedence", "unanimous", "order", "inserted", "missing"),
    "missing_label",
)
UNANIMOUS_VIDEOS = 8
"""Other videos with both steps before they can be unanimous."""


def order_evidence(grammar: Grammar) -> OrderEvidence:
    """Evidence on every segment, each group judged by the others."""
    corpus = grammar.corpus
    columns: dict[str, Any] = {
        name: np.zeros(corpus.num_segments, np.float32) for name in FIELDS[:-1]
    }
    columns["missing_label"] = np.full(corpus.num_segments, -1, np.int32)
    for videos in corpus.units():
        with grammar.without(videos):
            for video in videos[np.diff(corpus.offsets_V)[videos] > 0].tolist():
                own = video_evidence(grammar, grammar.tables_of(video), grammar.codes(video))
                for name in FIELDS:
                    columns[name][corpus.span(video)] = getattr(own, name)
    return OrderEvidence(**columns)


def order_scores(grammar: Grammar) -> FloatArray:
    """`OrderEvidence.order` (N,) alone, of every segment, which takes half as long."""
    corpus = grammar.corpus
    order_N = np.zeros(corpus.num_segments, np.float32)
    for videos in corpus.units():
        with grammar.without(videos):
            for video in videos[np.diff(corpus.offsets_V)[videos] > 0].tolist():
                tables, codes = grammar.tables_of(video), grammar.codes(video)
                precedence, _ = precedence_violations(grammar, tables, codes)
                swap = segment_swaps(swap_gains(grammar, tables, padded(grammar, codes)))
                order_N[corpus.span(video)] = _order(grammar, tables, swap, precedence)
    return order_N


def _order(
    grammar: Grammar, tables: tuple[int, ...], swap: FloatArray, precedence: FloatArray
) -> FloatArray:
    weight = swap_weight(grammar, tables)
    return weight * swap + precedence_weight(grammar, weight) * precedence


def video_evidence(grammar: Grammar, tables: tuple[int, ...], codes: IntArray) -> OrderEvidence:
    """Evidence on one sequence of classes under the present counts."""
    states = padded(grammar, codes)
    log = grammar.log_transition(tables, states[:-2], states[1:-1], states[2:])
    precedence, unanimous = precedence_violations(grammar, tables, codes)
    swap = segment_swaps(swap_gains(grammar, tables, states))
    missing, missing_label = missing_steps(grammar, tables, states)
    return OrderEvidence(
        surprise=-(log[:-2] + log[1:-1]) / 2,
        swap=swap,
        precedence=precedence,
        unanimous=unanimous,
        order=_order(grammar, tables, swap, precedence),
        inserted=removal_gains(grammar, tables, states),
        missing=missing,
        missing_label=missing_label,
    )


def padded(grammar: Grammar, codes: IntArray) -> IntArray:
    """Classes with the start and the end twice, so that every segment has two states around it."""
    edge = [grammar.tables.edge] * 2
    return np.concatenate([edge, codes, edge])


def likelihood_gains(
    grammar: Grammar, tables: tuple[int, ...], then: Sequence[IntArray], now: Sequence[IntArray]
) -> FloatArray:
    """Log-likelihood of states in a row minus that of others; a row is an entry of the columns.

    The first two states are given. All are asked for in one call, which takes as long for a few.
    """
    triples = (
        np.stack([*then[k : len(then) - 2 + k], *now[k : len(now) - 2 + k]], axis=1)
        for k in range(3)
    )
    log = grammar.log_transition(tables, *triples)
    return log[:, : len(then) - 2].sum(axis=1) - log[:, len(then) - 2 :].sum(axis=1)


def swap_weight(grammar: Grammar, tables: tuple[int, ...]) -> float:
    """How much a swap with a neighbour counts in a procedure, 0 to 1."""
    least, full = grammar.constants.predictable
    predictable = (float(grammar.predictability[tables[-1]]) - least) / (full - least)
    return min(1.0, max(repeat_weight(grammar, tables), predictable))


def repeat_weight(grammar: Grammar, tables: tuple[int, ...]) -> float:
    """How much it counts for steps that come again and again, 0 to 1."""
    return min(1.0, grammar.repeated_share(tables[-1]) / grammar.constants.repeats_for_swap)


def precedence_weight(grammar: Grammar, swap_weight: float) -> float:
    return 1 - grammar.constants.precedence_given_up * swap_weight


def swap_gains(grammar: Grammar, tables: tuple[int, ...], states: IntArray) -> FloatArray:
    """Gain of swapping each two neighbouring segments; one shorter than the segments."""
    now = [states[k : len(states) - 5 + k] for k in range(6)]
    first, before, left, right, after, last = now
    gains = likelihood_gains(grammar, tables, [first, before, right, left, after, last], now)
    # Where the swap would join two segments, fewer transitions alone would make it likelier.
    return np.where((before == right) | (left == after), np.minimum(gains, 0), gains)


def removal_gains(grammar: Grammar, tables: tuple[int, ...], states: IntArray) -> FloatArray:
    """Gain if a segment were not there, for each."""
    now = [states[k : len(states) - 4 + k] for k in range(5)]
    first, before, _, after, last = now
    return likelihood_gains(grammar, tables, [first, before, after, last], now)


def segment_swaps(gains: FloatArray) -> FloatArray:
    """The better of each segment's two swaps; 0 for the only segment of a video."""
    if not len(gains):
        return np.zeros(1)
    return np.concatenate([gains[:1], np.maximum(gains[:-1], gains[1:]), gains[-1:]])


def precedence_table(grammar: Grammar, tables: tuple[int, ...]) -> int:
    """The procedure's table, or that of all videos where the procedure has too few others."""
    own = tables[-1]
    return own if grammar.num_videos(own) >= MIN_PROCEDURE_VIDEOS else 0


def precedence_shares(
    grammar: Grammar, table: int, classes: IntArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """For classes in order: counts of this order, of both, and (count + 0.5) / (total + 1).

    Square; entry i, j with i < j is of class i before class j, and mirrored below.
    """
    keys, _ = grammar.tables.keys(table, classes[:, None], classes[None, :])
    before = grammar.earlier[keys]
    total = before + before.T
    upper = _above_diagonal(len(classes))
    here = np.where(upper, before, before.T)
    return here, total, (here + 0.5) / (total + 1)


@cache
def _above_diagonal(size: int) -> BoolArray:
    return np.triu(np.ones((size, size), bool), 1)


def precedence_violations(
    grammar: Grammar, tables: tuple[int, ...], codes: IntArray
) -> tuple[FloatArray, IntArray]:
    """How much the order with every other step of the video contradicts other videos.

    And with how many steps it contradicts all of them. The first segment of a class carries both;
    later ones have 0.
    """
    classes, places = first_occurrences(codes)
    here, total, share = precedence_shares(grammar, precedence_table(grammar, tables), classes)
    terms = np.log((1 - share) / share)
    np.fill_diagonal(terms, 0)
    violations, least = np.zeros(len(codes)), grammar.constants.least_violation
    violations[places] = np.where(terms >= least, terms, 0).sum(axis=1)
    unanimous = np.zeros(len(codes), np.int64)
    unanimous[places] = ((here == 0) & (total >= UNANIMOUS_VIDEOS)).sum(axis=1)
    return violations, unanimous


def insertion_gains(
    grammar: Grammar, tables: tuple[int, ...], states: IntArray, state: int
) -> FloatArray:
    """Gain in log-likelihood of putting a step on each boundary, the start and end included."""
    now = [states[k : len(states) - 3 + k] for k in range(4)]
    first, before, after, last = now
    added = np.full(len(first), state)
    return likelihood_gains(grammar, tables, [first, before, added, after, last], now)


def missing_steps(
    grammar: Grammar, tables: tuple[int, ...], states: IntArray
) -> tuple[FloatArray, IntArray]:
    """Gain of putting a step before each segment (the last also: after it), and which step.

    Tried are absent steps that most other videos of the procedure have, and between two neighbours
    the step that always follows the first.
    """
    gains = np.zeros(len(states) - 4)
    labels = np.full(len(states) - 4, -1)
    present = set(states.tolist())
    for state in usual_steps(grammar, tables[-1]):
        if state in present:
            continue
        there = insertion_gains(grammar, tables, states, state)
        # The place after the last segment has no segment of its own: the last one stands for it.
        if len(there) > 1:
            there[-2] = max(there[-2], there[-1])
        best = int(np.argmax(there[:-1]))
        if there[best] > gains[best]:
            gains[best], labels[best] = there[best], state
    for place, state in steps_left_out(grammar, tables[-1], states):
        gain = insertion_gains(grammar, tables, states[place : place + 4], state)[0]
        if gain > gains[place]:
            gains[place], labels[place] = gain, state
    return gains, labels


def steps_left_out(grammar: Grammar, table: int, states: IntArray) -> Iterator[tuple[int, int]]:
    """Segments whose forerunner nearly always has another step after it, and that step.

    That step must have led on to the segment's class before.
    """
    first, second = states[1:-3], states[2:-2]
    direct, rows = grammar.transitions(table, first, second)
    rare = (rows >= MIN_PLACES) & (direct <= (1 - ALWAYS) * rows) & (first != second)
    known = np.flatnonzero(grammar.tables.local[table][:-1] >= 0)
    for place in np.flatnonzero(rare).tolist():
        after, _ = grammar.transitions(table, np.full(len(known), first[place]), known)
        most = int(np.argmax(after))
        onward, _ = grammar.transitions(table, known[most : most + 1], second[place : place + 1])
        if after[most] >= ALWAYS * rows[place] and onward[0] >= MIN_PLACES:
            yield place, int(known[most])


ALWAYS = 0.98
"""Share of other videos that have a step, or of places where it follows, that counts as always."""
MIN_PLACES = 5
"""Other places that must be known before something counts as always."""
USUAL_SHARE = 0.8
"""A step is usual where at least this share of the other videos has it."""


def usual_steps(grammar: Grammar, table: int) -> list[int]:
    """States that at least 80 % of the other videos of a table have."""
    videos = grammar.num_videos(table)
    if videos < MIN_PROCEDURE_VIDEOS:
        return []
    base, stride = grammar.tables.row_base[table], grammar.tables.stride[table]
    present = grammar.present[base : base + stride - 1]
    states = np.flatnonzero(grammar.tables.local[table][:-1] >= 0)
    return states[present[grammar.tables.local[table][states]] >= USUAL_SHARE * videos].tolist()
