"""How likely a score means an error: measured on errors planted in the given sequences themselves.

An error of known place is put into a copy of a video's steps, the copy is scored by the videos of
other groups, and its scores are held against the scores of all segments as they are.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
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
"""Share of places that are assumed to be wrong, where the data do not say that fewer are."""
SPREAD = (0.0, 0.5, 1.0, 1.5, 2.0)
"""So much lower, in nats, an error may score than a planted one of its kind."""
RIGHT_PLACES = 0.5
"""Right places that are expected among those of the highest scores, though none may be seen."""
LEAST_FOUND = 0.25
"""Share of planted errors that score as high, from which a score can say that fewer are."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedScores:
    """What places of planted errors score."""

    scores: FloatArray
    """Of all places that give an error away; a swap has two."""
    num_errors: int

    def spread(self) -> "PlantedScores":
        """Each error also with somewhat lower scores: people's errors vary more."""
        scores = np.subtract.outer(self.scores, SPREAD).ravel()
        return PlantedScores(scores=scores, num_errors=self.num_errors * len(SPREAD))


def planted_scores(
    grammar: Grammar, kinds: Mapping[K, tuple[tuple[Plant, ...], Score]], *, seed: int
) -> dict[K, PlantedScores]:
    """For each kind, by its planted errors and its score; kinds without any error are left out."""
    corpus = grammar.corpus
    rng = np.random.default_rng(seed)
    rounds = -(-MAX_PLANTED // max(corpus.num_files, 1))
    scores: dict[K, list[FloatArray]] = {kind: [] for kind in kinds}
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
                            scores[kind].append(score(evidence)[planted[1]])
    return {
        kind: PlantedScores(scores=np.concatenate(values), num_errors=len(values))
        for kind, values in scores.items()
        if values
    }


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
    planted: PlantedScores, given: FloatArray, *, error_rate: float = ERROR_RATE
) -> FloatArray:
    """Probability of an error at each given place, 0 to 1; rises with the score.

    How many places of such a score errors would make, if a share of all places were wrong, of how
    many there are. That share is the assumed one, or what the data leave room for, if even that
    many errors would have made more places of high scores than there are.
    """
    planted = planted.spread()
    rate = min(error_rate, highest_rate(planted, given))
    scores, place = np.unique(np.concatenate([given, planted.scores]), return_inverse=True)
    there = np.bincount(place[: len(given)], minlength=len(scores)).astype(np.float64)
    there[-1] += RIGHT_PLACES
    made = np.bincount(place[len(given) :], minlength=len(scores)) * (
        rate * len(given) / planted.num_errors
    )
    # The share rises with the score; isotonic regression makes it so where counts are small.
    starts = rising_blocks(made / (made + there), made + there)
    made, there = (np.add.reduceat(counts, starts[:-1]) for counts in (made, there))
    share = np.maximum.accumulate(made / np.maximum(there, made + RIGHT_PLACES))
    return np.repeat(share, np.diff(starts))[place[: len(given)]]


def rising_blocks(values: FloatArray, weights: FloatArray) -> IntArray:
    """Bounds of the blocks whose weighted means rise: isotonic regression by pooling neighbours."""
    starts: list[int] = []
    means: list[float] = []
    masses: list[float] = []
    for start, (mean, mass) in enumerate(zip(values.tolist(), weights.tolist(), strict=True)):
        while means and means[-1] >= mean:
            total = masses[-1] + mass
            mean = (means.pop() * masses.pop() + mean * mass) / total
            mass, start = total, starts.pop()
        starts.append(start)
        means.append(mean)
        masses.append(mass)
    return np.array([*starts, len(values)])


def highest_rate(planted: PlantedScores, given: FloatArray) -> float:
    """Errors a place that given scores leave room for: no more places score high than there are."""
    levels = np.unique(planted.scores)
    found = len(planted.scores) - np.searchsorted(np.sort(planted.scores), levels)
    above = len(given) - np.searchsorted(np.sort(given), levels)
    seen = above + np.sqrt(above) + 0.5  # a standard deviation more, as counts vary
    # At the very top a few planted errors decide, of which others might have been drawn.
    enough = found >= LEAST_FOUND * len(planted.scores)
    return float(((seen / len(given)) / (found / planted.num_errors))[enough].min())
