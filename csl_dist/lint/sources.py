"""Where lint's label sequences come from: a folder or file of labels, a config, a run root.

Only labels are read, and the lengths that label and feature files tell; no video is opened. A file
that can't be read does not stop the others: it becomes a finding.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path

import numpy as np

from csl_dist.config import (
    DATASET_SECTIONS,
    DatasetConfig,
    EgoperConfig,
    load_config,
    parse_config,
)
from csl_dist.data.dataset import Dataset
from csl_dist.data.documents.segment import Segment
from csl_dist.data.init import draft_config, guesses, recognise
from csl_dist.data.layouts import FOLDERS, read_labelled
from csl_dist.data.layouts.cholec80 import LABELS_FPS, PHASE_ROWS
from csl_dist.data.layouts.egoper import TASKS
from csl_dist.data.layouts.entries import NAME_LINES, EntryTracks
from csl_dist.data.layouts.label_sets import SegmentTracks
from csl_dist.data.media.sources import files_below
from csl_dist.data.splits import with_patterns
from csl_dist.data.text import UNLABELLED_NAMES
from csl_dist.data.tracks import SegmentTrack
from csl_dist.errors import ConfigError, DataError
from csl_dist.lint.findings import Finding, Kind, TimeUnit
from csl_dist.lint.sequences import LabelSequence, Step, steps_from_frames
from csl_dist.storage.files import AnyPath, exists, place
from csl_dist.storage.paths import RunPaths
from csl_dist.types import Media, Split, Video

LISTS = ("mapping.txt", "classes.txt", "readme.txt")
"""Text files that lie beside label files and are none."""
ANY_NAMES = ("annotation", "annotations", "gestures", "groundtruth", "label", "labels", "manifest")
"""Folders and files of labels are called so whatever is labelled."""
LENGTH_MISFIT = 0.05
"""Features so much longer or shorter than the labels, in the median, have another rate."""
FOLDER_LAYOUTS = tuple(layout.name for layout in FOLDERS if layout.name != "activitynet")
"""Layouts whose config needs nothing but the folder."""
AUDIT_ALONE = ("folds", "annotator", "overlap")
"""Keys of a drafted config that labels alone do not need."""
MAX_NAMES = 0.5
"""Different names in a file, as a share of its lines, from which they are no class names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the user says of labels that do not say it themselves."""

    fps: float | None = None
    """Label entries per second."""
    group: str | None = None
    """Regular expression whose match in an id is the group."""
    procedure: str | None = None
    """Regular expression whose match in an id is the procedure."""
    overrides: tuple[str, ...] = ()
    """`section.key=value`, where a config is given."""


@dataclass(slots=True, kw_only=True)
class Labels:
    """All label files of a dataset; `sequences` reads them one by one."""

    title: str
    datasets: Sequence[Dataset]
    unit: TimeUnit = TimeUnit.SECONDS
    notes: list[str] = field(default_factory=list)
    """What was taken for granted, a sentence each."""
    unreadable: list[Finding] = field(default_factory=list)
    """Label files that can't be used; known once the sequences have been read."""
    may_hold_other_files: bool = False
    """Text files that are no labels are left out, and a note says so."""

    @property
    def classes(self) -> frozenset[str]:
        """Names that the dataset lists; empty where it has no list."""
        return frozenset(name for dataset in self.datasets for name in dataset.classes)

    def sequences(self) -> Iterator[LabelSequence]:
        left_out: list[OtherFormError] = []
        num_found = 0
        for dataset in self.datasets:
            lengths = _lengths(dataset)
            for video in dataset.videos:
                try:
                    sequence = _sequence(dataset, video, any_form=not self.may_hold_other_files)
                except OtherFormError as error:
                    left_out.append(error)
                except DataError as error:
                    self.unreadable.append(_unreadable(video, error))
                else:
                    num_found += 1
                    yield replace(sequence, seconds=lengths.get(video.id, sequence.seconds))
        if left_out and not num_found:
            raise left_out[0]
        if left_out:
            names = ", ".join(error.name for error in left_out[:3])
            more = f" and {len(left_out) - 3:,} more" if len(left_out) > 3 else ""
            self.notes.append(
                f"Text files without one class name per entry and line are left out: {names}{more}."
            )


class OtherFormError(DataError):
    """A text file that does not look like labels."""

    def __init__(self, video: Video, names: Sequence[str]):
        self.name = video.id
        super().__init__(
            f"{video.labels} is not read as labels: its first line is {names[0]!r}, and "
            f"{len(set(names)):,} of {len(names):,} lines differ from each other; expected the "
            "class name of one entry on each line (docs/lint.md lists the other forms)"
        )


