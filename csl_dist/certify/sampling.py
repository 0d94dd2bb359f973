"""Draw segments for review: more where errors are likely, so that few reviews tell much.

Segments are put into strata by suspicion. In each, seconds are drawn, evenly spaced over its
footage in a random order, and a reviewer judges the segments that hold them. A segment is as much
likelier to be drawn as it is longer, so that the share of wrong seconds needs no weights. More
draws add to those before.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from csl_dist.types import FloatArray, IntArray

UNFLAGGED_SHARES = (0.04, 0.12, 0.84)
"""Of the unflagged footage, the most suspicious first."""
GUESSES = (0.5, 0.1, 0.03, 0.005)
"""Share of wrong seconds in each stratum, before anybody has looked."""
GROWTH = 1.25
"""By how much a stratum grows when it is drawn from again."""
LEAST_DRAWS = 6
"""In each stratum: with fewer, a rare error is never seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Population:
    """The segments of a dataset, N of them, by stratum."""

    seconds_N: FloatArray
    stratum_N: IntArray

    @property
    def num_strata(self) -> int:
        return int(self.stratum_N.max(initial=-1)) + 1

    def weights(self) -> FloatArray:
        """Share (H,) of all seconds in each stratum."""
        totals_H = np.bincount(self.stratum_N, self.seconds_N, minlength=self.num_strata)
        return totals_H / totals_H.sum()

    def sizes(self) -> IntArray:
        """Number (H,) of segments in each stratum."""
        return np.bincount(self.stratum_N, minlength=self.num_strata)


def population(seconds_N: FloatArray, score_N: FloatArray, flagged_N: FloatArray) -> Population:
    """Strata from suspicion: flagged segments, and the others by their score.

    `flagged_N` is NaN where a segment has no flag. A stratum that would be empty is left out.
    """
    stratum_N = np.zeros(len(seconds_N), dtype=np.int64)
    rest = np.flatnonzero(np.isnan(flagged_N))
    order = rest[np.argsort(-score_N[rest], kind="stable")]
    if len(order):
        reached = np.cumsum(seconds_N[order]) - seconds_N[order] / 2
        edges = np.cumsum(UNFLAGGED_SHARES[:-1]) * seconds_N[order].sum()
        stratum_N[order] = 1 + np.searchsorted(edges, reached)
    return Population(seconds_N=seconds_N, stratum_N=np.unique(stratum_N, return_inverse=True)[1])


def drawn(people: Population, draws_H: Sequence[int], *, seed: int) -> list[IntArray]:
    """For each stratum the segments that hold the drawn seconds, one for each draw.

    A larger number of draws begins with those of a smaller one.
    """
    segments = []
    for h, num_draws in enumerate(draws_H):
        rng = np.random.default_rng([seed, h])
        own = rng.permutation(np.flatnonzero(people.stratum_N == h))
        ends = np.cumsum(people.seconds_N[own])
        start = rng.uniform()
        at = (_evenly(num_draws) + start) % 1.0 * ends[-1]
        segments.append(own[np.searchsorted(ends, at, side="right").clip(max=len(own) - 1)])
    return segments


def _evenly(count: int) -> FloatArray:
    """Van der Corput's sequence, whose every first part is evenly spread over 0 to 1."""
    result = np.zeros(count)
    for i in range(count):
        number, place = i, 0.5
        while number:
            result[i] += place * (number & 1)
            number >>= 1
            place /= 2
    return result


def allocation(people: Population, guesses_H: FloatArray, num_reviews: int) -> list[int]:
    """Draws (H,) that make the estimate surest (Neyman); at least some in each stratum."""
    wishes_H = people.weights() * np.sqrt(guesses_H * (1 - guesses_H))
    draws_H = np.maximum(LEAST_DRAWS, np.round(num_reviews * wishes_H / wishes_H.sum()))
    return [int(n) for n in draws_H]


def grown(draws_H: Sequence[int], stratum: int) -> list[int]:
    """The draws with some more in a stratum."""
    grown_H = list(draws_H)
    grown_H[stratum] = int(GROWTH * grown_H[stratum]) + 4
    return grown_H
