"""Calibration: what a rule finds of errors planted in videos whose labels are believed right."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from csl_dist.data.planted import PlantedVideo
from csl_dist.flag.edit_calibration import EditCalibration
from csl_dist.flag.rules import KindJudge, kind_judge
from csl_dist.types import UNLABELLED, FloatArray, Span, Split, runs_of


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


AnyCalibration = Calibration | EditCalibration
"""Of rules that compare a score with a threshold, and of the rule `edits`."""


def calibration_from(data: dict[str, Any]) -> AnyCalibration:
    """The calibration that an audit was published with."""
    of_edits = data.get("rule") == "edits"
    return EditCalibration.from_json(data) if of_edits else Calibration.from_json(data)


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
        any(span.overlaps(flag) for span in v.spans)
        for v in videos
        for flag in flagged[v.wrong.video]
    ]
    labelled = sum(int((v.clean.labels_T != UNLABELLED).sum()) for v in videos)
    hours = sum(v.clean.labelled_seconds for v in videos) / 3600
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
        any(span.overlaps(flag) for flag in flagged[v.wrong.video])
        for v in videos
        for span in v.spans
    ]
