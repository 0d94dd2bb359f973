"""EgoPER: egocentric cooking in five tasks, labelled in seconds.

`annotation.json` beside one folder per task with `training.txt`, `validation.txt`, `test.txt`, and
`trim_videos/<id>.mp4`, `frames_10fps/<id>/000001.png` or `features_10fps/<id>.npy`. A segment whose
action type is not 0 was executed wrongly: `evaluate` takes these as known errors.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from csl_dist.config import EgoperConfig
from csl_dist.data.dataset import Dataset, KnownSegment
from csl_dist.data.formats.egoper import FORMAT, EgoperDocument
from csl_dist.data.layouts.document_files import DocumentFiles
from csl_dist.data.layouts.label_sets import tracks_of
from csl_dist.data.layouts.layout import Draft, FolderLayout, Parts, refuse_missing
from csl_dist.data.media.sources import (
    MediaNeed,
    find_features,
    find_frames,
    find_video,
    made_video,
)
from csl_dist.data.text import read_lines
from csl_dist.errors import DataError
from csl_dist.storage.files import AnyPath, place, read_bytes
from csl_dist.types import ErrorKind, Media, Split, Video

ANNOTATIONS = "annotation.json"
TASKS = ("coffee", "oatmeal", "pinwheels", "quesadilla", "tea")
FRAMES_FPS = 10.0
LISTS = {Split.TRAIN: "training", Split.VAL: "validation", Split.AUDIT: "test"}


class EgoperLayout(FolderLayout):
    """One annotation file, and a folder per task."""

    name: ClassVar[str] = "egoper"
    label_parts: ClassVar[Parts] = ((ANNOTATIONS,), ("*/training.txt",))

    def draft(self, path: AnyPath, out: Path) -> Draft:
        refuse_missing(self, path)
        path = path.parent if path.is_file() else path
        tasks = [t for t in TASKS if any((path / n).is_dir() for n in (t, t.capitalize()))]
        if not tasks:
            raise DataError(f"{path} has no task folder; expected {', '.join(TASKS)}")
        return Draft(
            layout=self.name,
            dataset={"path": path, "task": tasks[0], "fps": 10, "overlap": "last"},
            notes={
                "task": f"one of {', '.join(tasks)}",
                "fps": "frames sampled per second",
                "overlap": "where two segments overlap, as in EgoPER's own code",
            },
        )

    def open(self, config: EgoperConfig, need: MediaNeed) -> Dataset:
        root = place(config.path)
        path = root / ANNOTATIONS
        if config.task not in TASKS:
            raise DataError(
                f"dataset.task is {config.task!r}, but EgoPER's tasks are {', '.join(TASKS)}"
            )
        document = read_annotations(path, config)
        known = {segment.video for segment in document.segments}
        folder = _task_folder(root, config.task)
        videos, problems = [], []
        for split, where, video_id in _listed(folder):
            if video_id not in known:
                problems.append(f"{where}: video {video_id!r} is not in {path}")
                continue
            video = _find(folder, video_id, split, str(path), config, need)
            if video is None:
                problems.append(f"{where}: video {video_id!r} has no media in {folder}")
            else:
                videos.append(video)
        return Dataset(
            classes=document.classes,
            videos=tuple(videos),
            read_track=tracks_of(document, document.classes, config.overlap),
            problems=tuple(problems),
            known_segments=_wrongly_executed(document),
        )

    def label_files(self, config: EgoperConfig) -> "EgoperFiles":
        return EgoperFiles(place(config.path), FORMAT, config)


LAYOUT = EgoperLayout()


@dataclass(frozen=True, slots=True)
class EgoperFiles(DocumentFiles):
    """The one file with the labels of all videos."""

    def corrected(self, classes: tuple[str, ...], videos: Sequence[Video], path: Path) -> Dataset:
        file = path / ANNOTATIONS if path.is_dir() else path
        found = read_annotations(file, self.config).classes
        if not set(found) <= set(classes):
            raise DataError(
                f"{file} has the actions {', '.join(found)}, but the run has {', '.join(classes)}"
            )
        return DocumentFiles.corrected(self, classes, videos, path)


@dataclass(frozen=True, slots=True)
class ExecutionErrors:
    """Segments that were executed wrongly, by video."""

    found: Mapping[str, list[KnownSegment]]

    def __call__(self, video: Video) -> list[KnownSegment]:
        return self.found.get(video.id, [])


def _wrongly_executed(document: EgoperDocument) -> ExecutionErrors:
    found: dict[str, list[KnownSegment]] = {}
    for segment, kind in zip(document.segments, document.action_types, strict=True):
        if kind > 0 and segment.seconds > 0:
            found.setdefault(segment.video, []).append(
                KnownSegment(
                    kind=ErrorKind.EXECUTION,
                    start_seconds=segment.start_seconds,
                    stop_seconds=segment.stop_seconds,
                )
            )
    return ExecutionErrors(found)


def read_annotations(path: AnyPath, config: EgoperConfig) -> EgoperDocument:
    return FORMAT.parse(read_bytes(path), str(path), config)


def _listed(folder: AnyPath) -> list[tuple[Split, str, str]]:
    """Split, place of mention, and id of every video of a task."""
    listed = []
    for split, name in LISTS.items():
        path = folder / f"{name}.txt"
        for line, video_id in enumerate(read_lines(path), start=1):
            if video_id:
                listed.append((split, f"{path}:{line}", video_id))
    return listed


def _task_folder(root: AnyPath, task: str) -> AnyPath:
    """The task's folder, whose name is capitalised in some releases."""
    for name in (task, task.capitalize()):
        if (root / name).is_dir():
            return root / name
    raise DataError(f"{root} has no folder {task!r}")


def _find(
    folder: AnyPath,
    video_id: str,
    split: Split,
    labels: str,
    config: EgoperConfig,
    need: MediaNeed,
) -> Video | None:
    frames = find_frames(folder / "frames_10fps", video_id)
    return made_video(
        video_id,
        split,
        labels,
        wanted=config.source,
        need=need,
        options={
            Media.VIDEO: (find_video(folder / "trim_videos", video_id), 0.0),
            Media.FRAMES: (frames, config.frames_fps or FRAMES_FPS),
            Media.FEATURES: (find_features(folder / "features_10fps", video_id), FRAMES_FPS),
        },
    )
