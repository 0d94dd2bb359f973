"""What a flagging rule would find: errors planted in videos whose labels are believed right.

Renaming spans changes labels alone, and trajectories hold none, so that no model is needed. Steps
that are swapped look otherwise to a model that sees context: copies of videos are scored for that.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from csl_dist.config import CorruptConfig
from csl_dist.data.planted import Corruption, corrupted
from csl_dist.errors import DataError
from csl_dist.flag.rules import KindJudge, kind_judge
from csl_dist.types import (
    UNLABELLED,
    Annotation,
    ErrorKind,
    FloatArray,
    Span,
    Split,
    copy_id,
    fingerprint,
    runs_of,
)

MAX_VIDEOS = 40
"""Videos that are mislabelled; more would tell little more."""
SEED = 1_000_003
"""Added to `corrupt.seed`, so that the errors are others than those of an experiment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedVideo:
    """A video before and after errors were planted in it."""

    clean: Annotation
    wrong: Annotation
    """A copy with an id of its own where frames were moved."""
    spans: tuple[Span, ...]


def planted_videos(
    annotations: Sequence[Annotation],
    kind: ErrorKind,
    config: CorruptConfig,
    *,
    num_classes: int,
    most: int = MAX_VIDEOS,
) -> list[PlantedVideo]:
    """Wrong versions of some of the videos; those that give no room for the error are left out."""
    config = replace(config, seed=config.seed + SEED)
    videos: list[PlantedVideo] = []
    # A video that is added to the dataset hardly changes which ones are chosen.
    for annotation in sorted(annotations, key=lambda a: fingerprint(config.seed, a.video)):
        if len(videos) == most:
            break
        try:
            corruption = corrupted(
                annotation.labels_T, kind, annotation.video, config, num_classes=num_classes
            )
        except DataError:
            continue
        wrong = _with_errors(annotation, corruption)
        videos.append(PlantedVideo(clean=annotation, wrong=wrong, spans=corruption.spans))
    return sorted(videos, key=lambda v: v.clean.video)


def _with_errors(annotation: Annotation, corruption: Corruption) -> Annotation:
    wrong = replace(annotation, labels_T=corruption.labels_T)
    if not corruption.moves_frames:
        return wrong
    before_T = annotation.order_T
    order_T = corruption.order_T if before_T is None else before_T[corruption.order_T]
    video = copy_id(annotation.video)
    return replace(wrong, video=video, copy_of=annotation.video, order_T=order_T)


def judge_from(
    videos: Sequence[PlantedVideo],
    clean: Mapping[str, FloatArray],
    wrong: Mapping[str, FloatArray],
) -> KindJudge:
    """How the framewise margins (T,) of mislabelled spans differ from those of right segments."""
    wrong_margins = [
        float(wrong[v.clean.video][span.start : span.stop].mean())
        for v in videos
        for span in v.spans
    ]
    right_margins = [
        float(clean[v.clean.video][segment.start : segment.stop].mean())
        for v in videos
        for segment in runs_of(v.clean.labels_T)
        if v.clean.labels_T[segment.start] != UNLABELLED
    ]
    return kind_judge(np.array(wrong_margins), np.array(right_margins))


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSwaps:
    """What the run's rule makes of neighbouring steps that are swapped in copies of videos."""

    planted: int
    flagged: float
    """Share of them that a flag touches."""
    flagged_before: float
    """Share of the same spans that a flag touches in the videos as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What the run's rule makes of mislabelled spans planted in videos believed right."""

    planted_in: Split
    """Validation videos; those to audit where there are none, whose own errors count as false."""
    videos: int
    hours: float
    planted_spans: int
    planted_share: float
    """Of labelled frames."""
    flags: int
    recall: float
    """Share of planted spans that a flag touches."""
    precision: float | None
    """Share of flags that touch a planted span; with rarer errors it is lower."""
    false_flags_per_hour: float
    judge: KindJudge | None
    """Tells kinds apart; None where the run has no framewise scorer beside a temporal one."""
    swaps: FoundSwaps | None = None
    """None where no copies were scored."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Calibration":
        judge, swaps = data.pop("judge"), data.pop("swaps", None)
        return cls(
            planted_in=Split(data.pop("planted_in")),
            judge=judge and KindJudge(**judge),
            swaps=swaps and FoundSwaps(**swaps),
            **data,
        )

    def sentence(self) -> str:
        source = "validation videos" if self.planted_in is Split.VAL else "audited videos"
        right = (
            "there are no flags there"
            if self.precision is None
            else f"{self.precision:.0%} of flags there are right"
        )
        sentence = (
            f"{self.recall:.0%} of {self.planted_spans} mislabelled spans planted in {self.videos} "
            f"{source} are flagged, {right}, and right labels give "
            f"{self.false_flags_per_hour:.1f} flags an hour"
        )
        if self.swaps is None:
            return sentence
        swaps = self.swaps
        return (
            f"{sentence}; of {swaps.planted} pairs of steps swapped there, {swaps.flagged:.0%} are "
            f"flagged ({swaps.flagged_before:.0%} of these places without the swap)"
        )


def calibration(
    videos: Sequence[PlantedVideo],
    flagged: Mapping[str, Sequence[Span]],
    *,
    planted_in: Split,
    judge: KindJudge | None,
    swaps: FoundSwaps | None = None,
) -> Calibration:
    """Compares mislabelled spans with those flagged, by video."""
    found = _touched(videos, flagged)
    true = [
        any(_overlap(span, flag) for span in v.spans)
        for v in videos
        for flag in flagged[v.wrong.video]
    ]
    labelled = sum(int((v.clean.labels_T != UNLABELLED).sum()) for v in videos)
    hours = sum(annotated_seconds(v.clean) for v in videos) / 3600
    return Calibration(
        planted_in=planted_in,
        videos=len(videos),
        hours=hours,
        planted_spans=len(found),
        planted_share=sum(len(span) for v in videos for span in v.spans) / max(1, labelled),
        flags=len(true),
        recall=float(np.mean(found)) if found else 0.0,
        precision=float(np.mean(true)) if true else None,
        false_flags_per_hour=(len(true) - sum(true)) / hours if hours else 0.0,
        judge=judge,
        swaps=swaps,
    )


def found_swaps(
    copies: Sequence[PlantedVideo],
    flagged: Mapping[str, Sequence[Span]],
    flagged_before: Mapping[str, Sequence[Span]],
) -> FoundSwaps:
    """Compares swapped steps with what is flagged, by copy, and was flagged, by video."""
    before = {copy.wrong.video: flagged_before[copy.clean.video] for copy in copies}
    return FoundSwaps(
        planted=sum(len(copy.spans) for copy in copies),
        flagged=float(np.mean(_touched(copies, flagged))),
        flagged_before=float(np.mean(_touched(copies, before))),
    )


def _touched(videos: Sequence[PlantedVideo], flagged: Mapping[str, Sequence[Span]]) -> list[bool]:
    """Whether each planted span shares a frame with a flag."""
    return [
        any(_overlap(span, flag) for flag in flagged[v.wrong.video])
        for v in videos
        for span in v.spans
    ]


def annotated_seconds(annotation: Annotation) -> float:
    """Seconds of footage that have a label."""
    times_T = annotation.times_T
    frame_seconds = float(np.median(np.diff(times_T))) if len(times_T) > 1 else 0.0
    return frame_seconds * int((annotation.labels_T != UNLABELLED).sum())


def _overlap(one: Span, other: Span) -> bool:
    return one.start < other.stop and other.start < one.stop
