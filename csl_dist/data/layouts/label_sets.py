"""What label documents say: segments by video and annotator, and the tracks that they form."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from csl_dist.data.documents.document import About, Document
from csl_dist.data.documents.segment import Segment
from csl_dist.data.formats.format import Format
from csl_dist.data.tracks import SegmentTrack
from csl_dist.errors import DataError
from csl_dist.storage.files import AnyPath, read_bytes
from csl_dist.types import Video
from csl_dist.words import counted

Who = tuple[str, str | None]
"""A video and an annotator."""


@dataclass(frozen=True, slots=True)
class SegmentTracks:
    """The segments of every video and annotator, in one track."""

    classes: tuple[str, ...]
    segments: Mapping[Who, tuple[Segment, ...]]
    lengths: Mapping[str, float]
    """Seconds of videos, where files tell them."""
    overlap: str = "error"

    def __call__(self, video: Video) -> SegmentTrack:
        return SegmentTrack(
            segments=self.segments[video.id, video.annotator],
            ids={name: i for i, name in enumerate(self.classes)},
            file=video.labels,
            overlap=self.overlap,
        )


def tracks_of(document: Document, classes: tuple[str, ...], overlap: str) -> SegmentTracks:
    """The tracks of one document without annotators or several tracks."""
    segments: dict[Who, list[Segment]] = defaultdict(list)
    for segment in document.segments:
        segments[segment.video, None].append(segment)
    lengths = {v: a.seconds for v, a in document.about.items() if a.seconds is not None}
    return SegmentTracks(
        classes, {who: tuple(own) for who, own in segments.items()}, lengths, overlap
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSets:
    """What all documents of a dataset say."""

    files: Mapping[Who, str]
    segments: Mapping[Who, tuple[Segment, ...]]
    about: Mapping[str, About]
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    frame_rate: float | None
    """Frames a second, where times are numbers of frames."""

    @property
    def tracks(self) -> dict[str | None, list[Segment]]:
        found: dict[str | None, list[Segment]] = defaultdict(list)
        for own in self.segments.values():
            for segment in own:
                found[segment.track].append(segment)
        return found

    @property
    def annotators(self) -> dict[str | None, int]:
        """Number of videos by annotator."""
        return Counter(annotator for _, annotator in self.segments)

    def in_track(self, track: str | None, path: str) -> dict[Who, tuple[Segment, ...]]:
        """Segments of one track; it must be named where there are several."""
        tracks = self.tracks
        if track is None and len(tracks) == 1:
            track = next(iter(tracks))
        elif track is None or track not in tracks:
            names = ", ".join(f"{name!r} ({len(own):,})" for name, own in tracks.items())
            what = "several tracks" if track is None else f"no track {track!r}"
            raise DataError(f"{path} has {what}; set dataset.track to one of (segments): {names}")
        found = {
            who: tuple(s for s in own if s.track == track) for who, own in self.segments.items()
        }
        return {who: own for who, own in found.items() if own}


def read_sets(files: Iterable[AnyPath], format_: Format, config: Any) -> LabelSets:
    """Reads every document; one that can't be read is a problem, and the others are read."""
    documents: dict[str, Document] = {}
    problems = []
    for path in files:
        try:
            documents[str(path)] = format_.parse(read_bytes(path), str(path), config)
        except DataError as error:
            problems.append(str(error))
    repeated = _repeated(documents)
    several = _unnamed_several_times(documents, repeated)
    found: dict[Who, list[Segment]] = defaultdict(list)
    where: dict[Who, str] = {}
    for file, document in documents.items():
        for segment in document.segments:
            if (segment.video, file) in repeated:
                continue
            annotator = segment.annotator
            if annotator is None and segment.video in several:
                annotator = _annotator_of(file, segment.video)
            who = segment.video, annotator
            if where.setdefault(who, file) != file:
                problems.append(
                    f"{file}: video {segment.video!r} is labelled in {where[who]} already; keep one"
                )
                break
            found[who].append(replace(segment, annotator=annotator))
    return LabelSets(
        files=where,
        segments={who: tuple(own) for who, own in found.items()},
        about={v: a for document in documents.values() for v, a in document.about.items()},
        problems=tuple(problems),
        notes=(
            *(note for document in documents.values() for note in document.notes),
            *_repetition_notes(repeated),
        ),
        frame_rate=next(
            (d.times.fps for d in documents.values() if d.times.unit == "frames"), None
        ),
    )


def _repeated(documents: Mapping[str, Document]) -> dict[tuple[str, str], str]:
    """Videos that a file labels exactly as an earlier one does, by video and file: the earlier one.

    Such files are copies, and not the work of several people.
    """
    said: dict[tuple[object, ...], str] = {}
    repeated: dict[tuple[str, str], str] = {}
    for file, document in documents.items():
        own: dict[str, list[object]] = defaultdict(list)
        named = {segment.video for segment in document.segments if segment.annotator is not None}
        for s in document.segments:
            own[s.video].append((s.start_seconds, s.stop_seconds, s.label, s.track))
        for video, segments in own.items():
            if video not in named:
                first = said.setdefault((video, *segments), file)
                if first != file:
                    repeated[video, file] = first
    return repeated


def _repetition_notes(repeated: Mapping[tuple[str, str], str]) -> list[str]:
    counts = Counter((file, first) for (_, file), first in repeated.items())
    return [
        f"{file}: the labels of {counted(n, 'video')} are those of {first} and count once"
        for (file, first), n in counts.items()
    ]


def _unnamed_several_times(
    documents: Mapping[str, Document], repeated: Mapping[tuple[str, str], str]
) -> set[str]:
    """Videos that several files label without saying who did."""
    pairs = {
        (segment.video, file)
        for file, document in documents.items()
        for segment in document.segments
        if segment.annotator is None and (segment.video, file) not in repeated
    }
    counts = Counter(video for video, _ in pairs)
    return {video for video, count in counts.items() if count > 1}


def _annotator_of(file: str, video: str) -> str:
    """Who labelled a video, by what its file is called beside it, or else by its folder."""
    path = PurePosixPath(file)
    return path.stem.replace(video, "").strip("_-. ") or path.parent.name
