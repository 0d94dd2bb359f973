"""From judged segments to the share of wrong seconds, with an interval.

Footage of judged segments is known. How much of the rest of each stratum is wrong follows from the
draws in it and, by `model`, in the others; the rest is so many segments, of which each is right or
wrong. The dataset's share is the sum over strata; its interval is taken from many simulated
datasets.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from csl_dist.certify.model import simulated_shares
from csl_dist.types import FloatArray, IntArray

SIMULATIONS = 4000
TINY = 1e-9


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
    squared: float
    """Mean square of the wrong share; as much as `wrong` where segments are wrong as a whole."""
    rest: float
    """Segments of equal length that tell as much as those that were not judged."""
    suspicion: float
    """Where the stratum lies among all footage, in standard deviations; high is suspicious."""

    @property
    def left_seconds(self) -> float:
        left = self.seconds - self.known_seconds
        return left if left > 1e-9 * self.seconds else 0.0

    def scaled(self, factor: float) -> "Judged":
        """What so many times the draws would show, if they showed the same."""
        known = min(self.seconds, self.known_seconds * factor)
        left = (self.seconds - known) / max(self.left_seconds, 1e-9)
        return replace(
            self,
            known_seconds=known,
            wrong_seconds=known * self.wrong,
            draws=self.draws * factor,
            rest=self.rest * left,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A share, and where it lies with the confidence asked for."""

    share: float
    low: float
    high: float


def judged(
    draws: IntArray,
    wrong_of: Mapping[int, float],
    seconds_N: FloatArray,
    own: IntArray,
    suspicion: float = 0.0,
) -> Judged:
    """Of the segments `own`: `draws` among them, and the wrong share of those judged."""
    wrong_N = np.array([wrong_of.get(int(i), np.nan) for i in own])
    is_known_N = ~np.isnan(wrong_N)
    known_seconds_N = seconds_N[own[is_known_N]]
    told = np.array([wrong_of[int(i)] for i in draws if int(i) in wrong_of])
    counts = np.bincount([int(i) for i in draws if int(i) in wrong_of]) if len(told) else np.ones(1)
    left_N = seconds_N[own[~is_known_N]]
    return Judged(
        seconds=float(seconds_N[own].sum()),
        known_seconds=float(known_seconds_N.sum()),
        wrong_seconds=float(wrong_N[is_known_N] @ known_seconds_N),
        draws=len(told) ** 2 / float((counts**2).sum()),
        wrong=float(told.mean()) if len(told) else 0.0,
        squared=float((told**2).mean()) if len(told) else 0.0,
        rest=float(left_N.sum() ** 2 / (left_N**2).sum()) if len(left_N) else 0.0,
        suspicion=suspicion,
    )


def simulated(
    strata: Sequence[Judged], *, seed: int, num_simulations: int = SIMULATIONS
) -> FloatArray:
    """Wrong seconds (H, S) of each stratum, of datasets that could be."""
    rng = np.random.default_rng(seed)
    draws_H = np.array([one.draws for one in strata])
    wrong_H = draws_H * np.array([one.wrong for one in strata])
    spread = _spread(strata)
    share_SH = simulated_shares(
        np.array([one.suspicion for one in strata]),
        draws_H / spread,
        wrong_H / spread,
        num_simulations,
        rng,
    )
    seconds_HS = np.empty((len(strata), num_simulations))
    for h, one in enumerate(strata):
        seconds_HS[h] = one.wrong_seconds
        if one.left_seconds:
            num_left = max(1, round(one.rest / spread))
            left_S = rng.binomial(num_left, share_SH[:, h]) / num_left
            seconds_HS[h] += one.left_seconds * left_S
    return seconds_HS


def _spread(strata: Sequence[Judged]) -> float:
    """How much wrong shares vary, of what they would if segments were wrong as a whole or not at
    all; two whole errors are thought to have been seen before any."""
    wrong = sum(one.draws * one.wrong for one in strata)
    squared = sum(one.draws * one.squared for one in strata)
    return (2 + squared) / (2 + wrong)


def estimate(strata: Sequence[Judged], *, confidence: float, seed: int = 0) -> Estimate:
    """The share of wrong seconds."""
    return wrong_share(strata, simulated(strata, seed=seed), confidence)


def wrong_share(strata: Sequence[Judged], seconds_HS: FloatArray, confidence: float) -> Estimate:
    """The same from datasets that were simulated already."""
    return _interval(seconds_HS.sum(axis=0) / sum(one.seconds for one in strata), confidence)


def estimated_recall(
    strata: Sequence[Judged], num_flagged: int, *, confidence: float, seed: int = 0
) -> Estimate:
    """The share of all wrong seconds that the first strata hold: what is flagged."""
    by_stratum_HS = simulated(strata, seed=seed)
    total_S = by_stratum_HS.sum(axis=0)
    flagged_S = by_stratum_HS[:num_flagged].sum(axis=0)
    share_S = np.divide(flagged_S, total_S, out=np.ones_like(total_S), where=total_S > 0)
    return _interval(share_S, confidence)


def _interval(values_S: FloatArray, confidence: float) -> Estimate:
    tail = (1 - confidence) / 2
    low, high = (float(bound) for bound in np.quantile(values_S, [tail, 1 - tail]))
    return Estimate(share=float(values_S.mean()), low=low, high=high)


def next_stratum(
    strata: Sequence[Judged], seconds_HS: FloatArray, is_open_H: Sequence[bool] | None = None
) -> int:
    """The stratum of which one more review makes the estimate surer than of any other.

    `seconds_HS` is what `simulated` says of them; `is_open_H` where there is anything left to draw.
    Where no simulated dataset has an error, the stratum with most footage left is next.
    """
    draws_H = np.array([one.draws for one in strata])
    left_H = np.array([one.left_seconds for one in strata])
    gains_H = seconds_HS.var(axis=1) / (draws_H + 1) + TINY * left_H
    if is_open_H is not None:
        gains_H = np.where(is_open_H, gains_H, -1.0)
    return int(np.argmax(gains_H))
