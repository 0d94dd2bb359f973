"""ActivityNet's JSON, as ActionFormer and others use it: segments in seconds.

`{"database": {id: {"subset", "fps", "duration", "annotations": [{"segment": [s, e], "label"}]}}}`.
Time between segments is unlabelled. Media lie in `dataset.media`, or in `videos`, `frames` or
`features` beside the file.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from csl_dist.config import ActivityNetConfig
from csl_dist.data.dataset import Dataset
from csl_dist.data.layouts.layout import Draft, Edits, Parts, refuse_missing
from csl_dist.data.layouts.segments import put_json, read_json, reading_from, renamed_segments
from csl_dist.data.media.sources import (
    MediaNeed,
    find_features,
    find_frames,
    find_video,
    made_video,
)
from csl_dist.data.tracks import SegmentTrack
from csl_dist.errors import DataError
from csl_dist.storage.output import OutputFolder
from csl_dist.types import Media, Split, Video

SUBSETS = {
    "train": Split.TRAIN,
    "training": Split.TRAIN,
    "val": Split.VAL,
    "validation": Split.VAL,
    "test": Split.AUDIT,
    "testing": Split.AUDIT,
    "audit": Split.AUDIT,
}


class ActivityNetLayout:
    """One JSON file, and media beside it or in a folder of their own."""

    name: ClassVar[str] = "activitynet"
    label_parts: ClassVar[Parts] = (("*.json",),)
    media_parts: ClassVar[Parts] = ()

    def draft(self, path: Path, out: Path) -> Draft:
        refuse_missing(self, path)
        if path.is_file():
            return Draft(layout=self.name, dataset={"path": path}, notes={})
        for file in sorted(path.glob("*.json")):
            try:
                read_database(file)
            except DataError:
                continue
            return Draft(layout=self.name, dataset={"path": file}, notes={})
        raise DataError(f'{path}: no .json file there has the form {{"database": {{id: …}}}}')

    def open(self, config: ActivityNetConfig, need: MediaNeed) -> Dataset:
        path = Path(config.path)
        database = read_database(path)
        classes = _classes(database)
        videos, problems = [], []
        for video_id, entry in database.items():
            if not entry.get("annotations"):
                continue  # test sets are published without labels
            where = f"{path}: video {video_id!r}"
            subset = str(entry.get("subset", "")).lower()
            if subset not in SUBSETS:
                expected = ", ".join(SUBSETS)
                problems.append(f"{where}: subset is {subset!r}, expected one of {expected}")
                continue
            video = _find(video_id, entry, SUBSETS[subset], config, need)
            if video is None:
                problems.append(f"{where}: no media in {config.media or path.parent}")
                continue
            videos.append(video)
        # Datasets whose test labels are secret have only validation videos to audit.
        if not any(video.split is Split.AUDIT for video in videos):
            videos = [_as_audit(video) for video in videos]
        return Dataset(
            classes=classes,
            videos=tuple(videos),
            read_track=SegmentTracks(classes, database),
            problems=tuple(problems),
        )

    def label_files(self, config: ActivityNetConfig) -> "ActivityNetFiles":
        return ActivityNetFiles(Path(config.path))


LAYOUT = ActivityNetLayout()


@dataclass(frozen=True, slots=True)
class ActivityNetFiles:
    """The one file with the labels of all videos."""

    path: Path

    def corrected(self, classes: tuple[str, ...], videos: Sequence[Video], path: Path) -> Dataset:
        file = path / self.path.name if path.is_dir() else path
        database = read_database(file)
        named = reading_from(file, videos, database)
        return Dataset(classes=classes, videos=named, read_track=SegmentTracks(classes, database))

    def write(self, edits: Edits, out: OutputFolder) -> list[Path]:
        target = out.file(Path(self.path.name))
        content = read_json(self.path)
        ids = {
            annotation["label"]: annotation["label_id"]
            for entry in content["database"].values()
            for annotation in entry.get("annotations") or ()
            if "label_id" in annotation
        }
        read = cache(lambda file: read_database(Path(file)))
        for video in edits.videos:
            entry = read(edits.file_of(video))[video.id]
            pieces = [
                {**annotation, "segment": [float(s) for s in annotation["segment"]]}
                for annotation in entry["annotations"]
            ]
            for renaming in edits.renamings.get(video.id, ()):
                new = {"label": renaming.label}
                if renaming.label in ids:
                    new["label_id"] = ids[renaming.label]
                pieces = renamed_segments(pieces, renaming, new, same="label")
            content["database"][video.id] = {**entry, "annotations": pieces}
        return [put_json(target, content)]


@dataclass(frozen=True, slots=True)
class SegmentTracks:
    """Makes tracks of the segments in the database."""

    classes: tuple[str, ...]
    database: dict[str, dict[str, Any]]

    def __call__(self, video: Video) -> SegmentTrack:
        entry = self.database[video.id]
        ids = {name: i for i, name in enumerate(self.classes)}
        segments = []
        for number, annotation in enumerate(entry["annotations"]):
            try:
                start, stop = map(float, annotation["segment"])
                segments.append((start, stop, ids[str(annotation["label"])]))
            except (KeyError, TypeError, ValueError) as error:
                raise DataError(
                    f"{video.labels}: video {video.id!r}, annotation {number}: expected "
                    f'{{"segment": [start, end], "label": name}}, got {annotation} ({error})'
                ) from None
        table = np.array(segments, dtype=float).reshape(-1, 3)
        return SegmentTrack(table[:, 0], table[:, 1], table[:, 2].astype(np.int64))


def read_database(path: Path) -> dict[str, dict[str, Any]]:
    content = read_json(path)
    database = content.get("database") if isinstance(content, dict) else None
    if not isinstance(database, dict) or not database:
        raise DataError(f'{path}: expected {{"database": {{id: …}}}}')
    return database


def _classes(database: dict[str, dict[str, Any]]) -> tuple[str, ...]:
    """Names in the order of their label_id, or sorted where there is none."""
    found = {
        str(annotation["label"]): annotation.get("label_id", 0)
        for entry in database.values()
        for annotation in entry.get("annotations") or ()
        if "label" in annotation
    }
    return tuple(sorted(found, key=lambda name: (found[name], name)))


def _either(find: Callable[[Path, str], Path | None], folder: Path, video_id: str) -> Path | None:
    """A file by its id, or with the prefix that ActivityNet's downloads have."""
    return find(folder, video_id) or find(folder, f"v_{video_id}")


def _find(
    video_id: str,
    entry: dict[str, Any],
    split: Split,
    config: ActivityNetConfig,
    need: MediaNeed,
) -> Video | None:
    def folder(name: str) -> Path:
        return Path(config.media) if config.media else Path(config.path).parent / name

    frames_fps = config.frames_fps or float(entry.get("fps") or config.features_fps)
    return made_video(
        video_id,
        split,
        config.path,
        wanted=config.source,
        need=need,
        options={
            Media.VIDEO: (_either(find_video, folder("videos"), video_id), 0.0),
            Media.FRAMES: (_either(find_frames, folder("frames"), video_id), frames_fps),
            Media.FEATURES: (
                _either(find_features, folder("features"), video_id),
                config.features_fps,
            ),
        },
    )


def _as_audit(video: Video) -> Video:
    split = Split.AUDIT if video.split is Split.VAL else video.split
    return replace(video, split=split)
