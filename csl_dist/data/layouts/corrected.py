"""Corrected labels in a dataset's own layout, without the dataset.

What is given may hold the labels of some videos only: the others stay as they are. Layouts with one
label file a video are looked up by the file's place below the dataset's folder, or by its name.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from csl_dist.config import DatasetConfig
from csl_dist.data.dataset import FORM_ERRORS, Dataset
from csl_dist.data.layouts.activitynet import SegmentTracks, read_database
from csl_dist.data.layouts.cholec80 import LABELS_FPS, PhaseTracks
from csl_dist.data.layouts.egoper import read_annotations
from csl_dist.data.layouts.names import NameTracks
from csl_dist.errors import DataError
from csl_dist.types import Video


def corrected_labels(
    config: DatasetConfig, classes: tuple[str, ...], videos: Sequence[Video], path: Path
) -> Dataset:
    """The videos whose labels are at a path, as a dataset that reads them from there."""
    if not path.exists():
        raise DataError(f"there are no labels at {path}")
    try:
        dataset = _opened(config, classes, videos, path)
    except FORM_ERRORS as error:
        raise DataError(
            f"{path} does not have the form of the {config.layout} layout "
            f"({type(error).__name__}: {error})"
        ) from error
    if not dataset.videos:
        names = ", ".join(Path(video.labels).name for video in videos[:3])
        raise DataError(
            f"{path} has labels of none of the audited videos; expected files such as {names}, "
            f"in the {config.layout} layout"
        )
    return replace(dataset, length_mismatch=config.length_mismatch)


def _opened(
    config: DatasetConfig, classes: tuple[str, ...], videos: Sequence[Video], path: Path
) -> Dataset:
    match config.layout:
        case "activitynet":
            file = path / Path(config.path).name if path.is_dir() else path
            database = read_database(file)
            named = _named(videos, database, file)
            return Dataset(
                classes=classes, videos=named, read_track=SegmentTracks(classes, database)
            )
        case "egoper":
            file = path / "annotation.json" if path.is_dir() else path
            found, reader = read_annotations(file, config.task)
            if found != classes:
                raise DataError(
                    f"{file} has the actions {', '.join(found)}, but the run has "
                    f"{', '.join(classes)}"
                )
            named = _named(videos, reader.segments, file)
            return Dataset(classes=classes, videos=named, read_track=reader)
        case "cholec80":
            tracks = PhaseTracks(classes, config.labels_fps or LABELS_FPS)
            return Dataset(
                classes=classes, videos=_with_files(config, videos, path), read_track=tracks
            )
        case _:
            names = NameTracks(classes, config.labels_fps or config.features_fps)
            return Dataset(
                classes=classes, videos=_with_files(config, videos, path), read_track=names
            )


def _named(videos: Sequence[Video], entries: object, file: Path) -> tuple[Video, ...]:
    """Videos that one file names, reading from it."""
    assert isinstance(entries, dict)
    return tuple(replace(video, labels=str(file)) for video in videos if video.id in entries)


def _with_files(config: DatasetConfig, videos: Sequence[Video], path: Path) -> tuple[Video, ...]:
    """Videos with a label file of their own at the path, reading from it."""
    dataset = Path(config.path)
    folder = dataset.parent if dataset.suffix else dataset
    shared = Counter(Path(video.labels).name for video in videos)
    found = []
    for video in videos:
        labels = Path(video.labels)
        candidates = []
        if path.is_file():
            candidates = [path] if path.name == labels.name else []
        else:
            if labels.is_relative_to(folder):
                candidates.append(path / labels.relative_to(folder))
            if shared[labels.name] == 1:
                candidates.append(path / labels.name)
        file = next((file for file in candidates if file.is_file()), None)
        if file is not None:
            found.append(replace(video, labels=str(file)))
    return tuple(found)
