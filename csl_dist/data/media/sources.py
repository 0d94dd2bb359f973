"""Find a video's pixels or features in a folder; nothing here opens them."""

import os
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Literal
from urllib.parse import unquote, urlsplit

from csl_dist.errors import DataError
from csl_dist.storage.files import AnyPath, is_url, place
from csl_dist.types import Media, Split, Video

MediaNeed = Literal["required", "optional"]
"""Whether a video without pixels or features counts: for what reads labels alone, it does."""

VIDEO_SUFFIXES = (".mp4", ".avi", ".mkv", ".mov", ".webm")
FEATURE_SUFFIXES = (".npy", ".h5", ".hdf5", ".zarr", ".txt")
ARRAY_IN_FILE = re.compile(r"(.*?\.(?:h5|hdf5|zarr))#(.*)", re.IGNORECASE)
PICKLE_SUFFIXES = (".pkl", ".pickle", ".pt", ".pth")


def find_video(folder: AnyPath, stem: str) -> AnyPath | None:
    return _with_suffix(folder, stem, VIDEO_SUFFIXES)


def find_features(folder: AnyPath, stem: str) -> AnyPath | None:
    return _with_suffix(folder, stem, FEATURE_SUFFIXES)


def media_of(source: str) -> Media:
    """What a path is, by its name: feature file, video file, or else a folder of frames."""
    path = place(file_and_array(source)[0])
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
    for place_, folders, names in os.walk(folder, followlinks=True):
        real = os.path.realpath(place_)
        if real in seen:
            folders.clear()  # a link back up
            continue
        seen.add(real)
        found += [Path(place_, name) for name in names]
    return sorted(file for file in found if file.is_file())


def _with_suffix(folder: AnyPath, stem: str, suffixes: tuple[str, ...]) -> AnyPath | None:
    candidates = (folder / f"{stem}{suffix}" for suffix in suffixes)
    return next((path for path in candidates if path.exists()), None)


def find_frames(folder: AnyPath, name: str) -> AnyPath | None:
    return folder / name if (folder / name).is_dir() else None


def made_video(
    video_id: str,
    split: Split,
    labels: str,
    *,
    wanted: str,
    need: MediaNeed,
    options: dict[Media, tuple[AnyPath | str | None, float]],
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


def refuse_unknown_rate(video: Video, need: MediaNeed, path: str) -> None:
    """Refuses ready features beside labels with times, where nothing says how dense they are."""
    if need == "required" and video.media is Media.FEATURES and not video.source_fps:
        raise DataError(
            f"{path}: nothing says how many features a second there are in files such as "
            f"{video.source}; set dataset.features_fps"
        )


MEDIA_FOLDERS = ("videos", "video", "frames", "features", "kinematics", "media")
"""Where media lie beside label files, or beside their folder."""
CAMERAS = ("", "_capture1", "_capture2")
"""Endings of files of one recording, in the order in which they are preferred (JIGSAWS)."""
DEFAULT_FRAMES_FPS = 25.0


class MediaFinder:
    """Media in a folder and in those beside it, each of which is listed once."""

    def __init__(self, folder: str | AnyPath):
        base = place(folder)
        near = [base, base.parent]
        self.words = str(base)
        self._folders = [base, *(one / name for one in near for name in MEDIA_FOLDERS)]
        self._found: dict[Media, dict[str, AnyPath]] | None = None

    def __repr__(self) -> str:
        return f"MediaFinder({self.words!r})"

    def video(
        self,
        video: str,
        labels: str,
        *,
        named: str | None,
        wanted: str,
        need: MediaNeed,
        frames_fps: float | None,
        features_fps: float,
    ) -> Video | None:
        """A video with the media of its name, or with what its label file names."""
        rates = {
            Media.VIDEO: 0.0,
            Media.FRAMES: frames_fps or DEFAULT_FRAMES_FPS,
            Media.FEATURES: features_fps,
        }
        options: dict[Media, tuple[AnyPath | str | None, float]] = {
            media: (self._of(media, video, labels, named), fps) for media, fps in rates.items()
        }
        return made_video(video, Split.AUDIT, labels, wanted=wanted, need=need, options=options)

    def first_video(self) -> str | None:
        """Any video that is there."""
        return next((str(path) for path in self._index[Media.VIDEO].values()), None)

    def _of(self, media: Media, video: str, labels: str, named: str | None) -> AnyPath | str | None:
        if media is Media.VIDEO and named is not None and "/" in named and not is_url(named):
            path = place(labels).parent / _path_of(named)
            if path.suffix.lower() in VIDEO_SUFFIXES and path.is_file():
                return path
        stems = [video] if named is None else [PurePosixPath(_path_of(named)).stem, video]
        for stem in stems:
            for camera in CAMERAS:
                if (path_ := self._index[media].get(stem + camera)) is not None:
                    return path_
        if media is not Media.VIDEO:
            return None
        if named is not None and is_url(named) and not named.startswith("file:"):
            return named if named.lower().endswith(VIDEO_SUFFIXES) else None
        return next((self._deep[stem] for stem in stems if stem in self._deep), None)

    @property
    def _index(self) -> dict[Media, dict[str, AnyPath]]:
        if self._found is None:
            self._found = {media: {} for media in Media}
            for path in self._listed():
                suffix = path.suffix.lower()
                if suffix in VIDEO_SUFFIXES:
                    self._found[Media.VIDEO].setdefault(path.stem, path)
                elif suffix in FEATURE_SUFFIXES and (
                    suffix != ".txt" or path.parent.name in ("features", "kinematics")
                ):
                    self._found[Media.FEATURES].setdefault(path.stem, path)
                elif path.is_dir() and path.parent.name == "frames":
                    self._found[Media.FRAMES].setdefault(path.name, path)
        return self._found

    @cached_property
    def _deep(self) -> dict[str, AnyPath]:
        """Videos at any depth, by names that only one of them has; looked for only if needed."""
        base = self._folders[0]
        if not base.is_dir():
            return {}
        files = files_below(base) if isinstance(base, Path) else base.rglob("*")
        found: dict[str, list[AnyPath]] = {}
        for path in files:
            if path.suffix.lower() in VIDEO_SUFFIXES:
                found.setdefault(path.stem, []).append(path)
        return {stem: paths[0] for stem, paths in found.items() if len(paths) == 1}

    def _listed(self) -> Iterator[AnyPath]:
        for folder in self._folders:
            if folder.is_dir():
                yield from folder.iterdir()


def _path_of(name: str) -> str:
    """The path in a name that may be a file: URL, or of another system."""
    path = unquote(urlsplit(name).path) if is_url(name) else name
    return path.replace("\\", "/")