def find_labels(where: str | Path, options: Options) -> Labels:
    """The labels that a path, a config or a run root leads to."""
    path = place(where)
    if exists(f"{where}/{RunPaths.RUN}"):
        from csl_dist.storage.run_file import read_run_config

        return _of_config(read_run_config(str(where)).dataset, options, str(where))
    if not path.exists():
        raise DataError(f"{path} does not exist; give a folder or file of labels, or a config")
    if isinstance(path, Path) and path.suffix.lower() in (".yaml", ".yml"):
        config = load_config(path, options.overrides)
        return _of_config(config.dataset, options, Path(config.root).name)
    if options.overrides:
        raise ConfigError(f"--set changes a config, but {path} is none")
    section, notes = _section_of(path)
    if section is None:
        assert isinstance(path, Path), "text files are looked for on this machine alone"
        return _bare_files(path, options)
    labels = _of_config(section, options, _title(Path(section.path)))
    if section.layout == "mstcn" and options.fps is None:
        labels.notes.append(
            f"Labels are taken as {section.counted_fps:g} a second, as in GTEA and Breakfast; "
            "--fps gives another rate."
        )
    labels.notes += notes
    return labels


def _section_of(path: AnyPath) -> tuple[DatasetConfig | None, list[str]]:
    """The section of a config that a folder or file would have, and what was guessed for it."""
    try:
        layout = recognise(path, media="optional")
    except DataError:
        if path.is_file() and path.suffix.lower() == ".csv":
            return DATASET_SECTIONS["manifest"](path=str(path)), []
        if _text_files(path):
            return None, []
        raise
    if layout in FOLDER_LAYOUTS:
        folder = path.parent if path.name == "annotation.json" else path
        return DATASET_SECTIONS[layout](path=str(folder)), []
    draft = draft_config(layout, path, Path(path.name))
    # Lint compares annotators, and names overlaps itself.
    kept = {name: v for name, v in draft.dataset.items() if name not in AUDIT_ALONE}
    notes = [
        _sentence(f"dataset.{name}: {words}") for name, words in guesses(draft) if name in kept
    ]
    section = kept | {"layout": layout, "path": str(kept["path"])}
    where = {"root": "runs/lint", "dataset": section}
    return parse_config(where, where=str(path)).dataset, notes


def _title(path: Path) -> str:
    """The name of a folder or file, or that of the folder around it where it is like any other."""
    path = path.absolute()
    return path.parent.name if path.stem.lower() in ANY_NAMES and path.parent.name else path.name


def _of_config(config: DatasetConfig, options: Options, title: str) -> Labels:
    given = {
        "labels_fps": options.fps or config.labels_fps,
        "group": options.group or config.group,
        "procedure": options.procedure or config.procedure,
    }
    config = replace(config, **given)  # type: ignore[arg-type]
    if isinstance(config, EgoperConfig) and config.task is None:
        datasets = _all_tasks(config)
    else:
        datasets = [read_labelled(config)]
    if not any(dataset.videos for dataset in datasets):
        problems = [problem for dataset in datasets for problem in dataset.problems]
        raise DataError(problems[0] if problems else f"{config.path} has no labels")
    return Labels(
        title=title,
        datasets=datasets,
        notes=[
            _sentence(words)
            for dataset in datasets
            for words in (*dataset.problems, *dataset.notes)
        ],
    )


def _all_tasks(config: EgoperConfig) -> list[Dataset]:
    """EgoPER's tasks, each a procedure of its own."""
    folders = {folder.name.lower() for folder in place(config.path).iterdir() if folder.is_dir()}
    datasets = []
    for task in (task for task in TASKS if task in folders):
        dataset = read_labelled(replace(config, task=task))
        videos = tuple(replace(v, procedure=v.procedure or task) for v in dataset.videos)
        datasets.append(replace(dataset, videos=videos))
    return datasets


def _text_files(path: AnyPath) -> list[Path]:
    if not isinstance(path, Path):
        return []
    if path.is_file():
        return [] if path.suffix.lower() == ".json" else [path]
    files = (file for file in files_below(path) if file.suffix == ".txt")
    return [file for file in files if file.name.lower() not in LISTS]


