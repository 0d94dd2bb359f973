"""What others would use, from the same trajectories: scores (T,), higher is more suspicious.

Unless said otherwise a score is the mean over the three families. NaN where a frame has no label.
"""

from collections.abc import Sequence

import numpy as np
from cleanlab.rank import get_label_quality_scores
from edit_settings import AuditedVideo, Trajectories

from csl_dist.flag.edits.emission import late_half
from csl_dist.flag.edits.segments import segments_of
from csl_dist.types import FloatArray, IntArray

WINDOW = 9
"""Frames of the paper's smoothing."""
CLEARLY_HIGH = 1.5
"""Deviations from which on the present default heeds the framewise score."""
CLEANLAB = ("self_confidence", "normalized_margin", "confidence_weighted_entropy")


def rival_scores(data: Trajectories, videos: Sequence[AuditedVideo]) -> dict[str, list[FloatArray]]:
    """Every rival's scores, one array a video."""
    trajectories = [data.logp(video.id, video.swap_seed) for video in videos]
    labels = [video.labels_T for video in videos]
    late_aum = [
        [margin(late_half(logp), y) for logp in row]
        for row, y in zip(trajectories, labels, strict=True)
    ]
    pairs = list(zip(trajectories, labels, strict=True))
    scores = {
        "present default": present_default(data, late_aum, labels),
        "committee AUM by segment": [
            by_segment(np.mean(row, axis=0), y) for row, y in zip(late_aum, labels, strict=True)
        ],
        "CSL smoothed": [
            smoothed(np.mean([loss(logp, y).mean(axis=0) for logp in row], axis=0))
            for row, y in pairs
        ],
        "final loss": [
            np.mean([loss(logp[-1:], y)[0] for logp in row], axis=0) for row, y in pairs
        ],
        "AUM": [np.mean([margin(logp, y) for logp in row], axis=0) for row, y in pairs],
        "cartography": [
            np.mean([1 - np.exp(-loss(logp, y)).mean(axis=0) for logp in row], axis=0)
            for row, y in pairs
        ],
    }
    probabilities = [np.mean([np.exp(logp[-1]) for logp in row], axis=0) for row in trajectories]
    for method in CLEANLAB:
        scores[f"cleanlab {method}"] = cleanlab_scores(probabilities, labels, method)
    scores["surprise U"] = [video.surprise_T for video in videos]
    return scores


def loss(logp_ETC: FloatArray, labels_T: IntArray) -> FloatArray:
    """Losses (E, T); those of frames without a label mean nothing."""
    safe_T = np.maximum(labels_T, 0)
    return -np.take_along_axis(logp_ETC, safe_T[None, :, None], axis=2)[..., 0]


def margin(logp_ETC: FloatArray, labels_T: IntArray) -> FloatArray:
    """Mean over checkpoints (T,) of the best other class's log-probability minus the label's."""
    safe_1T1 = np.maximum(labels_T, 0)[None, :, None]
    others_ETC = logp_ETC.copy()
    np.put_along_axis(others_ETC, safe_1T1, -np.inf, axis=2)
    margin_ET = others_ETC.max(axis=2) + loss(logp_ETC, labels_T)
    result: FloatArray = margin_ET.mean(axis=0)
    return result


def smoothed(score_T: FloatArray) -> FloatArray:
    """Local mean over WINDOW frames, fewer at the ends."""
    ones_T = np.ones(min(WINDOW, len(score_T)))
    counts_T = np.convolve(np.ones(len(score_T)), ones_T, mode="same")
    result: FloatArray = np.convolve(score_T, ones_T, mode="same") / counts_T
    return result


def by_segment(score_T: FloatArray, labels_T: IntArray) -> FloatArray:
    """Mean of the local mean within a segment and the segment's own."""
    result_T = np.empty(len(score_T))
    for segment in segments_of(labels_T):
        part = score_T[segment.start : segment.stop]
        result_T[segment.start : segment.stop] = (smoothed(part)[: len(part)] + part.mean()) / 2
    return result_T


def present_default(
    data: Trajectories, late_aum: list[list[FloatArray]], labels: list[IntArray]
) -> list[FloatArray]:
    """`aum_late_segment` of the ensemble: the transformer's, plus the framewise one where high."""
    index = [data.families.index(name) for name in ("transformer", "framewise")]
    temporal, framewise = (
        standardised(
            [by_segment(row[i], y) for row, y in zip(late_aum, labels, strict=True)], labels
        )
        for i in index
    )
    return [t + np.maximum(f - CLEARLY_HIGH, 0) for t, f in zip(temporal, framewise, strict=True)]


def standardised(scores: list[FloatArray], labels: list[IntArray]) -> list[FloatArray]:
    """In deviations from the mean over all labelled frames."""
    pooled = np.concatenate([s[y >= 0] for s, y in zip(scores, labels, strict=True)])
    return [(score_T - pooled.mean()) / pooled.std() for score_T in scores]


def cleanlab_scores(
    probabilities: list[FloatArray], labels: list[IntArray], method: str
) -> list[FloatArray]:
    """Minus cleanlab's label quality, of the last checkpoints' mean probabilities."""
    p_NC = np.concatenate(probabilities).astype(np.float64)
    y_N = np.concatenate(labels)
    known_N = y_N >= 0
    present, index_N = np.unique(y_N[known_N], return_inverse=True)
    p_NC = p_NC[known_N][:, present]
    p_NC /= p_NC.sum(axis=1, keepdims=True)
    # Cleanlab can't adjust entropy by class, and says so.
    adjust = method != "confidence_weighted_entropy"
    score_N = np.full(len(y_N), np.nan)
    score_N[known_N] = -get_label_quality_scores(
        index_N, p_NC, method=method, adjust_pred_probs=adjust
    )
    bounds = np.cumsum([len(y) for y in labels])[:-1]
    return list(np.split(score_N, bounds))
