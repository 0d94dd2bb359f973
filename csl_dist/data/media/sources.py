"""Find a video's pixels or features in a folder; nothing here opens them."""

import os
import re
from pathlib import Path
from typing import Literal

from csl_dist.types import Media, Split, Video

MediaNeed = Literal["required", "optional"]
"""Whether a video without pixels or features counts: for what reads labels alone, it does."""

VIDEO_SUFFIXES = (".mp4", ".avi", ".mkv", ".mov", ".webm")
FEATURE_SUFFIXES = (".npy", ".h5", ".hdf5", ".zarr", ".txt")
ARRAY_IN_FILE = re.compile(r"(.*?\.(?:h5|hdf5|zarr))#(.*)", re.IGNORECASE)
PICKLE_SUFFIXES = (".pkl", ".pickle", ".pt", ".pth")


def find_video(folder: Path, stem: str) -> Path | None:
    return _with_suffix(folder, stem, VIDEO_SUFFIXES)


def find_features(folder: Path, stem: str) -> Path | None:
    return _with_suffix(folder, stem, FEATURE_SUFFIXES)


def media_of(source: str) -> Media:
    """What a path is, by its name: feature file, video file, or else a folder of frames."""
    path = Path(file_and_array(source)[0])
    suffix = path.suffix.lower()
    if path.is_dir() and suffix != ".zarr":
        return Media.FRAMES
    if suffix in (*FEATURE_SUFFIXES, *PICKLE_SUFFIXES):
        return Media.FEATURES
    return Media.VIDEO if suffix else Media.FRAMES


def file_and_array(source: str) -> tuple[str, str]:
    """The two parts of `file.h5#name`; the name is empty where a # is a part of the file's."""
    named = ARRAY_IN_FILE.fullmatch(source)
    return (named[1], named[2]) if named else (source, "")


def files_below(folder: Path) -> list[Path]:
    """All files below a folder, sorted; links to folders are followed, each folder once."""
    found, seen = [], set()
    for place, folders, names in os.walk(folder, followlinks=True):
        real = os.path.realpath(place)
        if real in seen:
            folders.clear()  # a link back up
            continue
        seen.add(real)
        found += [Path(place, name) for name in names]
    return sorted(file for file in found if file.is_file())


def _with_suffix(folder: Path, stem: str, suffixes: tuple[str, ...]) -> Path | None:
    candidates = (folder / f"{stem}{suffix}" for suffix in suffixes)
    return next((path for path in candidates if path.exists()), None)


def find_frames(folder: Path, name: str) -> Path | None:
    return folder / name if (folder / name).is_dir() else None


def made_video(
    video_id: str,
    split: Split,
    labels: str,
    *,
    wanted: str,
    need: MediaNeed,
    options: dict[Media, tuple[Path | None, float]],
) -> Video | None:
    """A video with the first source that exists and is wanted; options give path and rate.

    Without any, it is None, or where media are optional a video whose source is empty.
    """
    for media, (source, fps) in options.items():
        if source is not None and wanted in ("auto", media):
            return Video(
                id=video_id,
                split=split,
                labels=labels,
                source=str(source),
                media=media,
                source_fps=fps,
            )
    return None if need == "required" else Video(id=video_id, split=split, labels=labels, source="")
