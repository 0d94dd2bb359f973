"""Draw segments for review: more where errors are likely, so that few reviews tell much.

Segments are put into strata by suspicion. In each, seconds are drawn, evenly spaced over its
footage in a random order, and a reviewer judges the segments that hold them. A segment is as much
likelier to be drawn as it is longer, so that the share of wrong seconds needs no weights. More
draws add to those before.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from csl_dist.certify.model import simulated_shares
from csl_dist.types import FloatArray, IntArray

FLAGGED_PARTS = 2
"""Of the flagged footage, by how likely flags are right."""
UNFLAGGED_SHARES = (0.01, 0.02, 0.04, 0.08, 0.16, 0.69)
"""Of the unflagged footage, the most suspicious first."""
GROWTH, LEAST_GROWTH = 1.05, 2
"""By how much a stratum grows when it is drawn from again. Small steps, as what the last one draws
beyond need is reviewed for nothing."""
LEAST_DRAWS = 4
"""In each stratum."""
NUM_THOUGHT = 1000
"""Datasets that are thought of before anybody has looked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Population:
    """The segments of a dataset, N of them, by stratum."""

    seconds_N: FloatArray
    stratum_N: IntArray
    """The most suspicious footage is in stratum 0."""
    num_flagged: int = 0
    """Strata of flagged segments, the first ones."""

    @property
    def num_strata(self) -> int:
        return int(self.stratum_N.max(initial=-1)) + 1

    def weights(self) -> FloatArray:
        """Share (H,) of all seconds in each stratum."""
        totals_H = np.bincount(self.stratum_N, self.seconds_N, minlength=self.num_strata)
        return totals_H / totals_H.sum()

    def suspicion(self) -> FloatArray:
        """Where each stratum (H,) lies among all footage, in standard deviations.

        The mean over the stratum, if suspicion were normally distributed: no more than the order of
        segments is used.
        """
        weights_H = self.weights()
        normal = NormalDist()
        inner = 1 - np.cumsum(weights_H)[:-1]
        densities = [normal.pdf(normal.inv_cdf(float(share))) for share in inner]
        return np.diff([0.0, *densities, 0.0]) / weights_H

    def own(self) -> list[IntArray]:
        """The segments of each stratum."""
        return [np.flatnonzero(self.stratum_N == h) for h in range(self.num_strata)]


def population(seconds_N: FloatArray, score_N: FloatArray, flagged_N: FloatArray) -> Population:
    """Strata from suspicion: flagged segments, and the others by their score.

    `flagged_N` is NaN where a segment has no flag, else how likely the flag is right. A stratum
    that would be empty is left out.
    """
    is_flagged_N = ~np.isnan(flagged_N)
    stratum_N = np.zeros(len(seconds_N), dtype=np.int64)
    shares = (1 / FLAGGED_PARTS,) * FLAGGED_PARTS
    order = np.lexsort((-score_N, -np.nan_to_num(flagged_N, nan=-1.0)))
    flagged, others = order[is_flagged_N[order]], order[~is_flagged_N[order]]
    stratum_N[flagged] = _parts(seconds_N[flagged], shares)
    stratum_N[others] = FLAGGED_PARTS + _parts(seconds_N[others], UNFLAGGED_SHARES)
    found, numbers_N = np.unique(stratum_N, return_inverse=True)
    return Population(
        seconds_N=seconds_N, stratum_N=numbers_N, num_flagged=int((found < FLAGGED_PARTS).sum())
    )


def _parts(seconds_N: FloatArray, shares: Sequence[float]) -> IntArray:
    """The part (N,) of each segment, if the footage is cut into these shares."""
    reached = np.cumsum(seconds_N) - seconds_N / 2
    edges = np.cumsum(shares[:-1]) * seconds_N.sum()
    return np.searchsorted(edges, reached)


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
    numbers = np.arange(count)
    result, place = np.zeros(count), 0.5
    while numbers.any():
        result += place * (numbers & 1)
        numbers >>= 1
        place /= 2
    return result


def allocation(people: Population, num_reviews: int) -> list[int]:
    """Draws (H,) that make the estimate surest (Neyman) by what suspicion alone tells."""
    none_H = np.zeros(people.num_strata)
    rng = np.random.default_rng(0)
    share_SH = simulated_shares(people.suspicion(), none_H, none_H, NUM_THOUGHT, rng)
    wishes_H = people.weights() * np.sqrt(share_SH * (1 - share_SH)).mean(axis=0)
    draws_H = np.maximum(LEAST_DRAWS, np.round(num_reviews * wishes_H / wishes_H.sum()))
    return [int(n) for n in draws_H]


def grown(draws_H: Sequence[int], stratum: int) -> list[int]:
    """The draws with some more in a stratum."""
    grown_H = list(draws_H)
    grown_H[stratum] = int(GROWTH * grown_H[stratum]) + LEAST_GROWTH
    return grown_H
