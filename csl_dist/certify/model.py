"""How likely seconds are wrong in each stratum, given what was judged in all of them.

The log-odds of an error rise with suspicion along a line, which the data choose, and each stratum
may lie off the line. So strata tell of each other: where few segments were judged, and none was
wrong, the others say how much may be wrong there. The posterior is computed on a grid, without
random numbers but for the draws from it.
"""

from functools import lru_cache

import numpy as np

from csl_dist.types import FloatArray

LEVELS = np.linspace(-13.0, 3.0, 49)
"""Log-odds of an error at middling suspicion."""
LEVEL_MEAN, LEVEL_DEVIATION = -5.5, 2.0
SLOPES = np.linspace(0.0, 4.5, 13)
"""By how much the log-odds rise with a standard deviation of suspicion: never down."""
SLOPE_MEAN, SLOPE_DEVIATION = 2.0, 1.0
OFF_LINE = 0.5
"""Standard deviation, in log-odds, by which a stratum lies off the line."""
NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(7)
LOG_NODE_WEIGHTS = np.log(_WEIGHTS / _WEIGHTS.sum())


@lru_cache(maxsize=8)
def _grid(suspicion: tuple[float, ...]) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Prior (G,), and probability, its logarithm and that of its opposite (G, H, Q)."""
    level_G, slope_G = (one.ravel() for one in np.meshgrid(LEVELS, SLOPES, indexing="ij"))
    prior_G = -0.5 * ((level_G - LEVEL_MEAN) / LEVEL_DEVIATION) ** 2
    prior_G -= 0.5 * ((slope_G - SLOPE_MEAN) / SLOPE_DEVIATION) ** 2
    line_GH = level_G[:, None] + slope_G[:, None] * np.array(suspicion)
    log_odds_GHQ = line_GH[:, :, None] + OFF_LINE * NODES
    probability_GHQ = 1 / (1 + np.exp(-log_odds_GHQ))
    return (
        prior_G,
        probability_GHQ,
        -np.logaddexp(0, -log_odds_GHQ),
        -np.logaddexp(0, log_odds_GHQ),
    )


def simulated_shares(
    suspicion_H: FloatArray,
    draws_H: FloatArray,
    wrong_H: FloatArray,
    num_simulations: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Shares (S, H) of wrong seconds, drawn from the posterior.

    Of `draws_H` seconds of each stratum, `wrong_H` were wrong; both may be fractions.
    """
    prior_G, probability_GHQ, log_wrong_GHQ, log_right_GHQ = _grid(tuple(suspicion_H.tolist()))
    log_GHQ = wrong_H[:, None] * log_wrong_GHQ + (draws_H - wrong_H)[:, None] * log_right_GHQ
    log_GHQ += LOG_NODE_WEIGHTS
    highest_GH = log_GHQ.max(axis=-1)
    weight_GHQ = np.exp(log_GHQ - highest_GH[..., None])
    total_GH = weight_GHQ.sum(axis=-1)
    log_G = prior_G + (np.log(total_GH) + highest_GH).sum(axis=1)
    weight_G = np.exp(log_G - log_G.max())
    chosen_S = rng.choice(len(weight_G), size=num_simulations, p=weight_G / weight_G.sum())
    below_SHQ = weight_GHQ[chosen_S].cumsum(axis=-1) / total_GH[chosen_S][..., None]
    lot_SH = rng.random((num_simulations, len(suspicion_H)))
    node_SH = (lot_SH[..., None] > below_SHQ).sum(axis=-1).clip(max=len(NODES) - 1)
    return probability_GHQ[chosen_S[:, None], np.arange(len(suspicion_H)), node_SH]
