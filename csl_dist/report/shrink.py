"""Long videos as pictures: frames are put together in columns, read block by block.

An hour of video has more frames than a screen has columns, and its trajectory does not fit into
memory twice. Nothing here holds more than a block of it.
"""

from dataclasses import dataclass

import numpy as np

from csl_dist.query import Audit
from csl_dist.records import FloatArray, IntArray

MAX_COLUMNS = 1000
BLOCK_FRAMES = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrunkLosses:
    """Losses of a video: mean by column and checkpoint (E, W), and by checkpoint (E,)."""

    columns_EW: FloatArray
    mean_E: FloatArray


def column_starts(num_frames: int, max_columns: int = MAX_COLUMNS) -> IntArray:
    """The first frame (W,) of each column."""
    num_columns = min(num_frames, max_columns)
    return np.arange(num_columns) * num_frames // num_columns


def highest_in_columns(score_T: FloatArray) -> FloatArray:
    """The highest score (W,) of each column, so that no peak is lost; NaN where there is none."""
    filled_T = np.where(np.isnan(score_T), -np.inf, score_T)
    highest_W = np.maximum.reduceat(filled_T, column_starts(len(score_T)))
    return np.where(np.isinf(highest_W), np.nan, highest_W)


def shrunk_losses(audit: Audit, video: str, *, scorer: str | None = None) -> ShrunkLosses:
    """Mean losses of a video's labels; frames without a label do not count."""
    num_frames = audit.annotation(video).num_frames
    starts_W = column_starts(num_frames)
    column_T = np.repeat(np.arange(len(starts_W)), np.diff([*starts_W, num_frames]))
    num_checkpoints = audit.log_probabilities(video, scorer=scorer).shape[0]
    totals_EW = np.zeros((num_checkpoints, len(starts_W)))
    counts_W = np.zeros(len(starts_W))
    for start in range(0, num_frames, BLOCK_FRAMES):
        stop = min(num_frames, start + BLOCK_FRAMES)
        losses_ET = audit.trajectory(video, frames=slice(start, stop), scorer=scorer)
        known_T = ~np.isnan(losses_ET[0])
        columns, firsts = np.unique(column_T[start:stop], return_index=True)
        filled_ET = np.where(known_T, losses_ET, 0.0)
        totals_EW[:, columns] += np.add.reduceat(filled_ET, firsts, axis=1)
        counts_W[columns] += np.add.reduceat(known_T.astype(int), firsts)
    with np.errstate(invalid="ignore", divide="ignore"):
        return ShrunkLosses(
            columns_EW=totals_EW / counts_W, mean_E=totals_EW.sum(axis=1) / counts_W.sum()
        )
