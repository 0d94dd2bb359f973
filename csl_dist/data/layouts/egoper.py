"""EgoPER: egocentric cooking in five tasks, labelled in seconds.

`annotation.json` beside one folder per task with `training.txt`, `validation.txt`, `test.txt`, and
`trim_videos/<id>.mp4`, `frames_10fps/<id>/000001.png` or `features_10fps/<id>.npy`. A segment whose
action type is not 0 was executed wrongly: `evaluate` takes these as known errors.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from csl_dist.config import EgoperConfig
from csl_dist.data.dataset import Dataset, KnownSegment
from csl_dist.data.layouts.layout import Draft, Edits, Parts, refuse_missing
from csl_dist.data.layouts.segments import put_json, read_json, reading_from, renamed_segments
from csl_dist.data.media.sources import (
    MediaNeed,
    find_features,
    find_frames,
    find_video,
    made_video,
)
from csl_dist.data.text import read_lines
from csl_dist.data.tracks import SegmentTrack
from csl_dist.errors import DataError
from csl_dist.storage.output import OutputFolder
from csl_dist.types import ErrorKind, Media, Split, Video

ANNOTATIONS = "annotation.json"
TASKS = ("coffee", "oatmeal", "pinwheels", "quesadilla", "tea")
FRAMES_FPS = 10.0
LISTS = {Split.TRAIN: "training", Split.VAL: "validation", Split.AUDIT: "test"}


class EgoperLayout:
    """One annotation file, and a folder per task."""

    name: ClassVar[str] = "egoper"
    label_parts: ClassVar[Parts] = ((ANNOTATIONS,), ("*/training.txt",))
    media_parts: ClassVar[Parts] = ()

    def draft(self, path: Path, out: Path) -> Draft:
        refuse_missing(self, path)
        tasks = [t for t in TASKS if any((path / n).is_dir() for n in (t, t.capitalize()))]
        if not tasks:
            raise DataError(f"{path} has no task folder; expected {', '.join(TASKS)}")
        return Draft(
            layout=self.name,
            dataset={"path": path, "task": tasks[0], "fps": 10},
            notes={"task": f"one of {', '.join(tasks)}", "fps": "frames sampled per second"},
        )

    def open(self, config: EgoperConfig, need: MediaNeed) -> Dataset:
        root = Path(config.path)
        path = root / ANNOTATIONS
        if config.task not in TASKS:
            raise DataError(
                f"dataset.task is {config.task!r}, but EgoPER's tasks are {', '.join(TASKS)}"
            )
        classes, reader = read_annotations(path, config.task)
        folder = _task_folder(root, config.task)
        videos, problems = [], []
        for split, where, video_id in _listed(folder):
            if video_id not in reader.segments:
                problems.append(f"{where}: video {video_id!r} is not in {path}")
                continue
            video = _find(folder, video_id, split, str(path), config, need)
            if video is None:
                problems.append(f"{where}: video {video_id!r} has no media in {folder}")
            else:
                videos.append(video)
        return Dataset(
            classes=classes,
            videos=tuple(videos),
            read_track=reader,
            problems=tuple(problems),
            known_segments=reader.known_segments,
        )

    def label_files(self, config: EgoperConfig) -> "EgoperFiles":
        return EgoperFiles(Path(config.path) / ANNOTATIONS, config.task)


LAYOUT = EgoperLayout()


@dataclass(frozen=True, slots=True)
class EgoperFiles:
    """The one file with the labels of all videos."""

    path: Path
    task: str | None

    def corrected(self, classes: tuple[str, ...], videos: Sequence[Video], path: Path) -> Dataset:
        file = path / ANNOTATIONS if path.is_dir() else path
        found, reader = read_annotations(file, self.task)
        if found != classes:
            raise DataError(
                f"{file} has the actions {', '.join(found)}, but the run has {', '.join(classes)}"
            )
        named = reading_from(file, videos, reader.segments)
        return Dataset(classes=classes, videos=named, read_track=reader)

    def write(self, edits: Edits, out: OutputFolder) -> list[Path]:
        target = out.file(Path(ANNOTATIONS))
        content = read_json(self.path)
        task = content[self.task]
        entries = {entry["video_id"]: entry for entry in task["segments"]}
        read = cache(lambda file: read_annotations(Path(file), self.task)[1].segments)
        for video in edits.videos:
            labels = read(edits.file_of(video))[video.id]
            pieces = _pieces(labels)
            for renaming in edits.renamings.get(video.id, ()):
                new = {"action": task["action2idx"][renaming.label], "action_type": 0}
                new |= {"error_description": ""}
                pieces = renamed_segments(pieces, renaming, new, same="action")
            columns = {name: [piece.get(name) for piece in pieces] for name in labels}
            times = [piece["segment"] for piece in pieces]
            entries[video.id]["labels"] = columns | {"time_stamp": times}
        return [put_json(target, content)]


def _pieces(labels: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """EgoPER's lists, one an attribute, as one dict a segment."""
    names = [name for name in labels if name != "time_stamp"]
    return [
        {"segment": [float(s) for s in times], **{name: labels[name][i] for name in names}}
        for i, times in enumerate(labels["time_stamp"])
    ]


