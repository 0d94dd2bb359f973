"""Compare scores and flags with known label errors.

For a kind of error, the frames are those of the videos that have errors of this kind or none at
all, without the frames of other kinds; so the kinds are measured apart, as in the paper. Frames of
equal score are ranked in a seeded random order: a score that can't tell frames apart gains nothing.

| metric | what it is |
|---|---|
| auc_micro | area under the ROC curve, all frames pooled (the paper's AUC) |
| average_precision | area under the precision-recall curve: what a reviewer meets first |
| eda_top_k | share of erroneous spans with a frame among the top k % (the paper's EDA) |
| eda_egoper | share of segments judged rightly, mean over 41 thresholds (EgoPER's code) |
| precision_top_k, recall_top_k | of frames, where the top k % of the footage is reviewed |
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from csl_dist.errors import DataError
from csl_dist.types import (
    BoolArray,
    ErrorKind,
    FloatArray,
    IntArray,
    PlantedError,
    Span,
    runs_of,
)

METRIC_DIGITS = 6
"""Digits kept in metrics.json."""
TOP_PERCENTS = (1, 2, 5, 10, 20)
"""Shares of the footage that a reviewer may look at."""
NUM_RESAMPLES = 200
INTERVAL = (0.025, 0.975)
"""Quantiles of the bootstrap over videos between which a metric lies."""
EGOPER_THRESHOLDS = np.linspace(-2.0, 2.0, 41)
"""In standard deviations from the mean score."""
SEED = 0

Metrics = dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """Known errors of one kind in the videos where that kind is measured."""

    videos: tuple[str, ...]
    masks: dict[str, BoolArray]
    spans: dict[str, tuple[Span, ...]]
    left_out: dict[str, BoolArray]
    """Frames of other kinds of errors, which count neither as right nor as wrong."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """All frames that count, worst first, and the best place of every erroneous span."""

    wrong_N: BoolArray
    video_N: IntArray
    """Number of the video of each frame, as `Truth.videos` has it."""
    ties_end: IntArray
    """Last frame of each run of equal scores."""
    span_places: IntArray
    """Place of the worst frame of each span that has a frame that counts."""
    span_videos: IntArray

    def metrics(self, weights_V: FloatArray) -> Metrics:
        """The metrics with each video counted `weights_V` times; a part that can't be is absent."""
        weights_N = weights_V[self.video_N]
        frames_N = weights_N.cumsum()
        wrong_N = (weights_N * self.wrong_N).cumsum()
        frames, wrong = _from_zero(frames_N[self.ties_end]), _from_zero(wrong_N[self.ties_end])
        total, total_wrong = frames[-1], wrong[-1]
        found: Metrics = {}
        if 0 < total_wrong < total:
            right = frames - wrong
            found["auc_micro"] = np.trapezoid(wrong, right) / (total_wrong * right[-1])
            precision = wrong[1:] / np.maximum(frames[1:], 1)
            found["average_precision"] = float((np.diff(wrong) / total_wrong * precision).sum())
        span_weights = weights_V[self.span_videos]
        for percent in TOP_PERCENTS:
            budget = _num_top(total, percent)
            if span_weights.sum():
                hit = self.span_places < np.searchsorted(frames_N, budget, side="right")
                found[f"eda_top_{percent}"] = float(np.average(hit, weights=span_weights))
            if total_wrong:
                # Between the ends of ties this is the expectation over their order.
                reviewed_wrong = np.interp(budget, frames, wrong)
                found[f"precision_top_{percent}"] = reviewed_wrong / budget
                found[f"recall_top_{percent}"] = reviewed_wrong / total_wrong
        return found


