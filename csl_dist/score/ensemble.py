"""One score of two scorers: what sees the whole video, and what sees single frames.

The temporal score counts in full; the framewise one adds to it only where it is high, because it
knows nothing of order: a low one must not excuse a disordered span. The rule was chosen on planted
errors, see docs/LOG.md.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from csl_dist.types import FloatArray

CLEARLY_HIGH = 1.5
"""Standard deviations above the mean from which on the framewise score counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Mean and standard deviation of a score over all frames of a run."""

    mean: float
    deviation: float

    def standard(self, score_T: FloatArray) -> FloatArray:
        return (score_T - self.mean) / self.deviation


def scale_of(scores: Iterable[FloatArray]) -> Scale:
    """The scale of a score from all its videos; NaN frames do not count."""
    known = [score_T[~np.isnan(score_T)] for score_T in scores]
    pooled = np.concatenate([np.empty(0), *known])
    if len(pooled) == 0:
        return Scale(mean=0.0, deviation=1.0)
    return Scale(mean=float(pooled.mean()), deviation=float(pooled.std()) or 1.0)


def ensemble_scores(
    temporal: Mapping[str, FloatArray], framewise: Mapping[str, FloatArray]
) -> dict[str, FloatArray]:
    """Scores (T,) by video, in standard deviations; both arguments are of the same videos."""
    scales = scale_of(temporal.values()), scale_of(framewise.values())
    return {v: ensemble_score(score_T, framewise[v], scales) for v, score_T in temporal.items()}


def ensemble_score(
    temporal_T: FloatArray, framewise_T: FloatArray, scales: tuple[Scale, Scale]
) -> FloatArray:
    """The score (T,) of one video, on the scales of the two scorers in the whole run."""
    in_context, by_itself = scales
    high_T = np.maximum(by_itself.standard(framewise_T) - CLEARLY_HIGH, 0.0)
    return in_context.standard(temporal_T) + high_T
