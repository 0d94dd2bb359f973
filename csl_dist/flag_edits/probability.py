"""From evidence to log-odds of an edit, and from log-odds to the probability of an error.

Two steps, both fitted in the audit itself on errors planted in its held-out videos. First, for each
kind of edit a logistic model of the evidence says how much a candidate looks like the right fix of a
planted error; its weights are drawn towards SHIPPED ones and never become negative, so that little
data can't turn evidence round. Second, a mixture tells how many of the audit's own findings are errors:
their share is estimated, not taken from how much was planted.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.stats import norm

from csl_dist.flag_edits.edits import EditKind
from csl_dist.flag_edits.evidence import COLUMNS
from csl_dist.flag_edits.segments import BoolArray, FloatArray

USED = (
    *("emission", "emission_low", "late_share", "least_family", "contrast"),
    *("bigram", "trigram", "duration", "count", "position", "precedence", "log_size"),
)
"""Columns of the evidence that speak for an edit: none may get a negative weight."""
DRAW = 0.003
"""How strongly weights are drawn towards the shipped ones, per row and squared deviation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditModel:
    """Log-odds of an edit: offset plus weights (K,) times evidence, K as in COLUMNS."""

    offset: float
    weights_K: FloatArray

    def log_odds(self, evidence_NK: FloatArray) -> FloatArray:
        """(N,), higher where the edit is likelier to be the right fix."""
        result: FloatArray = self.offset + evidence_NK @ self.weights_K
        return result


def shipped_model(offset: float, **weights: float) -> EditModel:
    return EditModel(
        offset=offset, weights_K=np.array([weights.get(name, 0.0) for name in COLUMNS])
    )


SHIPPED: dict[EditKind, EditModel] = {
    EditKind.RENAME: shipped_model(
        -3.49, emission=0.614, bigram=0.480, duration=0.220, log_size=0.198
    ),
    EditKind.DELETE: shipped_model(
        -6.64, emission=0.726, bigram=0.498, duration=0.242, log_size=0.853
    ),
    EditKind.INSERT: shipped_model(
        -4.95, emission=0.984, bigram=0.450, duration=0.382, log_size=0.292
    ),
    EditKind.BOUNDARY: shipped_model(-3.66, emission=0.527, duration=0.300, log_size=0.176),
    EditKind.SWAP: shipped_model(-8.88, bigram=0.489, log_size=1.087),
}
"""From planted errors in five datasets: where a run is too small to fit its own, these hold."""


def fit_edit_model(
    evidence_NK: FloatArray, right_N: BoolArray, shipped: EditModel, *, draw: float = DRAW
) -> EditModel:
    """A logistic model of which candidates are right, near the shipped one; weights at least 0.

    Where no candidate is right, or all are, the shipped one is returned.
    """
    if right_N.all() or not right_N.any():
        return shipped
    used = [COLUMNS.index(name) for name in USED]
    x_NK = np.asarray(evidence_NK[:, used], dtype=np.float64)
    y_N = right_N.astype(np.float64)
    scale_K = x_NK.std(axis=0) + 0.05
    start_K = shipped.weights_K[used]

    def loss(parameters: FloatArray) -> tuple[float, FloatArray]:
        z_N = parameters[0] + x_NK @ parameters[1:]
        away_K = (parameters[1:] - start_K) * scale_K
        value = (np.logaddexp(0.0, z_N) - y_N * z_N).mean() + draw / 2 * (away_K @ away_K)
        error_N = (sigmoid(z_N) - y_N) / len(y_N)
        slope_K = x_NK.T @ error_N + draw * away_K * scale_K
        return float(value), np.concatenate([[error_N.sum()], slope_K])

    found = minimize(
        loss,
        np.concatenate([[shipped.offset], start_K]),
        jac=True,
        bounds=[(None, None), *[(0.0, None)] * len(used)],
        method="L-BFGS-B",
    ).x
    weights_K = np.zeros(len(COLUMNS))
    weights_K[used] = found[1:]
    return EditModel(offset=float(found[0]), weights_K=weights_K)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorMixture:
    """P(error) of a finding from its log-odds s: sigmoid(offset + slope * s)."""

    offset: float
    slope: float
    share: float
    """Estimated share of errors among the findings that it was fitted on."""

    def probability(self, log_odds_N: FloatArray) -> FloatArray:
        """(N,), 0 to 1."""
        return sigmoid(self.offset + self.slope * log_odds_N)


