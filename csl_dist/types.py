"""Small frozen values that the rest of the package passes around.

Nothing here reads or writes anything.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.integer[Any]]
FloatArray = npt.NDArray[np.floating[Any]]
BoolArray = npt.NDArray[np.bool_]

UNLABELLED = -1
"""Class id of a frame without a label: context for the model, never part of a score."""


def label_name(label: int, classes: Sequence[str]) -> str:
    """The name of a class id; empty for UNLABELLED."""
    return "" if label == UNLABELLED else classes[label]


NORMAL_MAD = 1.4826
"""Standard deviations in one median absolute deviation, of a normal distribution."""


class Split(StrEnum):
    """What a video is used for."""

    TRAIN = "train"
    VAL = "val"
    AUDIT = "audit"


class Media(StrEnum):
    """What a video's source is."""

    VIDEO = "video"
    FRAMES = "frames"
    FEATURES = "features"


class ErrorKind(StrEnum):
    """Kinds of wrong label; each may be planted or known, but for the last two: a wrong execution
    can't be planted, and ambiguous is a flag alone.

    A flag is one of the first two, or, by the rule `edits`, any of FLAGGED_KINDS.
    """

    MISLABEL = "mislabel"
    """A span is named as another step."""
    DISORDER = "disorder"
    """Two neighbouring steps are swapped, frames and labels together."""
    REORDER = "reorder"
    """The names of neighbouring steps are in the wrong order."""
    DUPLICATE = "duplicate"
    """A step's name is repeated over the step after it."""
    INSERT = "insert"
    """A step that does not belong there stands inside another."""
    JITTER = "jitter"
    """A boundary between steps is off by some frames."""
    RENAME = "rename"
    """A whole step has the name of any other."""
    OCCURRENCE = "occurrence"
    """A whole step has the name of one that the video has elsewhere."""
    MERGE = "merge"
    """A boundary was forgotten: a step goes under the name of its neighbour."""
    MISSING = "missing"
    """A step was forgotten: its frames are labelled as its neighbours'."""
    BOUNDARY = "boundary"
    """The place between two steps is off."""
    EXECUTION = "execution"
    """The person did the step wrongly, so the label does not fit (EgoPER)."""
    AMBIGUOUS = "ambiguous"
    """Of a flag: something seems wrong, but scorers disagree on what; there is no fix."""


FLAGGED_KINDS = (
    *(ErrorKind.MISLABEL, ErrorKind.DISORDER, ErrorKind.INSERT),
    *(ErrorKind.MISSING, ErrorKind.BOUNDARY, ErrorKind.AMBIGUOUS),
)
"""Kinds that a flag can have."""


class EditKind(StrEnum):
    """What an edit does."""

    RENAME = "rename"
    """A segment gets a name that neither neighbour has."""
    DELETE = "delete"
    """A segment becomes part of a neighbour."""
    INSERT = "insert"
    """A step is put inside a segment, at one of its ends, or between two that share its frames."""
    BOUNDARY = "boundary"
    """The place between two segments moves."""
    SWAP = "swap"
    """Two neighbours change places."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Video:
    """One annotated sequence: where its pixels or features and its labels are."""

    id: str
    split: Split
    labels: str
    """Label file."""
    source: str
    """Video file, folder of frames, or feature file; empty where there are labels alone."""
    media: Media = Media.VIDEO
    source_fps: float = 0.0
    """Frames or features per second; a video file tells its own, so there it is 0."""
    labels_fps: float = 0.0
    """Label entries per second, where videos differ in that; else 0."""
    group: str | None = None
    """What must not be split over folds: a surgeon, a participant."""
    procedure: str | None = None
    """What it is a performance of: a recipe, an operation. Lint compares it with its like."""
    annotator: str | None = None
    """Who labelled it; only lint reads several label files of one video."""
    start_seconds: float = 0.0
    """Where in its file it begins; several videos may share one file."""
    stop_seconds: float | None = None
    """Where in its file it ends; None: with the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """When the frames of a video are shown."""

    times_T: FloatArray
    """Seconds of the frames that are used, ascending."""
    duration: float
    """Seconds of the whole source."""
    source_fps: float
    """Frames per second of the source, before sampling."""

    @property
    def fps(self) -> float:
        """Frames per second that are used.

        Samples lie a frame of the source more or less apart: at 25 frames a second, 2 a second are
        12 or 13 frames apart, and neither distance is the rate.
        """
        if len(self.times_T) < 2:
            return self.source_fps
        distances = np.diff(self.times_T)
        if float(distances.mean()) * self.source_fps < SAMPLED_FRAMES:
            return 1 / frame_seconds(self.times_T)
        tolerance = 1 / self.source_fps + CLOCK_SECONDS
        near = np.abs(distances - np.median(distances)) < tolerance
        return 1 / float(distances[near].mean())


