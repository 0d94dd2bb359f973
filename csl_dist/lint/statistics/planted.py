"""How likely a score means an error: measured on errors planted in the given sequences themselves.

An error of known place is put into a copy of a video's steps, the copy is scored by the videos of
other groups, and its score is held against the scores of all segments as they are.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

import numpy as np

from csl_dist.lint.corpus import Corpus
from csl_dist.lint.statistics.evidence import OrderEvidence, video_evidence
from csl_dist.lint.statistics.grammar import Grammar
from csl_dist.types import FloatArray, IntArray

MIN_VIDEOS = 20
"""With fewer videos no probability is given."""
MAX_PLANTED = 400
"""Errors of each kind that are planted; more would not change the curve."""
ERROR_RATE = 0.01
"""Share of places that are assumed to be wrong before looking."""

K = TypeVar("K")
Planted = tuple[IntArray, IntArray]
"""Classes with an error in them, and the places that give it away."""
Plant = Callable[[IntArray, IntArray, np.random.Generator], Planted | None]
"""From a video's classes and all classes of its procedure; None where it has no room for one."""


def swap_neighbours(codes: IntArray, classes: IntArray, rng: np.random.Generator) -> Planted | None:
    """Two neighbouring segments change places; both are wrong. What then touches is joined."""
    places = np.flatnonzero(codes[:-1] != codes[1:])
    if not len(places):
        return None
    left = int(rng.choice(places))
    swapped, wrong = codes.copy(), np.zeros(len(codes), bool)
    swapped[[left, left + 1]] = codes[[left + 1, left]]
    wrong[[left, left + 1]] = True
    return _joined(swapped, wrong)


def move_step(codes: IntArray, classes: IntArray, rng: np.random.Generator) -> Planted | None:
    """A segment is put somewhere else."""
    if len(codes) < 3:
        return None
    place, target = rng.choice(len(codes), 2, replace=False).tolist()
    moved = np.insert(np.delete(codes, place), target, codes[place])
    wrong = np.zeros(len(codes), bool)
    wrong[target] = True
    return _joined(moved, wrong)


def drop_step(codes: IntArray, classes: IntArray, rng: np.random.Generator) -> Planted | None:
    """A step that comes once is left out; the segment after it gives that away."""
    once = np.flatnonzero(np.bincount(codes)[codes] == 1)
    if not len(once) or len(codes) < 3:
        return None
    place = int(rng.choice(once))
    wrong = np.zeros(len(codes) - 1, bool)
    wrong[min(place, len(codes) - 2)] = True
    return _joined(np.delete(codes, place), wrong)


def rename_step(codes: IntArray, classes: IntArray, rng: np.random.Generator) -> Planted | None:
    """A segment gets the name of another class of the procedure."""
    place = int(rng.integers(len(codes)))
    around = codes[max(place - 1, 0) : place + 2]
    others = np.setdiff1d(classes, around)
    if not len(others):
        return None
    renamed, wrong = codes.copy(), np.zeros(len(codes), bool)
    renamed[place] = rng.choice(others)
    wrong[place] = True
    return renamed, np.flatnonzero(wrong)


def insert_step(codes: IntArray, classes: IntArray, rng: np.random.Generator) -> Planted | None:
    """A class of the procedure is put between two segments."""
    place = int(rng.integers(len(codes) + 1))
    others = np.setdiff1d(classes, codes[max(place - 1, 0) : place + 1])
    if not len(others):
        return None
    return np.insert(codes, place, rng.choice(others)), np.array([place])


def _joined(codes: IntArray, wrong: FloatArray | IntArray) -> Planted:
    first = np.concatenate([[True], codes[1:] != codes[:-1]])
    run = np.cumsum(first) - 1
    return codes[first], np.unique(run[np.flatnonzero(wrong)])


Score = Callable[[OrderEvidence], FloatArray]


def planted_scores(
    grammar: Grammar, kinds: Mapping[K, tuple[tuple[Plant, ...], Score]], *, seed: int
) -> dict[K, FloatArray]:
    """For each kind, by its planted errors and its score: the highest score at each error."""
    corpus = grammar.corpus
    rng = np.random.default_rng(seed)
    rounds = -(-MAX_PLANTED // max(corpus.num_files, 1))
    scores: dict[K, list[float]] = {kind: [] for kind in kinds}
    for videos in _chosen_units(corpus, rng):
        with grammar.without(videos):
            for video in videos.tolist():
                tables, codes = grammar.tables_of(video), grammar.codes(video)
                classes = procedure_classes(grammar, tables[-1])
                for kind, (plants, score) in kinds.items():
                    for plant in plants * rounds if len(codes) else ():
                        planted = plant(codes, classes, rng)
                        if planted is not None:
                            evidence = video_evidence(grammar, tables, planted[0])
                            scores[kind].append(float(score(evidence)[planted[1]].max()))
    return {kind: np.array(values) for kind, values in scores.items()}


def _chosen_units(corpus: Corpus, rng: np.random.Generator) -> Iterator[IntArray]:
    """Random groups until there are enough videos; taking a group out of the counts takes time."""
    units = list(corpus.units())
    taken = 0
    for number in rng.permutation(len(units)).tolist():
        if taken >= MAX_PLANTED:
            return
        taken += len(units[number])
        yield units[number]


def procedure_classes(grammar: Grammar, table: int) -> IntArray:
    """States that occur in the videos of a table."""
    return np.flatnonzero(grammar.tables.local[table][:-1] >= 0)


def probabilities(
    planted: FloatArray, given: FloatArray, unit_N: IntArray, *, error_rate: float = ERROR_RATE
) -> FloatArray:
    """Probability of an error at each given place, 0 to 1; rises with the score within a unit.

    By tail shares: how many planted errors and how many given places score at least as high. Places
    of other units are taken as right, so that what many do gets a low probability; a place's own
    unit is left out, or else an error would speak for itself.
    """
    own = own_above(given, unit_N)
    levels = np.unique(planted)
    above_planted = len(planted) - np.searchsorted(np.sort(planted), levels)
    above_given = len(given) - np.searchsorted(np.sort(given), levels)
    wrong = error_rate * (above_planted + 0.5) / (len(planted) + 1)
    place = np.searchsorted(levels, given, side="right") - 1
    result = np.zeros(len(given), np.float32)
    order = np.argsort(own, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(own[order])) + 1):
        others = np.maximum(above_given - own[members[0]], 0)
        right = (1 - error_rate) * (others + 0.5) / (len(given) + 1)
        curve = np.maximum.accumulate(wrong / (wrong + right))
        here = members[place[members] >= 0]
        result[here] = curve[place[here]]
    return result


MAX_OWN = 100
"""Places of one unit that are left out at most; so many are a habit and no accident."""


def own_above(scores: FloatArray, unit_N: IntArray) -> IntArray:
    """For each place, how many of its unit score at least as high, itself included."""
    order = np.lexsort((-scores, unit_N))
    units, values = unit_N[order], scores[order]
    new_unit = np.concatenate([[True], units[1:] != units[:-1]])
    new_run = new_unit | np.concatenate([[True], values[1:] != values[:-1]])
    start = np.maximum.accumulate(np.where(new_unit, np.arange(len(order)), 0))
    ends = np.concatenate([np.flatnonzero(new_run)[1:], [len(order)]])
    above = np.empty(len(order), np.int64)
    above[order] = ends[np.cumsum(new_run) - 1] - start
    return np.minimum(above, MAX_OWN)
