"""What others would use, from the same trajectories: scores (T,), higher is more suspicious.

Unless said otherwise a score is the mean over the three families. NaN where a frame has no label.
"""

from collections.abc import Sequence

import numpy as np
from cleanlab.rank import get_label_quality_scores
from edit_settings import AuditedVideo, Trajectories, late_half
from sklearn.neighbors import NearestNeighbors

from csl_dist.data.segments import segments_of
from csl_dist.types import FloatArray, IntArray

WINDOW = 9
"""Frames of the paper's smoothing."""
CLEARLY_HIGH = 1.5
"""Deviations from which on the present default heeds the framewise score."""
NEIGHBOURS = 15
MOST_SEARCHED = 15_000
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
    scores["kNN"] = knn_scores(data, videos)
    return scores


def knn_scores(data: Trajectories, videos: Sequence[AuditedVideo]) -> list[FloatArray]:
    """Share (T,) of a frame's nearest frames, in feature space, of other people with another label.

    Labels of neighbours are those that are audited, errors included.
    """
    neighbours_NK, starts = nearest_frames(data)
    labels_N = np.concatenate([labels for _, labels in sorted_labels(data, videos)])
    result = []
    for video in videos:
        rows = starts[video.id] + video.order_T
        other_TK = labels_N[neighbours_NK[rows]] != video.labels_T[:, None]
        result.append(other_TK.mean(axis=1))
    return result


def sorted_labels(data: Trajectories, videos: Sequence[AuditedVideo]) -> list[tuple[str, IntArray]]:
    """Labels by video in the order of the dataset, each of the frame as it was before a swap."""
    by_id = {video.id: video for video in videos}
    result = []
    for name in data.ids:
        video = by_id[name]
        labels_T = np.empty_like(video.labels_T)
        labels_T[video.order_T] = video.labels_T
        result.append((name, labels_T))
    return result


_NEAREST: dict[str, tuple[IntArray, dict[str, int]]] = {}


def nearest_frames(data: Trajectories) -> tuple[IntArray, dict[str, int]]:
    """Rows (N, NEIGHBOURS) of the frames nearest to each of the dataset's, and where videos start.

    Neighbours are searched among at most MOST_SEARCHED frames of other people.
    """
    if data.name not in _NEAREST:
        features = [data.arrays[f"features__{video}"] for video in data.ids]
        lengths = [len(rows) for rows in features]
        starts = dict(zip(data.ids, np.cumsum([0, *lengths[:-1]]).tolist(), strict=True))
        x_ND = np.concatenate(features)
        group_N = np.repeat([data.groups[video] for video in data.ids], lengths)
        nearest_NK = np.empty((len(x_ND), NEIGHBOURS), dtype=np.int64)
        for group in np.unique(group_N):
            others = np.flatnonzero(group_N != group)
            others = others[:: max(1, len(others) // MOST_SEARCHED)]
            search = NearestNeighbors(n_neighbors=NEIGHBOURS, algorithm="brute").fit(x_ND[others])
            own = np.flatnonzero(group_N == group)
            nearest_NK[own] = others[search.kneighbors(x_ND[own], return_distance=False)]
        _NEAREST[data.name] = nearest_NK, starts
    return _NEAREST[data.name]


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