def ranking(truth: Truth, scores: Mapping[str, FloatArray]) -> Ranking:
    """The frames of the truth's videos by falling score; NaN and left-out frames do not count."""
    video_N = np.repeat(np.arange(len(truth.videos)), [len(truth.masks[v]) for v in truth.videos])
    score_N = np.concatenate([np.empty(0), *(scores[video] for video in truth.videos)])
    wrong_N = np.concatenate([np.empty(0, bool), *(truth.masks[video] for video in truth.videos)])
    left_N = np.concatenate([np.empty(0, bool), *(truth.left_out[v] for v in truth.videos)])
    counts_N = ~np.isnan(score_N) & ~left_N
    tie_breaker_N = np.random.default_rng(SEED).permutation(len(score_N))
    order = np.lexsort((tie_breaker_N, -score_N))
    order = order[counts_N[order]]
    place_N = np.full(len(score_N), len(order))
    place_N[order] = np.arange(len(order))
    sorted_N = score_N[order]
    starts = np.cumsum([0, *(len(truth.masks[video]) for video in truth.videos)])
    places = [
        (int(place_N[starts[v] + span.start : starts[v] + span.stop].min()), v)
        for v, video in enumerate(truth.videos)
        for span in truth.spans[video]
    ]
    scored = [(place, v) for place, v in places if place < len(order)]
    return Ranking(
        wrong_N=wrong_N[order],
        video_N=video_N[order],
        ties_end=np.flatnonzero(np.append(sorted_N[1:] != sorted_N[:-1], len(order) > 0)),
        span_places=np.array([place for place, _ in scored], dtype=int),
        span_videos=np.array([v for _, v in scored], dtype=int),
    )


def _num_top(total: float, percent: float) -> float:
    """Frames in the top percent; at least one."""
    return max(1.0, float(int(total * percent / 100)))


def _from_zero(values: FloatArray) -> FloatArray:
    return np.concatenate([[0.0], values])


def egoper_counts(
    truth: Truth, scores: Mapping[str, FloatArray], labels: Mapping[str, IntArray]
) -> tuple[FloatArray, FloatArray]:
    """Segments judged rightly (V, 41) by threshold, and segments (V,), as EgoPER's code counts.

    Segments are runs of equal labels, right ones included. One is predicted wrong if any of its
    frames is above the threshold, and is wrong if its first frame is. As in that code, a frame is
    looked at before the change of label is noticed, so that the first frame of a segment counts
    towards the segment before it.
    """
    pooled = np.concatenate([np.empty(0), *(scores[video] for video in truth.videos)])
    correct_VK = np.zeros((len(truth.videos), len(EGOPER_THRESHOLDS)))
    total_V = np.zeros(len(truth.videos))
    if np.isnan(pooled).all():
        return correct_VK, total_V
    taus = np.nanmean(pooled) + EGOPER_THRESHOLDS * np.nanstd(pooled)
    for v, video in enumerate(truth.videos):
        score_T = np.nan_to_num(scores[video], nan=-np.inf)
        for segment in runs_of(labels[video]):
            if truth.left_out[video][segment.start] or np.isnan(scores[video][segment.start]):
                continue
            first = segment.start + 1 if segment.start else 0
            # The first frame of the segment after it counts here, as told above.
            worst = score_T[first : segment.stop + 1].max(initial=-np.inf)
            is_wrong = truth.masks[video][segment.start]
            correct_VK[v] += (worst > taus) == is_wrong
            total_V[v] += 1
    return correct_VK, total_V


def measured(
    truth: Truth,
    scores: Mapping[str, FloatArray],
    labels: Mapping[str, IntArray],
    *,
    num_resamples: int = NUM_RESAMPLES,
) -> dict[str, list[float]]:
    """Each metric as [value, low, high], the interval from a seeded bootstrap over videos.

    Without resamples, or with one video alone, there is the value only.
    """
    ranked = ranking(truth, scores)
    correct_VK, total_V = egoper_counts(truth, scores, labels)
    num_videos = len(truth.videos)

    def metrics(weights_V: FloatArray) -> Metrics:
        found = ranked.metrics(weights_V)
        total = weights_V @ total_V
        if total:
            found["eda_egoper"] = float((weights_V @ correct_VK / total).mean())
        return found

    value = metrics(np.ones(num_videos))
    rng = np.random.default_rng(SEED)
    drawn_RV = rng.integers(num_videos, size=(num_resamples, num_videos))
    samples = [
        metrics(np.bincount(drawn_V, minlength=num_videos).astype(float))
        for drawn_V in (drawn_RV if num_videos > 1 else drawn_RV[:0])
    ]
    return {
        name: _rounded([value[name], *_interval([s[name] for s in samples if name in s])])
        for name in value
    }


