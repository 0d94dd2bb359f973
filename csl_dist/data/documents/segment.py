"""Segments as annotators drew them, whatever the file they stand in; and where they overlap."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf

OVERLAP_SECONDS = 1e-6
"""Less than this is rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One label over `[start_seconds, stop_seconds)` of a video."""

    video: str
    start_seconds: float
    stop_seconds: float
    """Infinite: until the end of the video."""
    label: str
    line: int = 0
    """Where it stands in its file."""
    key: int = -1
    """Its place among the segments of its document; -1 of a new one."""
    track: str | None = None
    """Its tier, subject or kind of label, where a document has several."""
    annotator: str | None = None
    procedure: str | None = None
    group: str | None = None
    problem: str | None = None
    """What is wrong with it, so that labels of its video can't be used."""

    @property
    def seconds(self) -> float:
        return self.stop_seconds - self.start_seconds

    @property
    def words(self) -> str:
        """Its label and times, for a sentence."""
        stop = "the end" if self.stop_seconds == inf else f"{self.stop_seconds:.2f} s"
        return f"{self.label!r} ({self.start_seconds:.2f} to {stop})"


def in_order(segments: Iterable[Segment]) -> list[Segment]:
    return sorted(segments, key=lambda s: (s.start_seconds, s.key))


def overlaps(segments: Iterable[Segment]) -> list[tuple[Segment, Segment]]:
    """Each segment that starts inside an earlier one, with the one of those that ends last."""
    found = []
    longest: Segment | None = None
    for segment in in_order(segments):
        if longest and segment.start_seconds < longest.stop_seconds - OVERLAP_SECONDS:
            found.append((longest, segment))
        if longest is None or segment.stop_seconds > longest.stop_seconds:
            longest = segment
    return found


def overlap_sentence(pair: tuple[Segment, Segment], file: str) -> str:
    """Where a segment starts inside an earlier one."""
    earlier, later = pair
    return (
        f"{file}:{later.line}: video {later.video!r}: {later.words} starts inside {earlier.words} "
        f"of line {earlier.line}"
    )


def by_priority(segments: Sequence[Segment], policy: str) -> list[Segment]:
    """Segments in the order in which to draw them, so that the one that counts is drawn last."""
    if policy == "first":
        return in_order(segments)[::-1]
    if policy == "longest":
        return sorted(in_order(segments)[::-1], key=lambda segment: segment.seconds)
    return in_order(segments)
