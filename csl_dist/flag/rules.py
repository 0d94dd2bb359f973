"""From per-frame scores to spans for review: threshold, merge, name the kind, suggest a label."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from csl_dist.config import FlagConfig
from csl_dist.errors import DataError
from csl_dist.types import (
    NORMAL_MAD,
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

APPEARANCE = "margin"
"""The score of the framewise scorer that tells kinds of errors apart."""
FLAG_COLUMNS = (
    *("rank", "video", "start", "stop", "start_seconds", "stop_seconds", "score"),
    *("kind", "kind_confidence", "label", "suggested", "suggested_probability", "why"),
    *("probability", "fix", "fix_label", "fix_start", "fix_stop", "list", "evidence"),
)
"""Of the table of flags."""


def thresholds(
    config: FlagConfig, validation_N: FloatArray, audit: Mapping[str, FloatArray]
) -> dict[str, float]:
    """The score above which a frame is flagged, by video; without validation videos as `top`."""
    labelled = {v: score_T[~np.isnan(score_T)] for v, score_T in audit.items()}
    if not any(map(len, labelled.values())):
        names = ", ".join(sorted(audit)[:3]) + ", …" * (len(audit) > 3)
        raise DataError(
            f"none of the videos {names} has a labelled frame, so that nothing has a score; label "
            "some, or move them out of the split that they are in"
        )
    share = 1 - config.percent / 100
    match config.rule:
        case "robust":
            of_video = partial(_above_median, deviations=config.deviations)
            return {v: of_video(score) if len(score) else np.inf for v, score in labelled.items()}
        case "top_video":
            return {
                v: float(np.quantile(score, share)) if len(score) else np.inf
                for v, score in labelled.items()
            }
        case "validation" if not np.isnan(validation_N).all():
            tau = np.nanquantile(validation_N, config.quantile)
        case "validation_sd" if not np.isnan(validation_N).all():
            tau = np.nanmean(validation_N) + config.deviations * np.nanstd(validation_N)
        case _:
            tau = np.quantile(np.concatenate(list(labelled.values())), share)
    return dict.fromkeys(audit, float(tau))


def _above_median(score_T: FloatArray, *, deviations: float) -> float:
    median = np.median(score_T)
    return float(median + deviations * NORMAL_MAD * np.median(np.abs(score_T - median)))


@dataclass(frozen=True, slots=True, kw_only=True)
class KindJudge:
    """Tells a mislabel from a disorder by how wrong a span looks to the framewise scorer.

    A mislabelled span looks wrong frame by frame; a disordered one looks as right as any other.
    """

    slope: float
    offset: float

    def mislabel_probability(self, margin: float) -> float:
        """Of a span, from its mean framewise margin."""
        return float(1 / (1 + np.exp(-(self.slope * margin + self.offset))))


def kind_judge(wrong_margins: FloatArray, right_margins: FloatArray) -> KindJudge:
    """Learns from framewise margins of spans known to be mislabelled and of right ones."""
    # Takes a second, which those who only apply what was learnt need not wait.
    from sklearn.linear_model import LogisticRegression

    margins = np.concatenate([wrong_margins, right_margins])[:, None]
    is_wrong = np.repeat([True, False], [len(wrong_margins), len(right_margins)])
    model = LogisticRegression(class_weight="balanced").fit(margins, is_wrong)
    return KindJudge(slope=float(model.coef_[0, 0]), offset=float(model.intercept_[0]))


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


def described(
    spans: Iterable[Span],
    annotation: Annotation,
    *,
    score_T: FloatArray,
    appearance_T: FloatArray | None,
    judge: KindJudge | None,
    probability_of: Callable[[Span], FloatArray],
    classes: tuple[str, ...],
) -> list[Flag]:
    """The flags of a video's spans; `probability_of` a span is that of each class (C,)."""
    return [
        describe(
            span,
            annotation,
            score_T=score_T,
            appearance_T=appearance_T,
            judge=judge,
            probability_C=probability_of(span),
            classes=classes,
        )
        for span in spans
    ]


def describe(
    span: Span,
    annotation: Annotation,
    *,
    score_T: FloatArray,
    appearance_T: FloatArray | None,
    judge: KindJudge | None,
    probability_C: FloatArray,
    classes: tuple[str, ...],
) -> Flag:
    """A flag of one span.

    `appearance_T` is the framewise margin, None where the run has no framewise scorer;
    `probability_C` is what later checkpoints make of the span's frames.
    """
    inside = slice(span.start, span.stop)
    label = int(annotation.labels_T[span.start])
    kind, confidence = ErrorKind.MISLABEL, None
    if appearance_T is not None and judge is not None:
        mislabel = judge.mislabel_probability(float(appearance_T[inside].mean()))
        kind = ErrorKind.MISLABEL if mislabel >= 0.5 else ErrorKind.DISORDER
        confidence = max(mislabel, 1 - mislabel)
    suggested, probability = suggestion(probability_C, label)
    start_seconds, stop_seconds = annotation.seconds_of(span.start, span.stop)
    return Flag(
        video=annotation.video,
        span=span,
        start_seconds=start_seconds,
        stop_seconds=stop_seconds,
        score=float(score_T[inside].mean()),
        kind=kind,
        kind_confidence=confidence,
        label=classes[label],
        suggested=classes[suggested],
        suggested_probability=probability,
        why=reason(kind, confidence, classes[label], classes[suggested], probability),
    )


def reason(
    kind: ErrorKind, confidence: float | None, label: str, suggested: str, probability: float
) -> str:
    """Why a span is flagged, as a sentence for the reviewer."""
    if kind is ErrorKind.DISORDER:
        return (
            f"The frames look like {label}, as labelled, but at this point of the video the model "
            f"expects {suggested} ({probability:.0%})."
        )
    if confidence is None:
        return f"Labelled {label}, but the model sees {suggested} ({probability:.0%})."
    return (
        f"Labelled {label}, but the model sees {suggested} ({probability:.0%}), and single frames "
        f"do not look like {label} either."
    )


def suggestion(probability_C: FloatArray, label: int) -> tuple[int, float]:
    """The likeliest class other than the label, and its probability."""
    others_C = probability_C.copy()
    others_C[label] = -1.0
    best = int(others_C.argmax())
    return best, float(others_C[best])


def ranked(flags: Iterable[Flag], *, first: int = 1) -> pd.DataFrame:
    """Flags as a table, worst first; `rank` counts from `first`."""
    rows: list[dict[str, Any]] = []
    for flag in sorted(flags, key=lambda f: (-f.score, f.video, f.span.start)):
        row = asdict(flag)
        span, fix = row.pop("span"), flag.fix and str(flag.fix)
        rows.append({"rank": first + len(rows), **row, **span, "fix": fix})
    return with_all_columns(pd.DataFrame(rows, columns=FLAG_COLUMNS))


def with_all_columns(flags: pd.DataFrame) -> pd.DataFrame:
    """A table of flags, perhaps of an earlier version; what it lacks is empty."""
    table = flags.reindex(columns=FLAG_COLUMNS)
    return table.astype({"probability": "float64", "fix_start": "Int64", "fix_stop": "Int64"})