SAMPLED_FRAMES = 1.1
"""Frames of a source that used ones are apart in the mean, from which on some were left out."""


CLOCK_SECONDS = 0.0015
"""Timestamps are rounded to ticks of a clock: Matroska's tick is a millisecond."""


def frame_seconds(times_T: FloatArray, *, default: float = 0.0) -> float:
    """Seconds from one frame to the next, as most are apart; `default` for fewer than two.

    The mean of all distances that are the median but for the rounding of timestamps: at 30 frames a
    second, distances in whole milliseconds are 33 or 34, and 33 would be a second in hundred off.
    """
    if len(times_T) < 2:
        return default
    distances = np.diff(times_T)
    ordered = np.sort(distances)
    usual = float(ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2  # the median
    near = distances[np.abs(distances - usual) < CLOCK_SECONDS]
    rounded = len(near) > 0 and float(np.ptp(near)) > 1e-6
    return float(near.mean()) if rounded else usual


@dataclass(frozen=True, slots=True)
class Span:
    """Half-open frame range `[start, stop)` of one video."""

    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    def overlaps(self, other: "Span") -> bool:
        """Whether the two share a frame."""
        return self.start < other.stop and other.start < self.stop


@dataclass(frozen=True, slots=True)
class Window:
    """A span of a video that a model sees at once: all of it, unless the video is long."""

    video: str
    span: Span
    num_frames: int
    """Of the whole video."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedError:
    """A label error whose place is known: what `evaluate` compares flags with."""

    video: str
    kind: ErrorKind
    span: Span
    true_label: str | None = None
    """The right class of a mislabelled span; None where the label is right but out of order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """A video's labels as one stage sees them, frame by frame of its features."""

    video: str
    labels_T: IntArray
    times_T: FloatArray
    """Seconds from the start of the video."""
    shown_T: FloatArray | None = None
    """Seconds in the source at which each frame is found, where these are not `times_T`."""
    derived_from: str | None = None
    """The video of the dataset whose frames these are, where this one is derived from it."""
    source_fps: float = 0.0
    """Frames per second of the source, before sampling; 0 where nobody needs to know."""
    duration: float = 0.0
    """Seconds of the whole source; 0 where nobody needs to know."""

    @property
    def num_frames(self) -> int:
        return len(self.labels_T)

    @property
    def original(self) -> str:
        """The video of the dataset that these frames belong to."""
        return self.derived_from or self.video

    @property
    def source_times_T(self) -> FloatArray:
        """Seconds in the source at which each frame is found: where pixels and labels are."""
        return self.times_T if self.shown_T is None else self.shown_T

    @property
    def plays_as_is(self) -> bool:
        """Whether a player of the source shows the frames at their times."""
        return self.shown_T is None or np.array_equal(self.shown_T, self.times_T)

    @property
    def timeline(self) -> Timeline:
        return Timeline(times_T=self.times_T, duration=self.duration, source_fps=self.source_fps)

    def seconds_of(self, start: int, stop: int) -> tuple[float, float]:
        """When frames [start, stop) begin and end."""
        end = float(self.times_T[stop - 1]) + frame_seconds(self.times_T)
        return float(self.times_T[start]), end

    @property
    def labelled_seconds(self) -> float:
        """Seconds of footage that have a label."""
        return int((self.labels_T != UNLABELLED).sum()) / rate_of(self)


def rate_of(annotation: Annotation) -> float:
    """Frames per second; 1 for a video of a single frame, whose rate nobody knows."""
    return annotation.timeline.fps or 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivedFrames:
    """A derived video: its frame t is frame `order_T[t]` of the original."""

    original: str
    order_T: IntArray


@dataclass(frozen=True, slots=True)
class Fix:
    """An edit that a flag proposes; its text is what tables and the service have."""

    kind: EditKind
    frames: tuple[int, ...]
    """`rename`, `delete` and `insert`: start and stop of those that get another label; `boundary`:
    where it is and where it should be; `swap`: where the two segments begin, meet and end."""

    @classmethod
    def parse(cls, text: object) -> "Fix | None":
        """From text such as `boundary 50 43`; None of an empty cell of a table."""
        if not isinstance(text, str) or not text:
            return None
        kind, *frames = text.split()
        return cls(EditKind(kind), tuple(map(int, frames)))

    def __str__(self) -> str:
        return " ".join([self.kind, *map(str, self.frames)])

    @property
    def direction(self) -> str:
        """Where a boundary moves, `later` or `earlier`; empty of any other fix."""
        if self.kind is not EditKind.BOUNDARY:
            return ""
        old, new = self.frames
        return "later" if new > old else "earlier"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """A span picked for review."""

    video: str
    span: Span
    start_seconds: float
    stop_seconds: float
    score: float
    """Higher is more suspicious. By `edits` log-odds of an error, highest where reviewers found
    one."""
    kind: ErrorKind
    kind_confidence: float | None
    """Probability of this kind rather than the other; None where no scorer can tell them apart."""
    label: str
    suggested: str
    suggested_probability: float
    """What models make of the span's frames; not how likely the flag is right."""
    why: str
    probability: float | None = None
    """That it is an error; None by rules that do not say."""
    fix: Fix | None = None
    """None of rules that only say where to look."""
    fix_label: str | None = None
    """The label of frames `fix_start` to `fix_stop` once the fix is made; None for a swap."""
    fix_start: int | None = None
    fix_stop: int | None = None
    list: str | None = None
    """Of the rule `edits`: `steps`, `boundaries` or `order`, which are best looked at apart."""
    evidence: float | None = None
    """Of the rule `edits`: log-odds of the fix by its place, and of steps by the person, before it
    is known how many errors there are, and what reviewers said."""


def fingerprint(*parts: Any) -> str:
    """Sixteen hex digits that change whenever any part changes; parts are JSON-like values."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), default=_as_json)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def names_folder(url: str) -> bool:
    """Whether a path or URL names a place: an empty one does not, nor does `s3://` alone."""
    scheme, separator, rest = url.partition("://")
    bucket = rest if scheme == "file" else rest.partition("/")[0]
    return bool(url.strip()) and (not separator or bool(scheme and bucket.strip("/")))


def is_fingerprint(name: str) -> bool:
    return re.fullmatch("[0-9a-f]{16}", name) is not None


def array_fingerprint(array: npt.NDArray[Any]) -> str:
    """Sixteen hex digits of an array's type, shape and bytes."""
    digest = hashlib.sha256(f"{array.dtype}{array.shape}".encode())
    digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:16]


