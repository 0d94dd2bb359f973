"""EgoPER: egocentric cooking in five tasks, labelled in seconds.

`annotation.json` beside one folder per task with `training.txt`, `validation.txt`, `test.txt`, and
`trim_videos/<id>.mp4`, `frames_10fps/<id>/000001.png` or `features_10fps/<id>.npy`. A segment whose
action type is not 0 was executed wrongly: `evaluate` takes these as known errors.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from csl_dist.config import DatasetConfig
from csl_dist.data.dataset import Dataset, KnownSegment
from csl_dist.data.media.sources import find_features, find_frames, find_video, made_video
from csl_dist.data.text import read_lines
from csl_dist.data.tracks import SegmentTrack
from csl_dist.errors import DataError
from csl_dist.types import ErrorKind, Media, Split, Video

TASKS = ("coffee", "oatmeal", "pinwheels", "quesadilla", "tea")
FRAMES_FPS = 10.0
LISTS = {Split.TRAIN: "training", Split.VAL: "validation", Split.AUDIT: "test"}


def open_egoper(config: DatasetConfig) -> Dataset:
    root = Path(config.path)
    path = root / "annotation.json"
    if config.task not in TASKS:
        raise DataError(
            f"dataset.task is {config.task!r}, but EgoPER's tasks are {', '.join(TASKS)}"
        )
    classes, reader = read_annotations(path, config.task)
    folder = _task_folder(root, config.task)
    videos, problems = [], []
    for split, name in LISTS.items():
        for line, video_id in enumerate(read_lines(folder / f"{name}.txt"), start=1):
            where = f"{folder / name}.txt:{line}"
            if not video_id:
                continue
            if video_id not in reader.segments:
                problems.append(f"{where}: video {video_id!r} is not in {path}")
                continue
            video = _find(folder, video_id, split, str(path), config)
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


@dataclass(frozen=True, slots=True)
class EgoPerTracks:
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
        kinds = self.segments[video.id]["action_type"]
        return [
            KnownSegment(kind=ErrorKind.EXECUTION, start_seconds=start, stop_seconds=stop)
            for (start, stop), kind in zip(self._times(video).tolist(), kinds, strict=True)
            if int(kind) > 0
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


def read_annotations(path: Path, task: str | None) -> tuple[tuple[str, ...], EgoPerTracks]:
    """The classes of a task, and the labels of its videos."""
    content = read_json(path)
    if task not in content:
        raise DataError(f"{path} has no task {task!r}; it has {', '.join(content)}")
    actions = content[task]["action2idx"]
    segments = {entry["video_id"]: entry["labels"] for entry in content[task]["segments"]}
    indices = {index: place for place, index in enumerate(sorted(actions.values()))}
    return tuple(sorted(actions, key=actions.__getitem__)), EgoPerTracks(segments, indices)


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise DataError(f"can't read {path}: {error.strerror}") from error
    except ValueError as error:
        raise DataError(f"{path} is not valid JSON: {error}") from error


def _task_folder(root: Path, task: str) -> Path:
    """The task's folder, whose name is capitalised in some releases."""
    for name in (task, task.capitalize()):
        if (root / name).is_dir():
            return root / name
    raise DataError(f"{root} has no folder {task!r}")


def _find(
    folder: Path, video_id: str, split: Split, labels: str, config: DatasetConfig
) -> Video | None:
    frames = find_frames(folder / "frames_10fps", video_id)
    return made_video(
        video_id,
        split,
        labels,
        wanted=config.source,
        options={
            Media.VIDEO: (find_video(folder / "trim_videos", video_id), 0.0),
            Media.FRAMES: (frames, config.frames_fps or FRAMES_FPS),
            Media.FEATURES: (find_features(folder / "features_10fps", video_id), FRAMES_FPS),
        },
    )
