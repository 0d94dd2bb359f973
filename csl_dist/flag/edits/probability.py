"""From evidence to log-odds of an edit, and from log-odds to the probability of an error.

Two steps. First, for each kind of edit a logistic model of the evidence says how much a candidate
looks like the right fix of a planted error. Those of steps are fitted in the audit itself, on
errors planted in its held-out videos; weights are drawn towards SHIPPED ones and never become
negative, so that little data can't turn evidence round. Second, a curve of the finding's list turns
log-odds into a probability: not by how much was planted, but as errors of other datasets have it,
and for steps by how many more findings are high than in audits without errors.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from csl_dist.flag.edits.evidence import COLUMNS
from csl_dist.flag.edits.lists import LIST_OF, ListName
from csl_dist.types import BoolArray, EditKind, FloatArray

USED = (
    *("emission", "emission_low", "late_share", "least_family", "contrast"),
    *("bigram", "trigram", "duration", "count", "position", "precedence", "log_size"),
)
"""Columns of the evidence that speak for an edit: none may get a negative weight."""
DRAW = 0.003
"""How strongly weights are drawn towards the shipped ones."""
LEAST_RIGHT = 10
"""Right candidates below which weights are the shipped ones; the offset follows from ALIGNED."""
ALIGNED = (0.02, -2.0)
"""The share of all candidates of a kind whose log-odds then are at least the second number."""
DATASET_DEVIATION = 1.0
"""By how much log-odds of all errors of a dataset that no constant was fitted on are off together,
as a standard deviation. With planted errors it was .7 (docs/findings_study.md); real ones differ
from planted ones, too. Reviews make it smaller."""
LEAST_LOG_ODDS = -5.0
"""Findings below play no part in a calibration."""


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
    EditKind.BOUNDARY: shipped_model(
        -4.66, emission=0.527, contrast=1.0, duration=0.300, log_size=0.176
    ),
    EditKind.SWAP: shipped_model(-4.8, bigram=0.42, trigram=0.27, precedence=0.41),
}
"""From planted errors in five datasets: where a run is too small to fit its own, these hold. Frames
that prefer the other label right up to a boundary's new place, and not beyond it, are what tells a
boundary from a place that models know badly: `contrast`. Which of all pairs of steps comes first
tells two steps that changed places from neighbours that are free to: `precedence`."""


def fit_edit_model(
    evidence_NK: FloatArray, right_N: BoolArray, shipped: EditModel, *, draw: float
) -> EditModel:
    """A logistic model of which candidates are right, near the shipped one; weights at least 0.

    With too few right ones the shipped weights stay, and the offset makes few candidates high.
    """
    if right_N.sum() < LEAST_RIGHT:
        share, level = ALIGNED
        high = float(np.quantile(evidence_NK @ shipped.weights_K, 1 - share))
        return EditModel(offset=level - high, weights_K=shipped.weights_K)
    used = [COLUMNS.index(name) for name in USED]
    offset, weights = _bounded_logistic(
        np.asarray(evidence_NK[:, used], dtype=np.float64),
        right_N,
        np.ones(len(right_N)),
        towards=(shipped.offset, shipped.weights_K[used]),
        draw=draw,
    )
    weights_K = np.zeros(len(COLUMNS))
    weights_K[used] = weights
    return EditModel(offset=offset, weights_K=weights_K)


def blended(shipped: EditModel, own: EditModel) -> EditModel:
    """Half of each.

    An audit's own errors stand among its right labels where a model is fitted on planted ones, and
    make it doubt what looks like them; shipped weights know nothing of this dataset's habits.
    """
    return EditModel(
        offset=(shipped.offset + own.offset) / 2,
        weights_K=(shipped.weights_K + own.weights_K) / 2,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbabilityCurve:
    """P(error) of a finding: sigmoid(offset + slope * log-odds + weight * excess of its audit).

    Log-odds are fitted with planted errors, so that how many findings without any error reach a
    value hardly differs between datasets: `clean_shares`. An audit with more above it has more
    errors; this `excess` takes the place of a known share of errors.
    """

    offset: float
    slope: float
    weight: float = 0.0
    clean_shares: tuple[float, ...] = ()
    """Share of right findings whose log-odds are at least each of MARKS; empty where that differs
    too much between datasets to be counted on."""

    def excess(self, log_odds_N: FloatArray) -> float:
        """Log of how many more findings of an audit are high than without errors; 0 for none."""
        return excess_of(log_odds_N, self.clean_shares) if self.clean_shares else 0.0

    def log_odds(self, log_odds_N: FloatArray, *, excess: float) -> FloatArray:
        """Log-odds (N,) of an error, from those of the edit being the right fix of one."""
        result_N: FloatArray = self.offset + self.slope * log_odds_N + self.weight * excess
        return result_N

    def probability(self, log_odds_N: FloatArray, *, excess: float) -> FloatArray:
        """(N,), 0 to 1, of a dataset of which nothing else is known."""
        return marginal(self.log_odds(log_odds_N, excess=excess), DATASET_DEVIATION)


MARKS = (-2.0, -1.0, 0.0)
"""Log-odds at which findings are counted."""
CORRECTION = {ListName.STEPS: 0.75, ListName.BOUNDARIES: -0.5, ListName.ORDER: -0.5}
"""Log-odds by which a fit with planted errors is off in real labels (docs/findings_study.md). It
takes all other labels for right, but in the two datasets of five that somebody labelled again half
of the high findings of steps in unchanged labels are real errors. And boundaries and order are
planted in more places than most datasets have them wrong: who writes an unusual order mostly saw
it."""
SHIPPED_CURVES = {
    ListName.STEPS: ProbabilityCurve(
        offset=-0.916 + CORRECTION[ListName.STEPS],
        slope=1.192,
        weight=1.485,
        clean_shares=(0.0277, 0.0093, 0.0015),
    ),
    ListName.BOUNDARIES: ProbabilityCurve(
        offset=0.297 + CORRECTION[ListName.BOUNDARIES], slope=1.003
    ),
    ListName.ORDER: ProbabilityCurve(offset=0.390 + CORRECTION[ListName.ORDER], slope=1.197),
}
"""From planted errors in five datasets (`benchmarks/findings.py report`). How many boundaries and
orders score high without an error differs tenfold between datasets, so that counting them says
nothing about errors."""


def excess_of(log_odds_N: FloatArray, clean_shares: Sequence[float]) -> float:
    """Mean over MARKS of the log of counted over expected findings, one added to both."""
    ratios = [
        np.log(((log_odds_N >= mark).sum() + 1) / (share * len(log_odds_N) + 1))
        for mark, share in zip(MARKS, clean_shares, strict=True)
    ]
    return float(np.mean(ratios))


def fit_curve(
    audits: Sequence[tuple[FloatArray, BoolArray]], *, counts: bool = True
) -> ProbabilityCurve:
    """Fits on audits whose errors are known: log-odds of their findings, and which are right.

    Every audit counts alike, however many findings it has; some should have few errors or none.
    `counts`: whether the number of high findings of an audit has a say.
    """
    clean_shares = tuple(
        float(np.mean([(odds_N[~right_N] >= mark).mean() for odds_N, right_N in audits]))
        for mark in (MARKS if counts else ())
    )
    rows, targets, weights = [], [], []
    for odds_N, right_N in audits:
        # What is far below can't be an error worth a look, and would decide the slope.
        near_N = odds_N > LEAST_LOG_ODDS
        columns = [odds_N[near_N]]
        if counts:
            columns.append(np.full(near_N.sum(), excess_of(odds_N, clean_shares)))
        rows.append(np.stack(columns, axis=1))
        targets.append(right_N[near_N])
        weights.append(np.full(near_N.sum(), 1 / max(near_N.sum(), 1)))
    offset, fitted = _bounded_logistic(
        np.concatenate(rows),
        np.concatenate(targets),
        np.concatenate(weights),
        towards=(0.0, np.ones(2 if counts else 1)),
        draw=0.001,
    )
    slope, weight = (*fitted.tolist(), 0.0)[:2]
    return ProbabilityCurve(offset=offset, slope=slope, weight=weight, clean_shares=clean_shares)


def move_to_share(z_N: FloatArray, share: float) -> float:
    """By how much log-odds must move for the mean of their probabilities to be a share."""
    return _zero_of(lambda move: share - float(marginal(z_N + move, DATASET_DEVIATION).mean()), 40)


def _zero_of(falling: Callable[[float], float], most: float) -> float:
    """Where a function that falls is 0, between -most and most."""
    low, high = -most, most
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return (low + high) / 2


def move_by_reviews(z_R: FloatArray, right_R: BoolArray) -> tuple[float, float]:
    """By how much all log-odds are off, as decisions on reviewed findings say: mean and deviation.

    Before any decision that is 0 and DATASET_DEVIATION.
    """
    variance = DATASET_DEVIATION**2

    def slope(move: float) -> float:
        return float((right_R - sigmoid(z_R + move)).sum()) - move / variance

    move = _zero_of(slope, (len(z_R) + 1) * variance)
    p_R = sigmoid(z_R + move)
    return move, float((p_R * (1 - p_R)).sum() + 1 / variance) ** -0.5


def marginal(z_N: FloatArray, deviation: float) -> FloatArray:
    """Probabilities (N,) of log-odds that may all be off by a normal of that deviation."""
    # The logistic function is nearly a normal's distribution of deviation sqrt(8 / pi).
    return sigmoid(z_N / np.sqrt(1 + np.pi / 8 * deviation**2))


def expected_right(
    lists: Iterable[tuple[FloatArray, float]], *, sure: float = 0.8
) -> tuple[float, float, float]:
    """How many findings are right: mean, and bounds that hold with probability `sure`.

    Of each list the probabilities, and by how much its log-odds may all be off together, as a
    deviation. Findings are taken as independent but for that, and so are lists.
    """
    number, mean, variance = 0, 0.0, 0.0
    for probability_N, deviation in lists:
        z_N = logit(probability_N)
        together = float((sigmoid(z_N + deviation) - sigmoid(z_N - deviation)).sum()) / 2
        number += len(probability_N)
        mean += float(probability_N.sum())
        variance += float((probability_N * (1 - probability_N)).sum()) + together**2
    half_width = NormalDist().inv_cdf((1 + sure) / 2) * variance**0.5
    return mean, max(mean - half_width, 0.0), min(mean + half_width, float(number))


def sigmoid(z: FloatArray) -> FloatArray:
    result: FloatArray = 0.5 * (1 + np.tanh(0.5 * z))
    return result


def logit(p: FloatArray) -> FloatArray:
    clipped = np.clip(p, 1e-6, 1 - 1e-6)
    result: FloatArray = np.log(clipped / (1 - clipped))
    return result


def _bounded_logistic(
    x_NK: FloatArray,
    right_N: BoolArray,
    weight_N: FloatArray,
    *,
    towards: tuple[float, FloatArray],
    draw: float,
) -> tuple[float, FloatArray]:
    """Offset and weights (K,), each at least 0, of a logistic model drawn towards given weights."""
    from scipy.optimize import minimize  # reading an audit does without it

    y_N = right_N.astype(np.float64)
    share_N = weight_N / weight_N.sum()
    scale_K = x_NK.std(axis=0) + 0.05
    start, target_K = towards

    def loss(parameters: FloatArray) -> tuple[float, FloatArray]:
        z_N = parameters[0] + x_NK @ parameters[1:]
        away_K = (parameters[1:] - target_K) * scale_K
        value = share_N @ (np.logaddexp(0.0, z_N) - y_N * z_N) + draw / 2 * (away_K @ away_K)
        error_N = share_N * (sigmoid(z_N) - y_N)
        slope_K = x_NK.T @ error_N + draw * away_K * scale_K
        return float(value), np.concatenate([[error_N.sum()], slope_K])

    found = minimize(
        loss,
        np.concatenate([[start], target_K]),
        jac=True,
        bounds=[(None, None), *[(0.0, None)] * len(target_K)],
        method="L-BFGS-B",
    ).x
    return float(found[0]), found[1:]


def fitted_models(
    evidence: Mapping[EditKind, FloatArray], right: Mapping[EditKind, BoolArray]
) -> dict[EditKind, EditModel]:
    """A model of every kind of edit: of steps half shipped, half fitted, where there are any.

    Boundaries and order have a few planted errors alone, and no weights that differ much between
    datasets: fitted ones rank them worse (docs/findings_study.md).
    """
    return {
        kind: blended(model, fit_edit_model(evidence[kind], right[kind], model, draw=DRAW))
        if kind in evidence and LIST_OF[kind] is ListName.STEPS
        else model
        for kind, model in SHIPPED.items()
    }
