"""From judged segments to the share of wrong seconds, with an interval.

Footage of judged segments is known. The share of wrong seconds in the rest of a stratum has a beta
distribution by its draws, with a third of a draw of each outcome before them, and the rest is so
many segments, of which each is right or wrong. The dataset's share is the sum over strata; its
interval is taken from many simulated datasets.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from csl_dist.types import FloatArray, IntArray

SIMULATIONS = 4000
PRIOR = 1 / 3
"""Draws of each outcome that a stratum is thought to have before any (Kerman's neutral prior)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What reviewers found in one stratum, or in a class of it."""

    seconds: float
    """Of all its footage."""
    known_seconds: float
    """Of the segments that were judged."""
    wrong_seconds: float
    """Of these."""
    draws: float
    """Independent draws that tell as much as those judged, of which some are of one segment."""
    wrong: float
    """Mean wrong share over the draws; 0 without any."""
    rest: int
    """Segments of equal length that tell as much as those that were not judged."""

    @property
    def mean(self) -> float:
        """Wrong seconds that are expected in all."""
        share = (PRIOR + self.draws * self.wrong) / (2 * PRIOR + self.draws)
        share = self.wrong if self.draws else share
        return self.wrong_seconds + (self.seconds - self.known_seconds) * share

    def scaled(self, factor: float) -> "Judged":
        """What so many times the draws would show, if they showed the same."""
        known = min(self.seconds, self.known_seconds * factor)
        return Judged(
            seconds=self.seconds,
            known_seconds=known,
            wrong_seconds=known * self.wrong,
            draws=self.draws * factor,
            wrong=self.wrong,
            rest=max(1, round(self.rest * (self.seconds - known) / self._left)),
        )

    @property
    def _left(self) -> float:
        return max(self.seconds - self.known_seconds, 1e-9)

    def simulated(self, rng: np.random.Generator) -> FloatArray:
        """Wrong seconds (S,) in all, each of a dataset that could be."""
        if self.known_seconds >= self.seconds * (1 - 1e-9):
            return np.full(SIMULATIONS, self.wrong_seconds)
        hits = self.draws * self.wrong
        share_S = rng.beta(PRIOR + hits, PRIOR + self.draws - hits, SIMULATIONS)
        rest_S = rng.binomial(self.rest, share_S) / self.rest
        return self.wrong_seconds + (self.seconds - self.known_seconds) * rest_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A share, and where it lies with the confidence asked for."""

    share: float
    low: float
    high: float


def judged(
    draws: IntArray, wrong_of: Mapping[int, float], seconds_N: FloatArray, own: IntArray
) -> Judged:
    """Of the segments `own`: `draws` among them, and the wrong share of those judged."""
    known = np.array([i for i in own if int(i) in wrong_of], dtype=np.int64)
    unknown = np.setdiff1d(own, known)
    wrong_known = np.array([wrong_of[int(i)] for i in known])
    told = [int(i) for i in draws if int(i) in wrong_of]
    counts = np.unique(told, return_counts=True)[1] if told else np.array([1])
    left_N = seconds_N[unknown]
    return Judged(
        seconds=float(seconds_N[own].sum()),
        known_seconds=float(seconds_N[known].sum()),
        wrong_seconds=float(wrong_known @ seconds_N[known]) if len(known) else 0.0,
        draws=len(told) ** 2 / float((counts**2).sum()),
        wrong=float(np.mean([wrong_of[i] for i in told])) if told else 0.0,
        rest=max(1, round(left_N.sum() ** 2 / (left_N**2).sum())) if len(left_N) else 1,
    )


def estimate(strata: Sequence[Judged], *, confidence: float, seed: int = 0) -> Estimate:
    """The share of wrong seconds."""
    rng = np.random.default_rng(seed)
    seconds = sum(one.seconds for one in strata)
    total_S = sum((one.simulated(rng) for one in strata), start=np.zeros(SIMULATIONS)) / seconds
    return _interval(total_S, sum(one.mean for one in strata) / seconds, confidence)


def estimated_recall(strata: Sequence[Judged], *, confidence: float, seed: int = 0) -> Estimate:
    """The share of all wrong seconds that the first stratum holds: what is flagged."""
    rng = np.random.default_rng(seed)
    by_stratum_HS = np.stack([one.simulated(rng) for one in strata])
    total_S = by_stratum_HS.sum(axis=0)
    share_S = np.divide(by_stratum_HS[0], total_S, out=np.ones_like(total_S), where=total_S > 0)
    expected = sum(one.mean for one in strata)
    return _interval(share_S, strata[0].mean / expected if expected else 1.0, confidence)


def _interval(values_S: FloatArray, share: float, confidence: float) -> Estimate:
    tail = (1 - confidence) / 2
    low, high = (float(bound) for bound in np.quantile(values_S, [tail, 1 - tail]))
    return Estimate(share=share, low=min(low, share), high=max(high, share))


def next_stratum(strata: Sequence[Judged], seed: int = 0) -> int:
    """The stratum of which one more review makes the estimate surer than of any other."""
    rng = np.random.default_rng(seed)
    gains = [float(one.simulated(rng).var()) / (one.draws + 1) for one in strata]
    return int(np.argmax(gains))
