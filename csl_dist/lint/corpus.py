"""Every segment of every label sequence in columns, so that statistics are arrays.

Segments of a video stand in order of their start. Step objects are dropped once read: a generator
of sequences keeps memory at some 20 bytes a segment.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from csl_dist.errors import DataError
from csl_dist.lint.sequences import LabelSequence
from csl_dist.types import BoolArray, FloatArray, IntArray

Columns = tuple[IntArray, FloatArray, FloatArray, IntArray]
"""Class, start, stop and place in the file of each segment of a file."""
MIN_STEPS = 3
"""Files with fewer steps may be the same by chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What is known of a label file apart from its segments."""

    video: str
    file: str
    seconds: float | None
    group: str | None
    annotator: str | None
    procedure: str | None
    frame_seconds: float | None
    end_seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """Segments of V label files as columns of length N; `span` tells which are a file's."""

    labels: tuple[str, ...]
    """Class names, sorted; `label_N` holds positions in it."""
    label_N: IntArray
    start_N: FloatArray
    stop_N: FloatArray
    file_order_N: IntArray
    """A segment's place in its file."""
    offsets_V: IntArray
    """V + 1 positions."""
    about: tuple[About, ...]
    unit_V: IntArray
    """Who is left out together: the group, or the video where groups are not told."""
    counted_V: BoolArray
    """Files that statistics count: one a video, the one whose steps most of its files share."""
    procedure_V: IntArray
    procedures: tuple[str | None, ...]

    @property
    def num_files(self) -> int:
        return len(self.about)

    @property
    def num_videos(self) -> int:
        return int(self.counted_V.sum())

    @property
    def num_segments(self) -> int:
        return len(self.label_N)

    def span(self, video: int) -> slice:
        """Where a video's segments lie in the columns."""
        return slice(int(self.offsets_V[video]), int(self.offsets_V[video + 1]))

    def name(self, segment: int) -> str:
        return self.labels[int(self.label_N[segment])]

    def video_N(self) -> IntArray:
        """The video of each segment."""
        return np.repeat(np.arange(self.num_files), np.diff(self.offsets_V))

    def last_second(self, video: int) -> float:
        """Where the last segment of a video ends; 0 for a video without segments."""
        stops = self.stop_N[self.span(video)]
        return float(stops.max()) if len(stops) else 0.0

    def seconds(self, video: int) -> float:
        """Length of a video; the end of its last segment where the length is not known."""
        known = self.about[video].seconds
        return self.last_second(video) if known is None else known

    def units(self) -> Iterator[IntArray]:
        """Videos that are left out together, unit by unit."""
        order = np.argsort(self.unit_V, kind="stable")
        bounds = np.flatnonzero(np.diff(self.unit_V[order])) + 1
        yield from (part for part in np.split(order, bounds) if len(part))

    def counted_N(self) -> BoolArray:
        """Whether statistics count a segment."""
        return self.counted_V[self.video_N()]

    def only(self, kept: BoolArray) -> "Corpus":
        """The same files with some of their segments."""
        lengths = np.bincount(self.video_N()[kept], minlength=self.num_files)
        return replace(
            self,
            label_N=self.label_N[kept],
            start_N=self.start_N[kept],
            stop_N=self.stop_N[kept],
            file_order_N=self.file_order_N[kept],
            offsets_V=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        )


def corpus_of(sequences: Iterable[LabelSequence]) -> Corpus:
    """Reads sequences one by one; refuses times that are not finite."""
    codes: dict[str, int] = {}
    about: list[About] = []
    columns: list[Columns] = []
    for sequence in sequences:
        columns.append(_columns(sequence, codes))
        about.append(
            About(
                video=sequence.video,
                file=sequence.file,
                seconds=sequence.seconds,
                group=sequence.group,
                annotator=sequence.annotator,
                procedure=sequence.procedure,
                frame_seconds=sequence.frame_seconds,
                end_seconds=sequence.end_seconds,
            )
        )
    labels = sorted(codes)
    rank = np.zeros(len(codes), np.int32)
    rank[[codes[name] for name in labels]] = np.arange(len(labels), dtype=np.int32)
    procedures = sorted({a.procedure for a in about}, key=lambda p: (p is not None, p or ""))
    lengths = [len(column[0]) for column in columns]
    return Corpus(
        labels=tuple(labels),
        label_N=rank[_joined([c[0] for c in columns], np.int32)],
        start_N=_joined([c[1] for c in columns], np.float64),
        stop_N=_joined([c[2] for c in columns], np.float64),
        file_order_N=_joined([c[3] for c in columns], np.int32),
        offsets_V=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        about=tuple(about),
        unit_V=_units(about, columns),
        counted_V=_counted(about, [c[0] for c in columns]),
        procedure_V=np.array([procedures.index(a.procedure) for a in about], np.int64),
        procedures=tuple(procedures),
    )


def _columns(sequence: LabelSequence, codes: dict[str, int]) -> Columns:
    label = np.array([codes.setdefault(s.label, len(codes)) for s in sequence.steps], np.int32)
    start = np.array([s.start_seconds for s in sequence.steps], np.float64)
    stop = np.array([s.stop_seconds for s in sequence.steps], np.float64)
    if not (np.isfinite(start).all() and np.isfinite(stop).all()):
        raise DataError(
            f"video {sequence.video!r}: a step's time is not a finite number ({sequence.file}); "
            "give start and stop in seconds"
        )
    order = np.lexsort((stop, start)).astype(np.int32)
    return label[order], start[order], stop[order], order


def _joined(parts: list[Any], dtype: type) -> npt.NDArray[Any]:
    return np.concatenate(parts).astype(dtype, copy=False) if parts else np.zeros(0, dtype)


def _units(about: list[About], columns: list[Columns]) -> IntArray:
    """A group is left out as a whole. Several files of one video always are, and so are copies.

    With a single group nothing would be left to compare with, so videos are left out one by one.
    """
    grouped = len({a.group for a in about}) > 1
    codes: dict[tuple[str, str | bytes], int] = {}
    units = []
    for one, (label, start, stop, _) in zip(about, columns, strict=True):
        copy = ("copy", b"".join(c.tobytes() for c in (label, start, stop)))
        video = ("video", one.video)
        if grouped and one.group is not None:
            units.append(codes.setdefault(("group", one.group), len(codes)))
            continue
        unit = codes.get(video, codes.get(copy, len(codes)) if len(label) >= MIN_STEPS else None)
        unit = len(codes) if unit is None else unit
        codes.setdefault(video, unit)
        codes.setdefault(copy, unit)
        units.append(unit)
    return np.unique(np.array(units, np.int64), return_inverse=True)[1].astype(np.int64)


def _counted(about: list[About], labels: list[IntArray]) -> BoolArray:
    """One file of each video: of several, one whose order of classes most of them have."""
    files: dict[str, list[int]] = {}
    for number, one in enumerate(about):
        files.setdefault(one.video, []).append(number)
    counted = np.zeros(len(about), bool)
    for members in files.values():
        orders = Counter(labels[number].tobytes() for number in members)
        counted[max(members, key=lambda n: orders[labels[n].tobytes()])] = True
    return counted
