"""Layouts whose labels are documents of segments: one object for every format.

A document may hold several videos, tracks and annotators. One track is audited at a time; a video
that several people labelled is one video with several sets of labels.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from csl_dist.config import AnnotatedConfig, SegmentsConfig
from csl_dist.data.dataset import Dataset
from csl_dist.data.documents.document import About
from csl_dist.data.documents.segment import Segment, overlaps
from csl_dist.data.formats.format import Format
from csl_dist.data.layouts.document_files import DocumentFiles
from csl_dist.data.layouts.label_files import files_at
from csl_dist.data.layouts.label_sets import LabelSets, SegmentTracks, Who, read_sets
from csl_dist.data.layouts.layout import DEFAULT_FOLDS, Draft, refuse_missing
from csl_dist.data.media.rates import guessed_features_rate, guessed_label_rate
from csl_dist.data.media.sources import MediaFinder, MediaNeed, refuse_unknown_rate
from csl_dist.data.tracks import last_second
from csl_dist.errors import DataError
from csl_dist.storage.files import AnyPath, place
from csl_dist.types import Media, Video

Config = AnnotatedConfig | SegmentsConfig


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
            fps, notes["labels_fps"] = guessed_label_rate(path)
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
            made = _found_video(finder, video, sets, labels, config, need)
            if made is None:
                problems.append(
                    f"{labels}: video {video!r} has no media in {finder.words}; "
                    "set dataset.media to their folder"
                )
                continue
            refuse_unknown_rate(made, need, config.path)
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


def _found_video(
    finder: MediaFinder, video: str, sets: LabelSets, labels: str, config: Config, need: MediaNeed
) -> Video | None:
    """A video with its media; labels that count frames count those of features, too."""
    return finder.video(
        video,
        labels,
        named=sets.about.get(video, About()).media,
        wanted=config.source,
        need=need,
        frames_fps=config.frames_fps,
        features_fps=config.features_fps or sets.frame_rate or 0.0,
    )


def _refuse_unknown_annotator(config: Config, sets: LabelSets) -> None:
    if config.annotator not in sets.annotators:
        names = ", ".join(f"{name!r}" for name in sets.annotators if name) or "none is named"
        raise DataError(
            f"{config.path}: there is no annotator {config.annotator!r}; the annotators are {names}"
        )


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
    rate = _drafted_features_rate(own, sets, config)
    if rate is not None:
        dataset["features_fps"], notes["features_fps"] = rate
    groups = {
        segment.group or segment.video for segment in tracks[chosen] if segment.video in videos
    }
    dataset["folds"] = max(2, min(DEFAULT_FOLDS, len(groups)))
    notes["folds"] = (
        "every video is audited by a model that never saw it; or splits: {train: [], …}"
    )
    return replace(draft, dataset=dataset, notes=notes)


def _drafted_features_rate(
    found: Mapping[Who, Sequence[Segment]], sets: LabelSets, config: Config
) -> tuple[float, str] | None:
    """The rate of ready features, where there are some and labels do not count their frames."""
    path = place(config.path)
    finder = MediaFinder(path if path.is_dir() else path.parent)
    files, last = {}, {}
    for who, own in found.items():
        made = _found_video(finder, who[0], sets, sets.files[who], config, "required")
        if made is not None and made.media is Media.FEATURES and not made.source_fps:
            files[made.id], last[made.id] = made.source, last_second(own)
    return guessed_features_rate(files, last) if files else None


def _weight(segments: Sequence[Segment]) -> tuple[int, float]:
    """Videos and seconds that a track covers."""
    ends = [s for s in segments if s.seconds < float("inf")]
    return len({s.video for s in segments}), sum(s.seconds for s in ends)
