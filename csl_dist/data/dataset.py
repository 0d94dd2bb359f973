"""Dataset: classes, videos and their labels, whatever the layout on disk."""

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeVar

from csl_dist.data.tracks import TRIM_SHARE, LabelTrack
from csl_dist.errors import DataError
from csl_dist.storage.files import is_url, read_bytes
from csl_dist.storage.requests import at_once
from csl_dist.types import ErrorKind, IntArray, PlantedError, Span, Split, Timeline, Video
from csl_dist.words import counted

Read = TypeVar("Read")
FORM_ERRORS = (
    *(AttributeError, IndexError, KeyError, OverflowError, RecursionError, TypeError, ValueError),
    *(UnicodeError, MemoryError),
)
"""What parsing a file of another form raises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """One model's share of the work: what it trains on, and what it is evaluated on."""

    index: int
    train: tuple[str, ...]
    held_out: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSegment:
    """A segment that the dataset itself says is wrong, in seconds."""

    kind: ErrorKind
    start_seconds: float
    stop_seconds: float


def no_known_segments(video: Video) -> list[KnownSegment]:
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Annotated videos; labels are read when asked for."""

    classes: tuple[str, ...]
    videos: tuple[Video, ...]
    read_track: Callable[[Video], LabelTrack]
    problems: tuple[str, ...] = ()
    """What is wrong with the list of videos; `csl check` prints it, everything else refuses it."""
    notes: tuple[str, ...] = ()
    """What was left out of the labels, a sentence each; `csl check` and `csl init` print it."""
    folds: tuple[Fold, ...] = ()
    length_mismatch: str = "error"
    features_frames_last: bool = False
    """How the layout stores features, for files that could be read either way."""
    known_segments: Callable[[Video], list[KnownSegment]] = no_known_segments

    def remembered(self) -> "Dataset":
        """The same, which reads each label file once."""
        return replace(self, read_track=cache(self.read_track))

    def in_split(self, *splits: Split) -> list[Video]:
        return [video for video in self.videos if video.split in splits]

    def audited_ids(self) -> list[str]:
        return [video.id for video in self.in_split(Split.AUDIT)]

    def trained_ids(self) -> list[str]:
        """Videos that any fold trains on."""
        return sorted({video for fold in self.folds for video in fold.train})

    def folds_by_video(self) -> dict[str, int]:
        """Index of the fold whose models never saw a video, by its id."""
        return {video: fold.index for fold in self.folds for video in fold.held_out}

    def labels(self, video: Video, timeline: Timeline) -> IntArray:
        """Class ids (T,) of a video's frames; counts that differ are refused unless trimmed."""
        track = self.track(video)
        misfit = track.misfit(timeline)
        where = f"({video.labels}, {video.source})"
        if misfit is not None and misfit.share > TRIM_SHARE:
            raise DataError(
                f"video {video.id!r}: {misfit.words} {where}, too far apart to trim; is a rate or "
                "a unit wrong (dataset.labels_fps, frames_fps, unit), or is it another's file?"
            )
        if misfit is not None and self.length_mismatch == "error":
            raise DataError(
                f"video {video.id!r}: {misfit.words} {where}; correct the file, or set "
                "dataset.length_mismatch: trim"
            )
        return track.at(timeline.times_T)

    def tracks(self, videos: Sequence[Video]) -> list[LabelTrack]:
        """The labels of many videos."""
        return self.each(self.track, videos)

    def each(self, read: Callable[[Video], Read], videos: Sequence[Video]) -> list[Read]:
        """What `read` makes of each video's labels; of a bucket's, many are asked for at once."""
        in_bucket = any(is_url(video.labels) for video in videos)
        return at_once(read, videos) if in_bucket else [*map(read, videos)]

    def track(self, video: Video) -> LabelTrack:
        """A video's labels; whatever is wrong with their form is told as such."""
        try:
            return self.read_track(video)
        except FORM_ERRORS as error:
            raise DataError(
                f"{video.labels}: the labels of video {video.id!r} do not have the expected form "
                f"({type(error).__name__}: {error})"
            ) from error
        except DataError as error:
            if video.labels in str(error):
                raise
            raise DataError(f"{video.labels}: video {video.id!r}: {error}") from error


def first_of(problems: Iterable[object]) -> DataError:
    """The first of several problems, and how many more there are that `csl check` lists."""
    first, *rest = dict.fromkeys(map(str, problems))
    if not rest:
        return DataError(first)
    more = counted(len(rest), "more problem")
    return DataError(f"{first} (and {more}; `csl check` lists them)")


def read_errors(path: str) -> list[PlantedError]:
    """Known label errors from a CSV with columns video, kind, start, stop, true_label."""
    try:
        text = read_bytes(path).decode("utf-8-sig")
        errors = [
            PlantedError(
                video=row["video"],
                kind=ErrorKind(row["kind"]),
                span=Span(int(row["start"]), int(row["stop"])),
                true_label=row["true_label"] or None,
            )
            for row in csv.DictReader(io.StringIO(text, newline=""))
        ]
    except DataError as error:
        raise DataError(f"can't read the known errors: {error}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"{path}: expected columns video, kind ({', '.join(ErrorKind)}), start, stop, "
            f"true_label; got {error}"
        ) from error
    if not errors:
        raise DataError(f"{path} lists no errors; leave dataset.truth out where none are known")
    return errors
