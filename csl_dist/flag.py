"""From per-frame scores to spans for review: threshold, merge, name the kind, suggest a label."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from csl_dist.config import FlagConfig
from csl_dist.errors import DataError
from csl_dist.records import (
    UNLABELLED,
    Annotation,
    BoolArray,
    ErrorKind,
    Flag,
    FloatArray,
    Span,
    runs_of,
    spans_where,
)

APPEARANCE_QUANTILE = 0.9
"""A span whose framewise score passes this share of validation frames looks wrong by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """What decides on a frame: `suspicious` flags it, `appearance` says that it looks wrong."""

    suspicious: float
    appearance: float | None
    """Of the framewise scorer; None where the run has none."""


def threshold(config: FlagConfig, validation: FloatArray, audit: FloatArray) -> float:
    """The score above which a frame is flagged; without validation videos, that of `top`."""
    if config.rule == "validation" and not np.isnan(validation).all():
        return float(np.nanquantile(validation, config.quantile))
    if np.isnan(audit).all():
        raise DataError("the videos to audit have no labelled frame, so that nothing has a score")
    return float(np.nanquantile(audit, 1 - config.percent / 100))


def suspicious_spans(
    score_T: FloatArray, annotation: Annotation, tau: float, config: FlagConfig
) -> list[Span]:
    """Spans above the threshold, each within one label, gaps closed, short ones dropped."""
    above_T = np.nan_to_num(score_T, nan=-np.inf) > tau
    spans = []
    for segment in runs_of(annotation.labels_T):
        if annotation.labels_T[segment.start] == UNLABELLED:
            continue
        part_T = above_T[segment.start : segment.stop]
        spans += [
            Span(segment.start + span.start, segment.start + span.stop)
            for span in spans_where(close_gaps(part_T, config.close_gap))
        ]
    return [span for span in spans if len(span) >= config.min_frames]


def close_gaps(mask_T: BoolArray, longest: int) -> BoolArray:
    """Fills runs of False up to a length that lie between two runs of True."""
    filled_T = mask_T.copy()
    for span in spans_where(~mask_T):
        inside = span.start > 0 and span.stop < len(mask_T)
        if inside and len(span) <= longest:
            filled_T[span.start : span.stop] = True
    return filled_T


def describe(
    span: Span,
    annotation: Annotation,
    *,
    score_T: FloatArray,
    framewise_T: FloatArray | None,
    thresholds: Thresholds,
    logp_ETC: FloatArray,
    classes: tuple[str, ...],
) -> Flag:
    """A flag of one span; `logp_ETC` are the span's log-probabilities."""
    inside = slice(span.start, span.stop)
    label = int(annotation.labels_T[span.start])
    kind = ErrorKind.MISLABEL
    if framewise_T is not None and thresholds.appearance is not None:
        looks_wrong = float(np.nanmax(framewise_T[inside])) > thresholds.appearance
        kind = ErrorKind.MISLABEL if looks_wrong else ErrorKind.DISORDER
    suggested, probability = suggestion(logp_ETC, label)
    reason = (
        "frames look like another class"
        if kind is ErrorKind.MISLABEL
        else "frames look right, but not at this point of the video"
    )
    frame_seconds = float(np.median(np.diff(annotation.times_T))) if span.stop > 1 else 0.0
    return Flag(
        video=annotation.video,
        span=span,
        start_seconds=float(annotation.times_T[span.start]),
        stop_seconds=float(annotation.times_T[span.stop - 1]) + frame_seconds,
        score=float(np.nanmean(score_T[inside])),
        kind=kind,
        label=classes[label],
        suggested=classes[suggested],
        suggested_probability=probability,
        why=f"{reason}; later checkpoints prefer {classes[suggested]} ({probability:.0%})",
    )


def suggestion(logp_ETC: FloatArray, label: int) -> tuple[int, float]:
    """The class other than the label that the later half of the checkpoints finds likeliest."""
    later = logp_ETC[logp_ETC.shape[0] // 2 :]
    probability_C = np.exp(later.astype(np.float64)).mean(axis=(0, 1))
    probability_C[label] = -1.0
    best = int(probability_C.argmax())
    return best, float(probability_C[best])


def ranked(flags: Iterable[Flag]) -> pd.DataFrame:
    """Flags as a table, worst first, `rank` from 1."""
    rows: list[dict[str, Any]] = []
    for flag in sorted(flags, key=lambda f: (-f.score, f.video, f.span.start)):
        row = asdict(flag)
        span = row.pop("span")
        rows.append({"rank": len(rows) + 1, **row, **span})
    columns = [
        *("rank", "video", "start", "stop", "start_seconds", "stop_seconds", "score", "kind"),
        *("label", "suggested", "suggested_probability", "why"),
    ]
    return pd.DataFrame(rows, columns=columns)
