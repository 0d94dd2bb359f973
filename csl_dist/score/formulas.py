"""From a trajectory and labels to per-frame scores. Higher is more suspicious.

Frames without a label score NaN, and no other frame's score depends on them. A video is read in
blocks of frames, so that memory does not grow with its length.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pandas as pd

from csl_dist.config import ScoreConfig
from csl_dist.measures import LATE, SEGMENT, SMOOTHED
from csl_dist.strategies import Strategy, first_late, selected_epochs
from csl_dist.types import (
    NORMAL_MAD,
    UNLABELLED,
    FloatArray,
    IntArray,
    Span,
    runs_of,
    spans_where,
)

BLOCK_VALUES = 1 << 24
"""Log-probabilities of a trajectory held at once: 64 MB."""
OUTLYING_DEVIATIONS = 6.0
"""Robust deviations from which on a video is told as a whole."""


class Trajectory(Protocol):
    """What is read of a trajectory; `csl_dist.predict.published.Trajectory` is one."""

    epochs: list[int]

    @property
    def shape(self) -> tuple[int, int, int]: ...

    def read(self, start: int = 0, stop: int | None = None) -> FloatArray: ...


def loss_weights(class_weights_C: FloatArray, config: ScoreConfig) -> FloatArray:
    """Weights (C,) that losses are read with: those of training, or ones if the run says so."""
    return class_weights_C if config.weighted else np.ones_like(class_weights_C)


def frame_losses(logp_ETC: FloatArray, labels_T: IntArray, weights_C: FloatArray) -> FloatArray:
    """Losses (E, T) of the labels under each checkpoint: -alpha[y] * logp[y]; at least 0."""
    safe_T = np.where(labels_T == UNLABELLED, 0, labels_T)
    logp_ET = np.take_along_axis(logp_ETC, safe_T[None, :, None], axis=2)[..., 0]
    return weighted_losses(logp_ET, labels_T, weights_C)


def weighted_losses(logp_ET: FloatArray, labels_T: IntArray, weights_C: FloatArray) -> FloatArray:
    """The same from the log-probabilities (E, T) of the labels alone."""
    safe_T = np.where(labels_T == UNLABELLED, 0, labels_T)
    weight_T = np.where(labels_T == UNLABELLED, np.nan, weights_C[safe_T])
    return -weight_T * logp_ET


def cumulative_loss(losses_ET: FloatArray) -> FloatArray:
    """CSL (T,): the mean loss over checkpoints."""
    csl_T: FloatArray = losses_ET.mean(axis=0)
    return csl_T


def own_and_rival(logp_ETC: FloatArray, labels_T: IntArray) -> tuple[FloatArray, FloatArray]:
    """Log-probabilities (E, T) of the label and of the likeliest other class; NaN without label."""
    index_1T1 = np.where(labels_T == UNLABELLED, 0, labels_T)[None, :, None]
    own_ET = np.take_along_axis(logp_ETC, index_1T1, axis=2)[..., 0]
    others_ETC = logp_ETC.copy()
    np.put_along_axis(others_ETC, index_1T1, -np.inf, axis=2)
    rival_ET = others_ETC.max(axis=2)
    unlabelled_T = labels_T == UNLABELLED
    own_ET[:, unlabelled_T] = rival_ET[:, unlabelled_T] = np.nan
    return own_ET, rival_ET


def frame_scores(
    logp_ETC: FloatArray, labels_T: IntArray, weights_C: FloatArray
) -> dict[str, FloatArray]:
    """All unsmoothed scores (T,) by name.

    `csl` is the mean loss; `margin` the mean of the likeliest other class's probability minus the
    label's, -1 to 1; `aum` the same of log-probabilities (the area under the margin, turned round);
    `final` the loss at the last checkpoint.
    """
    losses_ET = frame_losses(logp_ETC, labels_T, weights_C)
    own_ET, rival_ET = own_and_rival(logp_ETC, labels_T)
    means = {
        "csl": losses_ET,
        "margin": np.exp(rival_ET) - np.exp(own_ET),
        "aum": rival_ET - own_ET,
    }
    half = len(logp_ETC) // 2
    scores = {name: cumulative_loss(values_ET) for name, values_ET in means.items()}
    late = {f"{name}{LATE}": cumulative_loss(v_ET[half:]) for name, v_ET in means.items()}
    return scores | late | {"final": losses_ET[-1]}


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


def smooth_by_segment(score_T: FloatArray, labels_T: IntArray, window: int) -> FloatArray:
    """Mean of two: the local mean within a frame's segment, and the segment's own mean.

    Labels are given, and are wrong, by segment: a neighbour of another label says nothing about
    this one, and all frames of a segment together say more than a few of them.
    """
    result_T = np.full(len(score_T), np.nan)
    for segment in runs_of(labels_T):
        if labels_T[segment.start] != UNLABELLED:
            inside = slice(segment.start, segment.stop)
            local_T = smooth(score_T[inside], window)
            result_T[inside] = (local_T + np.mean(score_T[inside], dtype=np.float64)) / 2
    return result_T


def smoothed_as_named(
    score_T: FloatArray, labels_T: IntArray, *, smoothing: str, window: int
) -> FloatArray:
    """A score (T,) with the smoothing that the ending of its name asks for."""
    if smoothing == SMOOTHED:
        return smooth(score_T, window)
    if smoothing == SEGMENT:
        return smooth_by_segment(score_T, labels_T, window)
    return score_T


def trajectory_blocks(
    trajectory: Trajectory,
    *,
    strategy: Strategy = "full",
    span: Span | None = None,
) -> Iterator[tuple[slice, FloatArray]]:
    """Frames and log-probabilities (E, T, C) of a video, or of a span of it, block by block.

    A block has as many frames as may be held at once; frames are counted from the video's start.
    """
    num_checkpoints, num_frames, num_classes = trajectory.shape
    rows = chosen_rows(trajectory.epochs, strategy)
    span = span or Span(0, num_frames)
    size = max(1, BLOCK_VALUES // (num_checkpoints * num_classes))
    for start in range(span.start, span.stop, size):
        frames = slice(start, min(span.stop, start + size))
        yield frames, trajectory.read(frames.start, frames.stop)[rows]


def trajectory_scores(
    trajectory: Trajectory, labels_T: IntArray, weights_C: FloatArray, config: ScoreConfig
) -> dict[str, FloatArray]:
    """Scores (T,) by name over the selected checkpoints, none of them smoothed."""
    parts: dict[str, list[FloatArray]] = {}
    for frames, logp_ETC in trajectory_blocks(trajectory, strategy=config.checkpoints):
        for name, score_T in frame_scores(logp_ETC, labels_T[frames], weights_C).items():
            parts.setdefault(name, []).append(score_T)
    return {name: np.concatenate(blocks) for name, blocks in parts.items()}


def rescored(
    score_T: FloatArray,
    name: str,
    trajectory: Trajectory,
    weights_C: FloatArray,
    *,
    before_T: IntArray,
    after_T: IntArray,
    strategy: Strategy,
) -> FloatArray:
    """A score (T,) under other labels: frames whose label changed are computed anew."""
    rescored_T = score_T.copy()
    for span in spans_where(after_T != before_T):
        for frames, logp_ETC in trajectory_blocks(trajectory, strategy=strategy, span=span):
            rescored_T[frames] = frame_scores(logp_ETC, after_T[frames], weights_C)[name]
    return rescored_T


def late_probabilities(trajectory: Trajectory, span: Span, strategy: Strategy) -> FloatArray:
    """Mean probability (C,) of each class in a span, over the later half of the training."""
    parts = [part_TC.sum(axis=0) for part_TC in _late_blocks(trajectory, strategy, span)]
    return np.sum(parts, axis=0) / len(span)


def late_classes(trajectory: Trajectory, strategy: Strategy, *, window: int) -> IntArray:
    """The likeliest class (T,) over the later half of the training, whatever the labels."""
    probability_TC = np.concatenate([*_late_blocks(trajectory, strategy)])
    # As for scores: a single frame that looks like another step is no step.
    smoothed = [smooth(column_T, window) for column_T in probability_TC.T]
    return np.argmax(smoothed, axis=0)


def _late_blocks(
    trajectory: Trajectory, strategy: Strategy, span: Span | None = None
) -> Iterator[FloatArray]:
    """Mean probabilities (frames, C) over the late ones of the selected checkpoints."""
    first = first_late(selected_epochs(trajectory.epochs, strategy))
    for _, logp_ETC in trajectory_blocks(trajectory, strategy=strategy, span=span):
        yield np.exp(logp_ETC[first:], dtype=np.float64).mean(axis=0)


def chosen_rows(epochs: Sequence[int], strategy: Strategy) -> slice | list[int]:
    """Which rows of a trajectory a strategy picks; all of them without a copy."""
    selected = selected_epochs(epochs, strategy)
    if len(selected) == len(epochs):
        return slice(None)
    return [list(epochs).index(epoch) for epoch in selected]


@dataclass(frozen=True, slots=True, kw_only=True)
class UsualCsl:
    """The CSL of a video as a whole."""

    num_frames: int
    """Labelled ones."""
    median: float | None
    """None where there are none."""


def usual_csl(csl_T: FloatArray) -> UsualCsl:
    """Of a video's frames; NaN where a frame has no label."""
    known_T = csl_T[~np.isnan(csl_T)].astype(np.float32)  # as scores are stored
    return UsualCsl(
        num_frames=len(known_T), median=float(np.median(known_T)) if len(known_T) else None
    )


def outlying_videos(usual: Mapping[str, UsualCsl]) -> pd.DataFrame:
    """How far each video's median CSL lies above the other videos', most first.

    `deviations` are robust: from the median over videos, in units of the median absolute deviation
    that equal a standard deviation where values are normal. A video far off may have another one's
    annotation file; a few wrong spans do not move its median.
    """
    known = {video: own for video, own in usual.items() if own.median is not None}
    medians_V = np.array([own.median for own in known.values()], dtype=float)
    distances_V = medians_V - (np.median(medians_V) if known else 0.0)
    spread = NORMAL_MAD * np.median(np.abs(distances_V)) if known else 0.0
    deviations_V = distances_V / spread if spread else np.zeros(len(known))
    table = pd.DataFrame(
        {
            "video": list(known),
            "frames": [own.num_frames for own in known.values()],
            "median_csl": medians_V,
            "deviations": deviations_V,
            "outlier": deviations_V > OUTLYING_DEVIATIONS,
        }
    )
    return table.sort_values("deviations", ascending=False, ignore_index=True)