def _interval(samples: Sequence[float]) -> list[float]:
    return [float(bound) for bound in np.quantile(samples, INTERVAL)] if samples else []


def _rounded(values: Sequence[float]) -> list[float]:
    return [round(float(value), METRIC_DIGITS) for value in values]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagMatch:
    """A known error and the flag that covers most of it, if any does."""

    error: PlantedError
    flag: Any


def matched_flags(errors: Sequence[PlantedError], flags: pd.DataFrame) -> list[FlagMatch]:
    """Each known error with the flag that shares most frames with it."""
    matches = []
    for error in errors:
        own = flags[flags.video == error.video]
        shared = own.stop.clip(upper=error.span.stop) - own.start.clip(lower=error.span.start)
        best = own.iloc[int(shared.to_numpy().argmax())] if (shared > 0).any() else None
        matches.append(FlagMatch(error=error, flag=best))
    return matches


def flag_metrics(errors: Sequence[PlantedError], flags: pd.DataFrame) -> Metrics:
    """What reviewers of the flags meet: shares, where there is anything to take a share of.

    `precision` of flags that touch a known error, `recall` of known errors that a flag touches;
    `kind_accuracy` and `suggestion_accuracy` over the errors that are flagged with a claim.
    """
    matches = matched_flags(errors, flags)
    claims = [m for m in matches if m.flag is not None and m.flag.kind != ErrorKind.AMBIGUOUS]
    kinds = [m.flag.kind in FLAG_KINDS[m.error.kind] for m in claims if FLAG_KINDS[m.error.kind]]
    suggestions = [
        m.flag.suggested == m.error.true_label for m in claims if m.error.true_label is not None
    ]
    shares = {
        "precision": [touches_any(flag, errors) for flag in flags.itertuples()],
        "recall": [m.flag is not None for m in matches],
        "kind_accuracy": kinds,
        "suggestion_accuracy": suggestions,
    }
    return {name: round(float(np.mean(v)), METRIC_DIGITS) for name, v in shares.items() if v}


def touches_any(flag: Any, errors: Sequence[PlantedError]) -> bool:
    """Whether a flag shares a frame with any of the errors."""
    span = Span(flag.start, flag.stop)
    return any(e.video == flag.video and e.span.overlaps(span) for e in errors)


FLAG_KINDS = {
    ErrorKind.MISLABEL: {ErrorKind.MISLABEL, ErrorKind.INSERT},
    ErrorKind.DISORDER: {ErrorKind.DISORDER},
    ErrorKind.REORDER: {ErrorKind.MISLABEL, ErrorKind.INSERT},
    ErrorKind.DUPLICATE: {ErrorKind.MISLABEL, ErrorKind.MISSING},
    ErrorKind.RENAME: {ErrorKind.MISLABEL, ErrorKind.INSERT},
    ErrorKind.OCCURRENCE: {ErrorKind.MISLABEL, ErrorKind.INSERT},
    ErrorKind.MERGE: {ErrorKind.MISLABEL, ErrorKind.MISSING},
    ErrorKind.INSERT: {ErrorKind.MISLABEL, ErrorKind.INSERT},
    ErrorKind.JITTER: {ErrorKind.MISLABEL, ErrorKind.BOUNDARY},
    ErrorKind.MISSING: {ErrorKind.MISLABEL, ErrorKind.MISSING},
    ErrorKind.BOUNDARY: {ErrorKind.MISLABEL, ErrorKind.BOUNDARY},
    ErrorKind.EXECUTION: set[ErrorKind](),
    ErrorKind.AMBIGUOUS: set[ErrorKind](),
}
"""What a flag may rightly call an error; nothing for wrong executions, which have no wrong name.

Every error of names alone is a mislabel to most rules: the frames show something else. The rule
`edits` calls a wrong name inside a step an insert, as its fix is to take it out.
"""
