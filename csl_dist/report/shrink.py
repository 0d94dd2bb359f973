"""Long videos as pictures: frames are grouped into columns, read block by block.

An hour of video has more frames than a screen has columns, and its trajectory may be larger than
memory. No function here holds more than one block of it.
"""

from dataclasses import dataclass

import numpy as np

from csl_dist.audit.reader import Audit
from csl_dist.score.under import Labels
from csl_dist.types import FloatArray, IntArray, Span

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


def highest_in_columns(score_T: FloatArray, max_columns: int = MAX_COLUMNS) -> FloatArray:
    """The highest score (W,) of each column, so that no peak is lost; NaN if there is none."""
    filled_T = np.where(np.isnan(score_T), -np.inf, score_T)
    highest_W = np.maximum.reduceat(filled_T, column_starts(len(score_T), max_columns))
    return np.where(np.isneginf(highest_W), np.nan, highest_W)


def shrunk_losses(
    audit: Audit,
    video: str,
    *,
    span: Span | None = None,
    max_columns: int = MAX_COLUMNS,
    labels: Labels | None = None,
    weighted: bool | None = None,
    scorer: str | None = None,
) -> ShrunkLosses:
    """Mean losses of a video, or of a span of it; frames without a label do not count."""
    span = span or Span(0, audit.annotation(video).num_frames)
    starts_W = column_starts(len(span), max_columns)
    column_T = np.repeat(np.arange(len(starts_W)), np.diff([*starts_W, len(span)]))
    num_checkpoints = audit.log_probabilities(video, scorer=scorer).shape[0]
    totals_EW = np.zeros((num_checkpoints, len(starts_W)))
    counts_W = np.zeros(len(starts_W))
    for start in range(0, len(span), BLOCK_FRAMES):
        stop = min(len(span), start + BLOCK_FRAMES)
        frames = slice(span.start + start, span.start + stop)
        losses_ET = audit.trajectory(
            video, frames=frames, labels=labels, weighted=weighted, scorer=scorer
        )
        known_T = ~np.isnan(losses_ET[0])
        columns, firsts = np.unique(column_T[start:stop], return_index=True)
        filled_ET = np.where(known_T, losses_ET, 0.0)
        totals_EW[:, columns] += np.add.reduceat(filled_ET, firsts, axis=1)
        counts_W[columns] += np.add.reduceat(known_T.astype(int), firsts)
    with np.errstate(invalid="ignore", divide="ignore"):
        return ShrunkLosses(
            columns_EW=totals_EW / counts_W, mean_E=totals_EW.sum(axis=1) / counts_W.sum()
        )