@dataclass(frozen=True, slots=True)
class EgoperTracks:
    """Makes tracks of the segments that `annotation.json` holds."""

    segments: dict[str, dict[str, Any]]
    indices: dict[int, int]
    """Class id by the dataset's own action index."""

    def __call__(self, video: Video) -> SegmentTrack:
        labels = self.segments[video.id]
        times = self._times(video)
        try:
            ids = [self.indices[int(action)] for action in labels["action"]]
        except (KeyError, ValueError) as error:
            raise DataError(
                f"{video.labels}: video {video.id!r} has an action {error} that action2idx lacks"
            ) from None
        return SegmentTrack(times[:, 0], times[:, 1], np.array(ids, dtype=np.int64))

    def known_segments(self, video: Video) -> list[KnownSegment]:
        times = self._times(video).tolist()
        try:
            kinds = [int(kind) for kind in self.segments[video.id]["action_type"]]
            spans = list(zip(times, kinds, strict=True))
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"{video.labels}: video {video.id!r} needs a number in action_type for each of its "
                f"{len(times)} segments, 0 where it is done right ({type(error).__name__}: {error})"
            ) from error
        return [
            KnownSegment(kind=ErrorKind.EXECUTION, start_seconds=start, stop_seconds=stop)
            for (start, stop), kind in spans
            if kind > 0
        ]

    def _times(self, video: Video) -> Any:
        labels = self.segments[video.id]
        times = np.array(labels["time_stamp"], dtype=float).reshape(-1, 2)
        if len(times) != len(labels["action"]):
            raise DataError(
                f"{video.labels}: video {video.id!r} has {len(times)} time stamps but "
                f"{len(labels['action'])} actions"
            )
        return times


def read_annotations(path: Path, task: str | None) -> tuple[tuple[str, ...], EgoperTracks]:
    """The classes of a task, and the labels of its videos."""
    content = read_json(path)
    if task not in content:
        raise DataError(f"{path} has no task {task!r}; it has {', '.join(content)}")
    actions = content[task]["action2idx"]
    segments = {entry["video_id"]: entry["labels"] for entry in content[task]["segments"]}
    indices = {index: place for place, index in enumerate(sorted(actions.values()))}
    return tuple(sorted(actions, key=actions.__getitem__)), EgoperTracks(segments, indices)


def _listed(folder: Path) -> list[tuple[Split, str, str]]:
    """Split, place of mention, and id of every video of a task."""
    listed = []
    for split, name in LISTS.items():
        path = folder / f"{name}.txt"
        for line, video_id in enumerate(read_lines(path), start=1):
            if video_id:
                listed.append((split, f"{path}:{line}", video_id))
    return listed


def _task_folder(root: Path, task: str) -> Path:
    """The task's folder, whose name is capitalised in some releases."""
    for name in (task, task.capitalize()):
        if (root / name).is_dir():
            return root / name
    raise DataError(f"{root} has no folder {task!r}")


def _find(
    folder: Path,
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