def fit_error_mixture(
    planted_N: FloatArray,
    audited_M: FloatArray,
    *,
    share: float | None = None,
    prior_share: float = 0.02,
    prior_findings: float = 20.0,
    rounds: int = 200,
) -> ErrorMixture:
    """The share of errors among audited findings, and each one's probability.

    `planted_N` are log-odds of findings that are planted errors, `audited_M` of the findings of the
    audit as it is, errors and right ones mixed. Errors are taken to score like planted ones; the
    density of right ones over that of errors falls off log-linearly with the score, so that high
    scores beyond that law count as errors. `share` is given where it is known; else it is estimated,
    as if `prior_findings` more had been seen with `prior_share` errors among them.
    """
    if len(planted_N) < 5 or len(audited_M) < 5:
        known = prior_share if share is None else share
        return ErrorMixture(offset=float(_logit(known)), slope=0.0, share=known)
    now = prior_share if share is None else share
    x = np.concatenate([planted_N, audited_M, audited_M])
    is_error = np.concatenate([np.ones(len(planted_N)), np.ones(len(audited_M)), 0 * audited_M])
    tilt = np.array([0.0, 1.0])
    error_M = np.full(len(audited_M), now)
    for _ in range(rounds):
        weight = np.concatenate([np.ones(len(planted_N)), error_M, 1 - error_M])
        tilt = _weighted_logistic(x, is_error, weight, tilt)
        # The regression sees planted ones among the errors: their part in its odds is taken out.
        seen = np.log((len(planted_N) + error_M.sum()) / max((1 - error_M).sum(), 1e-9))
        log_ratio_M = tilt[0] - seen + tilt[1] * audited_M
        before = error_M
        error_M = sigmoid(log_ratio_M + _logit(now))
        if share is None:
            total = error_M.sum() + prior_share * prior_findings
            now = float(total / (len(audited_M) + prior_findings))
        if np.abs(error_M - before).max() < 1e-5:
            break
    return ErrorMixture(
        offset=float(tilt[0] - seen + _logit(now)), slope=float(tilt[1]), share=float(now)
    )


def expected_right(probability_N: FloatArray, *, sure: float = 0.8) -> tuple[float, float, float]:
    """How many of these findings are right: mean, and bounds that hold with probability `sure`.

    Findings are taken as independent, and the probabilities as off by up to a tenth together.
    """
    mean = float(probability_N.sum())
    width = float(norm.ppf((1 + sure) / 2))
    spread = np.sqrt((probability_N * (1 - probability_N)).sum() + (0.1 * len(probability_N)) ** 2)
    low, high = mean - width * spread, mean + width * spread
    return mean, float(max(low, 0.0)), float(min(high, len(probability_N)))


def sigmoid(z: FloatArray) -> FloatArray:
    result: FloatArray = 0.5 * (1 + np.tanh(0.5 * z))
    return result


def _logit(p: float) -> float:
    p = min(max(p, 1e-6), 1 - 1e-6)
    return float(np.log(p / (1 - p)))


def _weighted_logistic(
    x: FloatArray, y: FloatArray, weight: FloatArray, start: FloatArray
) -> FloatArray:
    """Offset and slope of a logistic regression by Newton's method; the slope is at least 0."""
    found = start.copy()
    design = np.stack([np.ones_like(x), x], axis=1)
    for _ in range(25):
        p = sigmoid(design @ found)
        slope = design.T @ (weight * (p - y)) + np.array([0.0, 0.01 * found[1]])
        curve = (design * (weight * p * (1 - p))[:, None]).T @ design + np.diag([1e-6, 0.01])
        step = np.linalg.solve(curve, slope)
        found = found - np.clip(step, -2, 2)
        if np.abs(step).max() < 1e-6:
            break
    return np.array([found[0], max(found[1], 0.0)])


def fitted_models(
    evidence: Mapping[EditKind, FloatArray], right: Mapping[EditKind, BoolArray]
) -> dict[EditKind, EditModel]:
    """A model of every kind of edit, the shipped one where there is nothing to fit on."""
    return {
        kind: fit_edit_model(evidence[kind], right[kind], model) if kind in evidence else model
        for kind, model in SHIPPED.items()
    }
