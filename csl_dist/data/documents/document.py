"""What a label document is: its segments, what it says of videos, and how it is edited."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from csl_dist.data.documents.edits import Change
from csl_dist.data.documents.segment import Segment
from csl_dist.data.documents.times import Times
from csl_dist.errors import DataError


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What a document says of a video beside its labels."""

    media: str | None = None
    """Name, path or URL of its file."""
    seconds: float | None = None
    """Its length."""
    start_seconds: float = 0.0
    """Where in the file it begins."""
    stop_seconds: float | None = None
    """Where in the file it ends; None: with the file."""


class Document(Protocol):
    """One file of labels, of one or several videos, tracks and annotators."""

    @property
    def segments(self) -> Sequence[Segment]: ...

    @property
    def times(self) -> Times: ...

    @property
    def about(self) -> Mapping[str, About]: ...

    @property
    def notes(self) -> Sequence[str]:
        """What was left out, a sentence each."""
        ...

    def edited(self, changes: Sequence[Change]) -> bytes:
        """The file with segments changed, removed and added; all else byte by byte as it was."""
        ...


@dataclass(slots=True)
class Parsed:
    """Segments in the making."""

    file: str
    segments: list[Segment] = field(default_factory=list)

    def add(
        self,
        *,
        video: str,
        start_seconds: float,
        stop_seconds: float,
        label: str,
        line: int,
        track: str | None = None,
        annotator: str | None = None,
        procedure: str | None = None,
        group: str | None = None,
        may_be_empty: bool = False,
    ) -> None:
        """One more segment; what is wrong with it is told when labels of its video are used."""
        where = f"{self.file}:{line}"
        label = label.strip()
        problem = None
        if not video:
            raise DataError(f"{where}: the name of the video is empty")
        if not label:
            problem = f"{where}: the label is empty; give it a name, or remove the segment"
        elif start_seconds < 0:
            problem = f"{where}: {label!r} starts at {start_seconds:g} s, before the video does"
        elif not (start_seconds < stop_seconds or (start_seconds == stop_seconds and may_be_empty)):
            problem = (
                f"{where}: {label!r} runs from {start_seconds:g} s to {stop_seconds:g} s, but must "
                "end after its start"
            )
        self.segments.append(
            Segment(
                video=video,
                start_seconds=start_seconds,
                stop_seconds=stop_seconds,
                label=label,
                line=line,
                key=len(self.segments),
                track=track,
                annotator=annotator,
                procedure=procedure,
                group=group,
                problem=problem,
            )
        )

    def seconds(self, read: Callable[[str], float], text: object, what: str, line: int) -> float:
        """A time by `read`; what can't be read is told with its line."""
        try:
            return read(str(text))
        except ValueError as error:
            raise DataError(f"{self.file}:{line}: {what} is {text!r}: {error}") from error
