"""From a trajectory and labels to per-frame scores. Higher is more suspicious.

Frames without a label score NaN, and no other frame's score depends on them.
"""

from collections.abc import Callable

import numpy as np

from csl_dist.records import UNLABELLED, FloatArray, IntArray

BLOCK_FRAMES = 8192
"""Frames of a trajectory held at once."""


def frame_losses(logp_ETC: FloatArray, labels_T: IntArray, weights_C: FloatArray) -> FloatArray:
    """Losses (E, T) of the labels under each checkpoint: -alpha[y] * logp[y]; at least 0."""
    safe_T = np.where(labels_T == UNLABELLED, 0, labels_T)
    logp_ET = np.take_along_axis(logp_ETC, safe_T[None, :, None], axis=2)[..., 0]
    weight_T = np.where(labels_T == UNLABELLED, np.nan, weights_C[safe_T])
    return -weight_T * logp_ET


def cumulative_loss(losses_ET: FloatArray) -> FloatArray:
    """CSL (T,): the mean loss over checkpoints."""
    csl_T: FloatArray = losses_ET.mean(axis=0)
    return csl_T


def smooth(score_T: FloatArray, window: int) -> FloatArray:
    """Local mean over `window` frames around each, fewer at the ends; NaN frames are left out."""
    half = window // 2
    known_T = ~np.isnan(score_T)
    totals = np.concatenate([[0.0], np.where(known_T, score_T, 0.0).cumsum(dtype=np.float64)])
    counts = np.concatenate([[0], known_T.cumsum()])
    index = np.arange(len(score_T))
    low, high = np.maximum(index - half, 0), np.minimum(index + half + 1, len(score_T))
    with np.errstate(invalid="ignore", divide="ignore"):
        mean_T = (totals[high] - totals[low]) / (counts[high] - counts[low])
    return np.where(known_T, mean_T, np.nan)


def video_scores(
    read_block: Callable[[int, int], FloatArray],
    labels_T: IntArray,
    weights_C: FloatArray,
    *,
    window: int,
) -> dict[str, FloatArray]:
    """Scores (T,) by name; `read_block(start, stop)` gives log-probabilities (E, …, C)."""
    csl_T = np.empty(len(labels_T))
    final_T = np.empty(len(labels_T))
    for start in range(0, len(labels_T), BLOCK_FRAMES):
        block = slice(start, min(len(labels_T), start + BLOCK_FRAMES))
        logp_ETC = read_block(block.start, block.stop)
        losses_ET = frame_losses(logp_ETC, labels_T[block], weights_C)
        csl_T[block] = cumulative_loss(losses_ET)
        final_T[block] = losses_ET[-1]
    return {"csl": csl_T, "smoothed": smooth(csl_T, window), "final": final_T}
