"""From judged segments to the share of wrong seconds, with an interval.

In each stratum the share of wrong seconds has a beta distribution, by the draws that were judged
and half a draw of each outcome before them (Jeffreys). The dataset's share is their mean, weighted
by footage; its interval is taken from many draws of all of them. A stratum of which all is judged
has no uncertainty.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from csl_dist.types import FloatArray, IntArray

SIMULATIONS = 20_000
PRIOR = 0.5
"""Draws of each outcome that a stratum is thought to have before any (Jeffreys)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What reviewers found in one stratum."""

    draws: float
    """Independent draws that tell as much as those judged, of which some are of one segment."""
    wrong: float
    """Share of wrong seconds over the draws."""
    is_complete: bool
    """Whether every segment of the stratum is judged; `wrong` is the truth then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A share of wrong seconds, and where it lies with the confidence asked for."""

    share: float
    low: float
    high: float

    @property
    def width(self) -> float:
        return self.high - self.low


def judged(
    draws: IntArray, wrong_of: dict[int, float], seconds_N: FloatArray, stratum: IntArray
) -> Judged:
    """Of one stratum: `draws` are segments, `wrong_of` the wrong share of those that were
    judged."""
    if len(stratum) and all(int(i) in wrong_of for i in stratum):
        shares = np.array([wrong_of[int(i)] for i in stratum])
        own = seconds_N[stratum]
        return Judged(draws=len(own), wrong=float(shares @ own / own.sum()), is_complete=True)
    known = [int(i) for i in draws if int(i) in wrong_of]
    if not known:
        return Judged(draws=0.0, wrong=0.0, is_complete=False)
    counts = np.unique(known, return_counts=True)[1]
    wrong = float(np.mean([wrong_of[i] for i in known]))
    return Judged(draws=len(known) ** 2 / float((counts**2).sum()), wrong=wrong, is_complete=False)


def estimate(
    strata: Sequence[Judged], weights_H: FloatArray, *, confidence: float, seed: int = 0
) -> Estimate:
    """The share of wrong seconds in the dataset."""
    rng = np.random.default_rng(seed)
    total_S = np.zeros(SIMULATIONS)
    share = 0.0
    for one, weight in zip(strata, weights_H, strict=True):
        hits = one.wrong * one.draws
        share += weight * one.wrong
        if one.is_complete:
            total_S += weight * one.wrong
        else:
            missed = one.draws - hits
            total_S += weight * rng.beta(PRIOR + hits, PRIOR + missed, SIMULATIONS)
    tail = (1 - confidence) / 2
    low, high = np.quantile(total_S, [tail, 1 - tail])
    return Estimate(share=share, low=min(float(low), share), high=max(float(high), share))