def _bare_files(path: Path, options: Options) -> Labels:
    """Text files without anything else: one class name a line, or Cholec80's rows."""
    files = _text_files(path)
    with files[0].open("rb") as file:
        phases = file.readline().split() == [b"Frame", b"Phase"]
    form = PHASE_ROWS if phases else NAME_LINES
    fps = options.fps or (LABELS_FPS if phases else None)
    base = path if path.is_dir() else path.parent
    same_stems = len({file.stem for file in files}) < len(files)
    beside = files_below(path) if path.is_dir() else []
    features = {file.stem: str(file) for file in beside if file.suffix == ".npy"}
    names = [
        str(file.relative_to(base).with_suffix("")) if same_stems else file.stem for file in files
    ]
    videos = [
        Video(
            id=name.removesuffix("-phase"),
            split=Split.AUDIT,
            labels=str(file),
            source="" if same_stems else features.get(file.stem, ""),
            media=Media.FEATURES,
        )
        for name, file in zip(names, files, strict=True)
    ]
    tracks = EntryTracks((), fps or 1.0, form)
    config = DATASET_SECTIONS["manifest"](
        path=str(path), group=options.group, procedure=options.procedure
    )
    labels = Labels(
        title=_title(path),
        datasets=[Dataset(classes=(), videos=with_patterns(videos, config), read_track=tracks)],
        may_hold_other_files=True,
    )
    if fps is None:
        labels.unit = TimeUnit.ENTRIES
        labels.notes.append(
            "The rate of the labels is not known, so that places are numbers of entries (lines); "
            "--fps 25 gives seconds, at 25 entries a second."
        )
    return labels


def _sequence(dataset: Dataset, video: Video, *, any_form: bool) -> LabelSequence:
    about = LabelSequence(
        video=video.id,
        steps=(),
        file=video.labels,
        group=video.group,
        annotator=video.annotator,
        procedure=video.procedure,
    )
    tracks = dataset.read_track
    if isinstance(tracks, EntryTracks):
        # By name and not by id: a name that the dataset does not list is a finding.
        names, fps = tracks.names(video), tracks.rate(video)
        if not any_form and len(set(names)) > MAX_NAMES * len(names):
            raise OtherFormError(video, names)
        return replace(
            about,
            steps=steps_from_frames(names, fps=fps, unlabelled=UNLABELLED_NAMES),
            seconds=len(names) / fps,
            frame_seconds=1 / fps,
            end_seconds=len(names) / fps,
        )
    track = dataset.track(video)
    assert isinstance(track, SegmentTrack)
    seconds = _told_length(dataset, video)
    return replace(
        about,
        steps=tuple(
            Step(
                label=segment.label,
                start_seconds=segment.start_seconds,
                stop_seconds=_known_stop(segment, seconds),
            )
            for segment in track.segments
            if segment.seconds > 0
        ),
        seconds=seconds,
    )


def _known_stop(segment: Segment, seconds: float | None) -> float:
    """Where a segment ends: the last of a file of starts, with its video, or after a second."""
    if segment.stop_seconds < inf:
        return segment.stop_seconds
    return max(seconds or 0.0, segment.start_seconds + 1.0)


def _told_length(dataset: Dataset, video: Video) -> float | None:
    """What label files say of a video's length."""
    tracks = dataset.read_track
    return tracks.lengths.get(video.id) if isinstance(tracks, SegmentTracks) else None


def _lengths(dataset: Dataset) -> dict[str, float]:
    """Seconds of videos by their .npy features, where these are of the labels' rate."""
    tracks = dataset.read_track
    if not isinstance(tracks, EntryTracks):
        return {}
    lengths, misfits = {}, []
    for video in dataset.videos:
        if video.media is not Media.FEATURES or not video.source.endswith(".npy"):
            continue
        try:
            shape = np.load(video.source, mmap_mode="r").shape
            num_labels = len(tracks.names(video))
        except (OSError, EOFError, ValueError, DataError):
            continue
        frames = shape[-1 if dataset.features_frames_last else 0]
        lengths[video.id] = frames / (video.source_fps or tracks.rate(video))
        expected = num_labels / tracks.rate(video)
        misfits.append(abs(lengths[video.id] - expected) / max(expected, 1e-9))
    return lengths if misfits and float(np.median(misfits)) <= LENGTH_MISFIT else {}


def _unreadable(video: Video, error: DataError) -> Finding:
    return Finding(
        kind=Kind.UNREADABLE,
        video=video.id,
        file=video.labels,
        annotator=video.annotator,
        score=1.0,
        sentence=_sentence(str(error)),
    )


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."
