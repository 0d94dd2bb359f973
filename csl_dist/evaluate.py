"""Compare scores with known label errors: micro-AUC and segment-wise detection accuracy.

For a kind of error, the frames are those of the videos that have errors of this kind or none at
all, without the frames of other kinds; so the kinds are measured apart, as in the paper.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.metrics import roc_auc_score

from csl_dist.errors import DataError
from csl_dist.records import BoolArray, ErrorKind, FloatArray, PlantedError, Span

METRIC_DIGITS = 6
"""Digits kept in metrics.json."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """Known errors of one kind in the videos where that kind is measured."""

    videos: tuple[str, ...]
    masks: dict[str, BoolArray]
    spans: dict[str, tuple[Span, ...]]
    left_out: dict[str, BoolArray]
    """Frames of other kinds of errors, which count neither as right nor as wrong."""

    def pooled(self, scores: Mapping[str, FloatArray]) -> tuple[BoolArray, FloatArray]:
        """Mask and score of all frames that count, one video after the other."""
        mask_N = np.concatenate([self.masks[video] for video in self.videos])
        score_N = np.concatenate([scores[video] for video in self.videos])
        left_N = np.concatenate([self.left_out[video] for video in self.videos])
        counts_N = ~np.isnan(score_N) & ~left_N
        return mask_N[counts_N], score_N[counts_N]


def truth_of_kind(
    kind: ErrorKind, errors: Sequence[PlantedError], num_frames: Mapping[str, int]
) -> Truth:
    """The truth of one kind, over the audited videos of `num_frames`."""
    for error in errors:
        frames = num_frames.get(error.video)
        if frames is None:
            raise DataError(
                f"a known error is in video {error.video!r}, which is not audited; correct "
                "dataset.truth"
            )
        if not 0 <= error.span.start < error.span.stop <= frames:
            raise DataError(
                f"a known error of video {error.video!r} is at frames {error.span.start} to "
                f"{error.span.stop}, but the video has {frames} sampled frames; correct "
                "dataset.truth"
            )
    own = {
        video: tuple(e.span for e in errors if e.video == video and e.kind is kind)
        for video in num_frames
    }
    other = {
        video: tuple(e.span for e in errors if e.video == video and e.kind is not kind)
        for video in num_frames
    }
    videos = tuple(video for video in num_frames if own[video] or not other[video])
    masks = {video: mask_of(own[video], num_frames[video]) for video in videos}
    return Truth(
        videos=videos,
        masks=masks,
        spans={video: own[video] for video in videos},
        left_out={v: mask_of(other[v], num_frames[v]) & ~masks[v] for v in videos},
    )


def mask_of(spans: Sequence[Span], num_frames: int) -> BoolArray:
    """True (T,) inside any of the spans."""
    mask_T = np.zeros(num_frames, dtype=bool)
    for span in spans:
        mask_T[span.start : span.stop] = True
    return mask_T


def auc_micro(truth: Truth, scores: Mapping[str, FloatArray]) -> float | None:
    """Area under the ROC curve over all frames pooled; None where all are right or all wrong."""
    mask_N, score_N = truth.pooled(scores)
    if mask_N.all() or not mask_N.any():
        return None
    return float(roc_auc_score(mask_N, score_N))


def eda_top(truth: Truth, scores: Mapping[str, FloatArray], percent: float) -> float | None:
    """Share of erroneous spans with at least one frame among the top percent of all frames."""
    _, score_N = truth.pooled(scores)
    hits = []
    if len(score_N):
        num_top = max(1, int(len(score_N) * percent / 100))
        lowest = np.sort(score_N)[-num_top]
        hits = [
            bool((scores[video][span.start : span.stop] >= lowest).any())
            for video in truth.videos
            for span in truth.spans[video]
        ]
    return float(np.mean(hits)) if hits else None


def kind_metrics(
    truth: Truth, scores: Mapping[str, Mapping[str, FloatArray]]
) -> dict[str, float | None]:
    """The metrics of one scorer and kind; `scores` by score name, then video."""
    metrics = {f"auc_{name}": auc_micro(truth, scores[name]) for name in scores}
    metrics["eda_top_10"] = eda_top(truth, scores["smoothed"], 10)
    return {
        name: None if value is None else round(value, METRIC_DIGITS)
        for name, value in metrics.items()
    }
