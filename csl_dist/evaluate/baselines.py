"""What people would use instead of CSL, from the same trajectories. Higher is more suspicious.

Final-epoch loss and AUM are among the stored scores; these are the others. Each is as
its authors define it, unsmoothed.
"""

from collections.abc import Mapping

import numpy as np
from cleanlab.rank import get_label_quality_scores

from csl_dist.score.formulas import own_and_rival
from csl_dist.types import UNLABELLED, FloatArray, IntArray

BASELINES = (
    *("random", "random_smoothed", "final", "aum", "cartography_confidence"),
    *("cartography_variability", "forgetting", "confident_learning"),
)
"""All of them, the stored `final` and `aum` included."""


def random_score(labels_T: IntArray, rng: np.random.Generator) -> FloatArray:
    """Uniform noise (T,): what any score must beat."""
    return np.where(labels_T == UNLABELLED, np.nan, rng.random(len(labels_T)))


def trajectory_baselines(logp_ETC: FloatArray, labels_T: IntArray) -> dict[str, FloatArray]:
    """Dataset Cartography and forgetting events, (T,) by name.

    `cartography_confidence` is one minus the label's mean probability, `cartography_variability`
    its standard deviation over checkpoints; `forgetting` counts how often a frame that was
    classified as labelled no longer is, and more than any count where it never was.
    """
    own_ET, rival_ET = own_and_rival(logp_ETC, labels_T)
    probability_ET = np.exp(own_ET)
    right_ET = own_ET > rival_ET
    forgotten_T = (right_ET[:-1] & ~right_ET[1:]).sum(axis=0).astype(float)
    forgotten_T[~right_ET.any(axis=0)] = len(right_ET)
    forgotten_T[labels_T == UNLABELLED] = np.nan
    return {
        "cartography_confidence": 1 - probability_ET.mean(axis=0),
        "cartography_variability": probability_ET.std(axis=0),
        "forgetting": forgotten_T,
    }


def confident_learning(
    logp_final: Mapping[str, FloatArray], labels: Mapping[str, IntArray]
) -> dict[str, FloatArray]:
    """Cleanlab's label quality turned round, (T,) by video, from the last checkpoint.

    `logp_final` are its log-probabilities (T, C). Probabilities are adjusted by each class's mean
    self-confidence over all videos, which is confident learning's part in the ranking; classes that
    no frame is labelled as are left out, because they have none.
    """
    videos = list(labels)
    labels_N = np.concatenate([labels[video] for video in videos])
    logp_NC = np.concatenate([logp_final[video] for video in videos]).astype(np.float64)
    known_N = labels_N != UNLABELLED
    score_N = np.full(len(labels_N), np.nan)
    present, index_N = np.unique(labels_N[known_N], return_inverse=True)
    if len(present) < 2:
        score_N[known_N] = 0.0
    else:
        probability_NC = np.exp(logp_NC[known_N][:, present])
        probability_NC /= probability_NC.sum(axis=1, keepdims=True)
        quality_N = get_label_quality_scores(
            index_N, probability_NC, method="self_confidence", adjust_pred_probs=True
        )
        score_N[known_N] = 1 - quality_N
    bounds = np.cumsum([len(labels[video]) for video in videos])[:-1]
    return dict(zip(videos, np.split(score_N, bounds), strict=True))
