"""Flags as other tools take them: labels for spans of the source video, in its frames and seconds.

A run may sample its videos: flags are in sampled frames and in seconds. Seconds are those of the
source, so that a frame of the source is seconds times its rate. What is written is rounded here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from csl_dist.audit.reader import Audit
from csl_dist.review.edits import SpanEdit, proposal
from csl_dist.storage.tables import table_rows
from csl_dist.types import Annotation, Media, Span, Video
from csl_dist.words import counted

SECONDS_DIGITS, RATE_DIGITS, PROBABILITY_DIGITS = 3, 6, 4
"""After the point, of what is written: more would be the rounding of binary numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledSpan:
    """A span of the source with the label that a flag would give it."""

    span: Span
    """Frames of the source, from 0."""
    start_seconds: float
    """From the start of the video."""
    stop_seconds: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FlaggedVideo:
    """A video with its flags, worst first."""

    video: Video
    annotation: Annotation
    flags: list[dict[str, Any]]

    @property
    def fps(self) -> float:
        """Frames per second of the source."""
        return round(self.annotation.source_fps, RATE_DIGITS)

    @property
    def duration(self) -> float:
        return round(self.annotation.duration, SECONDS_DIGITS)

    @property
    def num_frames(self) -> int:
        """Frames of the source, up to the end of the video."""
        return self._offset + round(self.annotation.duration * self.annotation.source_fps)

    @property
    def _offset(self) -> int:
        """Frames of the file before the video, which may be a range of it."""
        return round(self.video.start_seconds * self.annotation.source_fps)

    def source_span(self, start: int, stop: int) -> Span:
        """Sampled frames in frames of the source; at least one, and none after the last."""
        fps = self.annotation.source_fps
        start_seconds, stop_seconds = self.annotation.seconds_of(start, stop)
        first = min(self._offset + round(start_seconds * fps), self.num_frames - 1)
        end = min(self._offset + round(stop_seconds * fps), self.num_frames)
        return Span(first, max(first + 1, end))

    def proposal(self, flag: dict[str, Any]) -> tuple[SpanEdit, ...]:
        """What a flag proposes, as the review page would save it."""
        return proposal(flag, self.annotation.labels_T)

    def labelled_spans(self, flag: dict[str, Any]) -> list[LabelledSpan]:
        """What a flag proposes; its span as it is labelled where it only says where to look."""
        start, stop = int(flag["start"]), int(flag["stop"])
        as_it_is = SpanEdit(start=start, stop=stop, label=flag["label"])
        return [self._labelled_span(edit) for edit in self.proposal(flag) or (as_it_is,)]

    def _labelled_span(self, edit: SpanEdit) -> LabelledSpan:
        start_seconds, stop_seconds = self.annotation.seconds_of(edit.start, edit.stop)
        return LabelledSpan(
            span=self.source_span(edit.start, edit.stop),
            start_seconds=round(start_seconds, SECONDS_DIGITS),
            stop_seconds=round(stop_seconds, SECONDS_DIGITS),
            label=edit.label,
        )


def flagged_videos(audit: Audit) -> Iterator[FlaggedVideo]:
    """Videos that have flags, the one with the worst flag first."""
    flags = audit.flags()
    for video, own in flags.groupby("video", sort=False):
        yield FlaggedVideo(
            video=audit.videos_by_id[str(video)],
            annotation=audit.annotation(str(video)),
            flags=table_rows(own),
        )


def confidence(flag: dict[str, Any], otherwise: float) -> float:
    """The probability of an error; another number where the rule gives none."""
    probability = flag["probability"]
    return round(otherwise if probability is None else probability, PROBABILITY_DIGITS)


def without_video(audit: Audit, found: Sequence[FlaggedVideo]) -> str:
    """What to add to the sentence where a tool that plays videos gets features; else nothing."""
    num = sum(one.video.media is Media.FEATURES for one in found)
    if not num:
        return ""
    key = "dataset.media" if hasattr(audit.config.dataset, "media") else "dataset.path"
    return (
        f"; {num} of the videos are features, which the tool can't play: {key} names no video of "
        "them, so put videos in their place"
    )


def written(num_flags: int, num_videos: int, where: object) -> str:
    """A sentence that says what was written."""
    return f"{counted(num_flags, 'span')} of {counted(num_videos, 'video')} in {where}"
