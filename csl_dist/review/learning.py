"""What decisions teach about the flags that nobody has looked at yet.

A logistic model starts from what the audit says of a flag and moves by what reviewers decide: of
all flags, of a kind, and of a pair of labels. Each of these needs several decisions to move far.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from csl_dist.review.store import ERRORS, Decision, Review, SpanKey
from csl_dist.types import FloatArray, IntArray

PRIOR_DEVIATION = 1.0
"""Of each effect, in log-odds."""
SCORE_SLOPE = 0.5
"""Log-odds by which a flag without a probability rises with a standard deviation of its score."""
NEWTON_STEPS = 12
NEXT = 20
"""Flags that a reviewer looks at next."""


def verdicts(current: Mapping[SpanKey, Sequence[Review]]) -> dict[SpanKey, bool]:
    """Whether each span that was decided for sure is an error, by its last decision."""
    last = {span: reviews[-1].decision for span, reviews in current.items()}
    return {span: d in ERRORS for span, d in last.items() if d is not Decision.UNSURE}


def expected_errors(flags: pd.DataFrame, known: Mapping[SpanKey, bool]) -> FloatArray:
    """The probability (N,) that each flag is an error, given those that were decided."""
    if flags.empty:
        return np.empty(0)
    log_odds_N = _log_odds_before(flags)
    spans = list(zip(flags.video, flags.start, flags.stop, strict=True))
    decided = np.array([i for i, span in enumerate(spans) if span in known], dtype=int)
    if len(decided):
        effects_NK = _effects(flags, log_odds_N, decided)
        wrong_D = np.array([known[spans[i]] for i in decided], dtype=float)
        weights_K = _fitted(effects_NK[decided], log_odds_N[decided], wrong_D)
        log_odds_N = log_odds_N + effects_NK @ weights_K
    return 1 / (1 + np.exp(-log_odds_N))


def expected_in_next(probability_N: FloatArray, open_N: Sequence[bool]) -> float:
    """How many of the likeliest flags that are still open are errors."""
    likeliest = np.sort(probability_N[np.asarray(open_N, dtype=bool)])[::-1]
    return float(likeliest[:NEXT].sum())


def _log_odds_before(flags: pd.DataFrame) -> FloatArray:
    """From the flag's own probability, or else from how high it scores among all."""
    score_N = flags.score.to_numpy(dtype=float)
    standard_N = (score_N - score_N.mean()) / (score_N.std() or 1.0)
    probability_N = flags.probability.to_numpy(dtype=float)
    inside_N = np.clip(np.nan_to_num(probability_N, nan=0.5), 0.01, 0.99)
    own_N = np.log(inside_N / (1 - inside_N))
    return np.where(np.isnan(probability_N), SCORE_SLOPE * standard_N, own_N)


def _effects(flags: pd.DataFrame, log_odds_N: FloatArray, decided: IntArray) -> FloatArray:
    """Columns (N, K): one for all, the log-odds, each kind and each pair that was decided."""
    columns = [np.ones(len(flags)), log_odds_N / 2]
    pairs = flags.kind + "\0" + flags.label + "\0" + flags.suggested
    for values in (flags.kind, pairs):
        columns += [(values == one).to_numpy(float) for one in values.iloc[decided].unique()]
    return np.stack(columns, axis=1)


def _fitted(effects_DK: FloatArray, before_D: FloatArray, wrong_D: FloatArray) -> FloatArray:
    """Weights (K,) that fit the decisions best, each with a normal prior around 0."""
    precision = 1 / PRIOR_DEVIATION**2
    weights_K = np.zeros(effects_DK.shape[1])
    for _ in range(NEWTON_STEPS):
        probability_D = 1 / (1 + np.exp(-(before_D + effects_DK @ weights_K)))
        slope_K = effects_DK.T @ (wrong_D - probability_D) - precision * weights_K
        spread_D = probability_D * (1 - probability_D)
        curve_KK = (effects_DK.T * spread_D) @ effects_DK + precision * np.eye(len(weights_K))
        weights_K = weights_K + np.linalg.solve(curve_KK, slope_K)
    return weights_K
