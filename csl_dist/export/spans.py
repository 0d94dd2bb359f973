"""Flagged spans in frames of the source video, which other tools count in.

A run may sample its videos: flags are in sampled frames and in seconds. Seconds are those of the
source, so that a frame of the source is seconds times its rate.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from csl_dist.audit.reader import Audit
from csl_dist.types import Annotation, Span, Video


@dataclass(frozen=True, slots=True, kw_only=True)
class FlaggedVideo:
    """A video with its flags, worst first."""

    video: Video
    annotation: Annotation
    flags: list[dict[str, Any]]

    @property
    def num_frames(self) -> int:
        """Frames of the source, up to the end of the video."""
        return self._offset + round(self.annotation.duration * self.annotation.source_fps)

    @property
    def _offset(self) -> int:
        """Frames of the file before the video, which may be a range of it."""
        return round(self.video.start_seconds * self.annotation.source_fps)

    def source_span(self, flag: dict[str, Any]) -> Span:
        """A flag in frames of the source; at least one frame, and none after the last."""
        fps = self.annotation.source_fps
        start = min(self._offset + round(flag["start_seconds"] * fps), self.num_frames - 1)
        stop = min(self._offset + round(flag["stop_seconds"] * fps), self.num_frames)
        return Span(start, max(start + 1, stop))


def flagged_videos(audit: Audit) -> Iterator[FlaggedVideo]:
    """Videos that have flags, the one with the worst flag first."""
    flags = audit.flags()
    for video, own in flags.groupby("video", sort=False):
        yield FlaggedVideo(
            video=audit.videos_by_id[str(video)],
            annotation=audit.annotation(str(video)),
            flags=own.to_dict("records"),  # type: ignore[arg-type]
        )


def counted(num_flags: int, num_videos: int, where: object) -> str:
    """A sentence that says what was written."""
    return f"{num_flags} spans of {num_videos} videos in {where}"
