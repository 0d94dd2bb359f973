"""Layouts whose labels are documents of segments: one object for every format.

A document may hold several videos, tracks and annotators. One track is audited at a time; a video
that several people labelled is one video with several sets of labels.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from csl_dist.config import AnnotatedConfig, SegmentsConfig
from csl_dist.data.dataset import Dataset
from csl_dist.data.documents.document import About, Document
from csl_dist.data.documents.edits import Change, changes_of
from csl_dist.data.documents.json_text import JsonText
from csl_dist.data.documents.segment import Segment, overlaps
from csl_dist.data.documents.text import decoded
from csl_dist.data.documents.xml_text import XmlText
from csl_dist.data.formats.format import Format
from csl_dist.data.layouts.layout import DEFAULT_FOLDS, Draft, Edits, refuse_missing
from csl_dist.data.layouts.places import found_at, places, put_bytes
from csl_dist.data.media.sources import MediaFinder, MediaNeed
from csl_dist.data.tracks import SegmentTrack
from csl_dist.errors import DataError
from csl_dist.storage.files import AnyPath, is_url, open_file, place, read_bytes
from csl_dist.storage.output import OutputFolder
from csl_dist.types import Video

SHARED_SUFFIXES = (".json", ".xml", ".csv", ".tsv", ".txt")
"""Endings of which a folder may hold files of another kind; these are looked into."""
HEAD_BYTES = 1 << 18
"""Bytes of a file that tell its format."""

Config = AnnotatedConfig | SegmentsConfig
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
    several = _unnamed_several_times(documents)
    found: dict[Who, list[Segment]] = defaultdict(list)
    where: dict[Who, str] = {}
    for file, document in documents.items():
        for segment in document.segments:
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
        notes=tuple(note for document in documents.values() for note in document.notes),
    )


def _unnamed_several_times(documents: Mapping[str, Document]) -> set[str]:
    """Videos that several files label without saying who did."""
    pairs = {
        (segment.video, file)
        for file, document in documents.items()
        for segment in document.segments
        if segment.annotator is None
    }
    counts = Counter(video for video, _ in pairs)
    return {video for video, count in counts.items() if count > 1}


def _annotator_of(file: str, video: str) -> str:
    """Who labelled a video, by what its file is called beside it, or else by its folder."""
    path = PurePosixPath(file)
    return path.stem.replace(video, "").strip("_-. ") or path.parent.name


class DocumentLayout:
    """Label documents of one format, and media beside them."""

    def __init__(self, format_: Format):
        self.format = format_
        self.name = format_.name

    def __repr__(self) -> str:
        return f"DocumentLayout({self.name!r})"

    def missing(self, path: AnyPath, need: MediaNeed = "required") -> list[str]:
        if files_at(path, self.format, looked_into=True):
            return []
        return [f"a file {' or '.join(self.format.patterns)} of that form"]

    def draft(self, path: AnyPath, out: Path) -> Draft:
        refuse_missing(self, path)
        dataset: dict[str, object] = {"path": path}
        notes: dict[str, str] = {}
        fps = None
        if self.format.needs_rate:
            fps, notes["labels_fps"] = _guessed_rate(path)
            dataset["labels_fps"] = fps
        config = AnnotatedConfig(layout=self.name, path=str(path), labels_fps=fps)  # type: ignore[arg-type]
        return drafted(Draft(layout=self.name, dataset=dataset, notes=notes), self.format, config)

    def open(self, config: Config, need: MediaNeed) -> Dataset:
        path = place(config.path)
        if not path.exists():
            raise DataError(f"{config.path} does not exist")
        files = files_at(path, self.format)
        if not files:
            raise DataError(f"{config.path} holds no file {' or '.join(self.format.patterns)}")
        sets = read_sets(files, self.format, config)
        if not sets.segments:
            raise DataError(sets.problems[0])
        found = sets.in_track(config.track, config.path)
        if config.annotator is not None:
            _refuse_unknown_annotator(config, sets)
            found = {who: own for who, own in found.items() if who[1] == config.annotator}
        finder = MediaFinder(config.media or (path if path.is_dir() else path.parent))
        videos, problems = [], list(sets.problems)
        for (video, annotator), own in found.items():
            about = sets.about.get(video, About())
            labels = sets.files[video, annotator]
            made = finder.video(
                video,
                labels,
                named=about.media,
                wanted=config.source,
                need=need,
                frames_fps=config.frames_fps,
                features_fps=config.features_fps,
            )
            if made is None:
                problems.append(
                    f"{labels}: video {video!r} has no media in {finder.words}; "
                    "set dataset.media to their folder"
                )
                continue
            videos.append(
                replace(
                    made,
                    annotator=annotator,
                    group=own[0].group,
                    procedure=own[0].procedure,
                    start_seconds=about.start_seconds,
                    stop_seconds=about.stop_seconds,
                )
            )
        names = {segment.label for own in found.values() for segment in own}
        classes = tuple(sorted(names - {""}))
        lengths = {v: a.seconds for v, a in sets.about.items() if a.seconds is not None}
        return Dataset(
            classes=classes,
            videos=tuple(videos),
            read_track=SegmentTracks(classes, found, lengths, config.overlap),
            problems=tuple(problems),
            notes=sets.notes,
        )

    def label_files(self, config: Config) -> "DocumentFiles":
        path = place(config.path)
        is_file = path.is_file() or (bool(path.suffix) and not path.is_dir())
        return DocumentFiles(path.parent if is_file else path, self.format, config)


def _refuse_unknown_annotator(config: Config, sets: LabelSets) -> None:
    if config.annotator not in sets.annotators:
        names = ", ".join(f"{name!r}" for name in sets.annotators if name) or "none is named"
        raise DataError(
            f"{config.path}: there is no annotator {config.annotator!r}; the annotators are {names}"
        )


def files_at(path: AnyPath, format_: Format, *, looked_into: bool = False) -> list[AnyPath]:
    """Label files of a format: the one at a path, or all below it.

    With `looked_into`, all must look like the format. Else a file is left out only if others share
    its ending and it is well-formed but of another kind: one that is broken is not passed over.
    """
    if path.is_file():
        fits = any(PurePosixPath(path.name).match(PurePosixPath(p).name) for p in format_.patterns)
        return [path] if not looked_into or (fits and _looks_like(path, format_)) else []
    if not path.is_dir():
        return []
    unlike: list[AnyPath] = []
    for pattern in format_.patterns:
        files: list[AnyPath] = sorted(path.rglob(pattern), key=str)
        files = [file for file in files if file.is_file() and not file.name.startswith(".")]
        alike = [file for file in files if _looks_like(file, format_)]
        if alike and not looked_into:
            own_folder = "/" in pattern
            return [f for f in files if f in alike or own_folder or not _is_other_kind(f)]
        if alike:
            return alike
        unlike = unlike or files
    return [] if looked_into else unlike


def _looks_like(file: AnyPath, format_: Format) -> bool:
    return format_.looks_like(_head(file).decode("utf-8", errors="replace"))


def _head(file: AnyPath) -> bytes:
    if is_url(file):  # one request, where opening would ask for the length first
        return read_bytes(file)[:HEAD_BYTES]
    with open_file(str(file)) as opened:
        return bytes(opened.read(HEAD_BYTES))


def _is_other_kind(file: AnyPath) -> bool:
    """Whether a file that does not look like labels is a whole file of something else."""
    suffix = file.suffix.lower()
    if suffix not in SHARED_SUFFIXES:
        return False
    source = None
    try:
        source = decoded(read_bytes(file), str(file))
        if suffix == ".json":
            JsonText(source)
        elif suffix == ".xml":
            XmlText(source)
    except DataError:
        return False
    return bool(source.text.strip())


def drafted(draft: Draft, format_: Format, config: Config) -> Draft:
    """A draft with the track, the annotator and the folds that go with what is there."""
    sets = read_sets(files_at(place(config.path), format_), format_, config)
    if not sets.segments:
        raise DataError(sets.problems[0])
    dataset, notes = dict(draft.dataset), dict(draft.notes)
    tracks = sets.tracks
    chosen = next(iter(tracks))
    if len(tracks) > 1:
        chosen = max(tracks, key=lambda track: _weight(tracks[track]))
        dataset["track"] = chosen
        notes["track"] = "of " + ", ".join(f"{name} ({len(own):,})" for name, own in tracks.items())
    videos = {segment.video for segment in tracks[chosen]}
    annotators = {a: n for a, n in sets.annotators.items() if a}
    if any(n > 1 for n in Counter(video for video, _ in sets.segments).values()):
        most = max(annotators, key=lambda name: annotators[name])
        dataset["annotator"] = most
        notes["annotator"] = "of " + ", ".join(f"{a} ({n:,})" for a, n in annotators.items())
        videos = {v for v, a in sets.segments if a == most} & videos
    own = sets.in_track(chosen, config.path)
    shown = [s for (_, a), s in own.items() if dataset.get("annotator") in (None, a)]
    num_overlaps = sum(len(overlaps(segments)) for segments in shown)
    if num_overlaps:
        dataset["overlap"] = "error"
        total = sum(len(segments) for segments in shown)
        notes["overlap"] = (
            f"{num_overlaps:,} of {total:,} segments start inside an earlier one: choose first, "
            "last or longest"
        )
    groups = {
        segment.group or segment.video for segment in tracks[chosen] if segment.video in videos
    }
    dataset["folds"] = max(2, min(DEFAULT_FOLDS, len(groups)))
    notes["folds"] = (
        "every video is audited by a model that never saw it; or splits: {train: [], …}"
    )
    return replace(draft, dataset=dataset, notes=notes)


def _weight(segments: Sequence[Segment]) -> tuple[int, float]:
    """Videos and seconds that a track covers."""
    ends = [s for s in segments if s.seconds < float("inf")]
    return len({s.video for s in segments}), sum(s.seconds for s in ends)


def _guessed_rate(path: AnyPath) -> tuple[float, str]:
    """The rate of the first video beside label files, for formats that count its frames."""
    from csl_dist.data.media.video import VideoFile
    from csl_dist.types import frame_seconds

    finder = MediaFinder(path if path.is_dir() else path.parent)
    first = finder.first_video()
    if first is None:
        return 25.0, "a guess: the frames in a second that its frame numbers count"
    interval = frame_seconds(VideoFile(first).times(), default=0.04)
    return round(1 / interval, 4), f"of {PurePosixPath(first).name}; the frames its numbers count"


@dataclass(frozen=True, slots=True)
class DocumentFiles:
    """The label documents of a dataset, read and written without the rest of it."""

    folder: AnyPath
    format: Format
    config: Any

    def corrected(self, classes: tuple[str, ...], videos: Sequence[Video], path: Path) -> Dataset:
        files = found_at({video.labels for video in videos}, self.folder, path)
        documents = {str(file): self._parsed(str(file)) for file in set(files.values())}
        segments: dict[Who, tuple[Segment, ...]] = {}
        found = []
        for video in videos:
            file = files.get(video.labels)
            own = self._own(documents[str(file)], video) if file else ()
            if own:
                segments[video.id, video.annotator] = own
                found.append(replace(video, labels=str(file)))
        tracks = SegmentTracks(classes, segments, {}, getattr(self.config, "overlap", "error"))
        return Dataset(classes=classes, videos=tuple(found), read_track=tracks)

    def write(self, edits: Edits, out: OutputFolder) -> list[Path]:
        """Writes the documents of changed videos alone."""
        originals = places({video.labels for video in edits.videos}, self.folder)
        by_file: dict[str, list[Video]] = {}
        for video in edits.videos:
            by_file.setdefault(video.labels, []).append(video)
        made = [
            (out.file(originals[file]), self._edited(own, edits))
            for file, own in by_file.items()
            if any(video.id in edits.renamings for video in own)
        ]
        return [put_bytes(path, data) for path, data in made]

    def _parsed(self, file: str) -> Document:
        return self.format.parse(read_bytes(file), file, self.config)

    def _own(self, document: Document, video: Video) -> tuple[Segment, ...]:
        """The segments that the audit reads of a video."""
        track = getattr(self.config, "track", None)
        return tuple(
            segment
            for segment in document.segments
            if segment.video == video.id
            and (track is None or segment.track == track)
            and (segment.annotator in (None, video.annotator))
        )

    def _edited(self, videos: Sequence[Video], edits: Edits) -> bytes:
        document = self._newest(videos, edits)
        changes: list[Change] = []
        for video in videos:
            renamings = edits.renamings.get(video.id)
            if renamings:
                changes += changes_of(self._own(document, video), renamings, document.times.snapped)
        return document.edited(changes)

    def _newest(self, videos: Sequence[Video], edits: Edits) -> Document:
        """The document that has the present labels of all videos that share it."""
        documents = {file: self._parsed(file) for file in {edits.file_of(v) for v in videos}}

        def said(document: Document, video: Video) -> list[tuple[float, float, str]]:
            own = self._own(document, video)
            return [(s.start_seconds, s.stop_seconds, s.label) for s in own]

        wanted = {video.id: said(documents[edits.file_of(video)], video) for video in videos}
        for document in documents.values():
            if all(said(document, video) == wanted[video.id] for video in videos):
                return document
        raise DataError(
            f"the labels of {len(videos)} videos come from {len(documents)} versions of one file "
            f" ({', '.join(sorted(documents))}), none of which has them all; merge these first"
        )