def _as_json(value: Any) -> Any:
    if hasattr(value, "__dataclass_fields__"):
        return {name: getattr(value, name) for name in value.__dataclass_fields__}
    raise TypeError(f"{type(value).__name__} has no place in a fingerprint")


def consecutive_spans(num_frames: int, length: int) -> list[Span]:
    """Spans of a length, one after the other, that cover so many frames; the last may be short."""
    starts = range(0, num_frames, length)
    return [Span(start, min(num_frames, start + length)) for start in starts]


def runs_of(values_T: npt.NDArray[Any]) -> list[Span]:
    """Maximal runs of equal neighbouring values, in order; they cover the array."""
    bounds = [*run_starts(values_T).tolist(), len(values_T)]
    return [Span(a, b) for a, b in pairwise(bounds)]


def run_starts(values_T: npt.NDArray[Any]) -> IntArray:
    """Where the runs of `runs_of` begin."""
    is_start_T = np.ones(len(values_T), dtype=bool)
    np.not_equal(values_T[1:], values_T[:-1], out=is_start_T[1:])
    return np.flatnonzero(is_start_T)


def spans_where(mask_T: BoolArray) -> list[Span]:
    """Maximal runs of True."""
    return [span for span in runs_of(mask_T) if mask_T[span.start]]
