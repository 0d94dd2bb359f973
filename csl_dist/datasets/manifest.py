"""The `manifest` layout: a CSV that lists videos and their label files.

Columns: id, source (video file), labels (a text file with one class name per entry), split (train,
val or audit), fps (label entries per second), and optionally group. Paths are relative to the CSV.
Classes are the lines of `classes.txt` beside it, or else all names in the label files, sorted.
"""

import csv
from pathlib import Path

import numpy as np

from csl_dist.config import DatasetConfig
from csl_dist.datasets.dataset import Dataset, LabelTrack
from csl_dist.errors import DataError
from csl_dist.records import UNLABELLED, Split, Video

COLUMNS = ("id", "source", "labels", "split", "fps")


def open_manifest(config: DatasetConfig) -> Dataset:
    """Reads the list of videos; label files are read later, one by one."""
    path = Path(config.path)
    if path.is_dir():
        path = path / "manifest.csv"
    videos = tuple(_read_videos(path))
    classes = _read_classes(path.parent / "classes.txt", videos)
    return Dataset(classes=classes, videos=videos, read_track=_TrackReader(classes))


class _TrackReader:
    """Reads label files by the dataset's class names."""

    def __init__(self, classes: tuple[str, ...]):
        self._ids = {name: i for i, name in enumerate(classes)} | {"": UNLABELLED}

    def __call__(self, video: Video) -> LabelTrack:
        names = _read_lines(video.labels)
        try:
            ids = [self._ids[name] for name in names]
        except KeyError as error:
            line = names.index(error.args[0]) + 1
            raise DataError(
                f"{video.labels}:{line}: unknown class {error.args[0]!r}; "
                f"the classes are {', '.join(n for n in self._ids if n)}"
            ) from None
        return LabelTrack(np.array(ids, dtype=np.int64), video.fps)


def _read_videos(path: Path) -> list[Video]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
            if missing:
                raise DataError(f"{path}: column {', '.join(missing)} is missing")
            rows = list(reader)
    except OSError as error:
        raise DataError(f"can't read the manifest {path}: {error.strerror}") from error
    if not rows:
        raise DataError(f"{path} lists no videos")
    videos = [_read_row(row, f"{path}:{i}", path.parent) for i, row in enumerate(rows, start=2)]
    seen: dict[str, int] = {}
    for line, video in enumerate(videos, start=2):
        if video.id in seen:
            raise DataError(f"{path}:{line}: video {video.id!r} is in line {seen[video.id]} too")
        seen[video.id] = line
    return videos


def _read_row(row: dict[str, str], where: str, folder: Path) -> Video:
    if row["split"] not in list(Split):
        raise DataError(f"{where}: split is {row['split']!r}, expected {', '.join(Split)}")
    try:
        fps = float(row["fps"])
    except ValueError:
        raise DataError(f"{where}: fps is {row['fps']!r}, expected a number") from None
    return Video(
        id=row["id"],
        split=Split(row["split"]),
        source=str(folder / row["source"]),
        labels=str(folder / row["labels"]),
        fps=fps,
        group=row.get("group") or None,
    )


def _read_classes(path: Path, videos: tuple[Video, ...]) -> tuple[str, ...]:
    if path.exists():
        return tuple(line for line in _read_lines(str(path)) if line)
    names = {name for video in videos for name in _read_lines(video.labels)}
    return tuple(sorted(names - {""}))


def _read_lines(path: str) -> list[str]:
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DataError(f"can't read the labels {path}: {error.strerror}") from error
    return [line.strip() for line in text.splitlines()]
