"""Compare scores with known label errors: micro-AUC and segment-wise detection accuracy.

For a kind of error, the frames are those of all videos that have no error of another kind, so that
the kinds are measured apart, as in the paper.
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


def truth_of_kind(
    kind: ErrorKind, errors: Sequence[PlantedError], num_frames: Mapping[str, int]
) -> Truth:
    """The truth of one kind, over all videos of `num_frames` without errors of another."""
    unknown = sorted({error.video for error in errors} - set(num_frames))
    if unknown:
        raise DataError(
            f"known errors name {len(unknown)} videos that are not audited: "
            f"{', '.join(unknown[:5])}; correct dataset.truth"
        )
    others = {error.video for error in errors if error.kind is not kind}
    videos = tuple(video for video in num_frames if video not in others)
    spans = {
        video: tuple(e.span for e in errors if e.video == video and e.kind is kind)
        for video in videos
    }
    masks = {video: mask_of(spans[video], num_frames[video]) for video in videos}
    return Truth(videos=videos, masks=masks, spans=spans)


def mask_of(spans: Sequence[Span], num_frames: int) -> BoolArray:
    """True (T,) inside any of the spans."""
    mask_T = np.zeros(num_frames, dtype=bool)
    for span in spans:
        mask_T[span.start : span.stop] = True
    return mask_T


def auc_micro(truth: Truth, scores: Mapping[str, FloatArray]) -> float:
    """Area under the ROC curve over all labelled frames pooled."""
    mask_N = np.concatenate([truth.masks[video] for video in truth.videos])
    score_N = np.concatenate([scores[video] for video in truth.videos])
    known_N = ~np.isnan(score_N)
    return float(roc_auc_score(mask_N[known_N], score_N[known_N]))


def eda_top(truth: Truth, scores: Mapping[str, FloatArray], percent: float) -> float:
    """Share of erroneous spans with at least one frame among the top percent of all frames."""
    pooled_N = np.concatenate([scores[video] for video in truth.videos])
    pooled_N = np.sort(pooled_N[~np.isnan(pooled_N)])[::-1]
    num_top = max(1, int(len(pooled_N) * percent / 100))
    lowest = pooled_N[num_top - 1]
    hits = [
        bool((scores[video][span.start : span.stop] >= lowest).any())
        for video in truth.videos
        for span in truth.spans[video]
    ]
    return float(np.mean(hits))


def kind_metrics(truth: Truth, scores: Mapping[str, Mapping[str, FloatArray]]) -> dict[str, float]:
    """The metrics of one scorer and kind; `scores` by score name, then video."""
    metrics = {f"auc_{name}": auc_micro(truth, scores[name]) for name in scores}
    metrics["eda_top_10"] = eda_top(truth, scores["smoothed"], 10)
    return {name: round(value, METRIC_DIGITS) for name, value in metrics.items()}
