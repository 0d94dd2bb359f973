"""What the page shows of a video: its file, or single frames as pictures.

A run root may come from somebody else, and then names whatever they like as its dataset. So only
videos, pictures and label files are read, by their names, and only below the dataset's own folder
or below what the service was started with; a URL only below the latter, as asking for it tells
others of this machine, and may reach what only this machine can.
"""

import io
import os
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path, PurePosixPath

import numpy as np
from PIL import Image

from csl_dist.config import DatasetConfig, LerobotConfig
from csl_dist.data.layouts.lerobot import CameraView, camera_views
from csl_dist.data.media.frames import FrameFolder, read_picture
from csl_dist.data.media.pixels import whole_frames
from csl_dist.data.media.sources import VIDEO_SUFFIXES
from csl_dist.data.media.transcoding import playable_copy
from csl_dist.data.media.video import VideoFile
from csl_dist.errors import CslError, DataError
from csl_dist.service.audits import NotFoundError
from csl_dist.service.settings import ServiceSettings
from csl_dist.storage.files import exists, is_below, is_url, real_path, signature
from csl_dist.types import Annotation, Media, Video

PLAYABLE = (".mp4", ".m4v", ".mov", ".webm")
"""Files that browsers play; of others a copy is made that they play."""
LABEL_SUFFIXES = (
    *(".txt", ".csv", ".tsv", ".json", ".jsonl", ".xml", ".eaf", ".anvil", ".boris", ".parquet"),
)
CACHED_PICTURES = 256
CACHED_FOLDERS = 16

Folders = tuple[str, ...]
"""Real paths of folders, and URLs, that may be read below."""


@dataclass(frozen=True, slots=True)
class Showing:
    """How the page shows a video."""

    media: str
    note: str | None = None
    is_preparing: bool = False
    """Whether a file that browsers play is being made."""


def shown_as(video: Video, annotation: Annotation, folders: Folders) -> Showing:
    """How the page shows a video; starts to make a copy of a file that browsers do not play."""
    if video.media is Media.FEATURES:
        return Showing("features", "This run reads ready-made features, so there is no picture.")
    if not may_show(video, folders):
        return Showing("missing", outside(video))
    if is_url(video.source) and video.media is Media.VIDEO and exists(video.source):
        return Showing("frames", "The video lies in a bucket, so single frames are shown.")
    if not exists(video.source):
        words = f"{video.source} is not on the machine of this service, so there is no picture."
        return Showing("missing", words)
    if video.media is Media.FRAMES:
        return Showing("frames")
    if not annotation.plays_as_is:
        words = "Steps of this video were swapped on purpose, so single frames are shown."
        return Showing("frames", words)
    if is_playable(video.source):
        return Showing("video")
    copy = playable_copy(video.source)
    if copy.path is not None:
        return Showing("video")
    if copy.problem is not None:
        return Showing("frames", f"Single frames are shown: {copy.problem}.")
    words = f"A copy that browsers play is being made, {copy.share:.0%}; until then, single frames."
    return Showing("frames", words, is_preparing=True)


@lru_cache(CACHED_FOLDERS)
def _views(path: str) -> dict[str, list[CameraView]]:
    return camera_views(path)


def views_of(config: DatasetConfig, video: Video, folders: Folders) -> dict[str, Video]:
    """A video as each of its cameras saw it, by camera; empty where it has only one.

    LeRobot alone has several cameras of one video; in other layouts each is a video of its own.
    """
    if not isinstance(config, LerobotConfig) or video.media is not Media.VIDEO:
        return {}
    if not is_below(config.path, folders):
        return {}
    try:
        views = _views(config.path).get(video.id, [])
    except (CslError, KeyError, OSError):
        return {}  # the run has been moved away from its dataset
    if len(views) < 2 or video.source not in {view.source for view in views}:
        return {}
    return {
        view.camera: replace(
            video,
            source=view.source,
            start_seconds=view.start_seconds,
            stop_seconds=view.stop_seconds,
        )
        for view in views
    }


def is_playable(source: str) -> bool:
    return Path(source).suffix.lower() in PLAYABLE


def played_file(video: Video) -> Path | None:
    """The file that the page plays: the video's own, or its copy; None where there is neither."""
    path = Path(os.path.realpath(video.source))
    if video.media is not Media.VIDEO or not path.is_file():
        return None
    return path if is_playable(video.source) else playable_copy(video.source).path


def readable_folders(config: DatasetConfig, settings: ServiceSettings) -> Folders:
    """Where files of a dataset may be read from."""
    started_with = (*settings.media, *settings.roots, *settings.submit_below)
    own = config.path
    if not os.path.isdir(own) and PurePosixPath(own).suffix:
        own = own.rpartition("/")[0]
    media = getattr(config, "media", None)
    named = [one for one in (own, media) if one]
    allowed = [one for one in named if not is_url(one) or is_below(one, started_with)]
    return (*map(real_path, allowed), *map(real_path, settings.media))


def may_show(video: Video, folders: Folders) -> bool:
    """Whether a source is a video or frames below these folders, where its links lead."""
    real = PurePosixPath(real_path(video.source))
    if video.media is Media.VIDEO and real.suffix.lower() not in VIDEO_SUFFIXES:
        return False
    return is_below(video.source, folders)


def may_read_labels(file: str, folders: Folders) -> bool:
    """Whether a file is one of labels below these folders, where its links lead."""
    real = PurePosixPath(real_path(file))
    return real.suffix.lower() in LABEL_SUFFIXES and is_below(file, folders)


def outside(video: Video) -> str:
    return (
        f"{video.source} is no video below the folder of the dataset, so there is no picture; "
        f"start the service with --media {'URL' if is_url(video.source) else 'FOLDER'} to show it."
    )


def frame_picture(
    video: Video, annotation: Annotation, frame: int, width: int, folders: Folders
) -> bytes:
    """One frame as JPEG, at most `width` pixels wide."""
    if frame >= annotation.num_frames:
        raise DataError(
            f"video {video.id!r} has {annotation.num_frames:,} frames, so that there is no frame "
            f"{frame}"
        )
    if not may_show(video, folders):
        raise NotFoundError(outside(video))
    if video.media is Media.FEATURES or not exists(video.source):
        raise NotFoundError(f"video {video.id!r} has no pictures on this machine")
    seconds = float(annotation.source_times_T[frame])
    folder = video.media is Media.FRAMES and not is_url(video.source)
    version = str(Path(video.source).stat().st_mtime_ns) if folder else signature(video.source)[1]
    return _jpeg(video, version, seconds, width, folders)


@lru_cache(CACHED_PICTURES)
def _jpeg(video: Video, version: str, seconds: float, width: int, folders: Folders) -> bytes:
    """Cached, as a frame is often shown again soon."""
    if video.media is Media.FRAMES:
        pictures = _pictures(video.source, video.source_fps, version)
        path = pictures[min(pictures, key=lambda at: abs(at - seconds))]
        if not is_below(path, folders):  # a link in the folder
            raise NotFoundError(outside(replace(video, source=path)))
        try:
            return _encoded(read_picture(path), width)
        except OSError as error:
            raise DataError(f"{path} can't be read ({error}); replace it") from error
    shown = VideoFile(video.source, video.start_seconds, video.stop_seconds)
    [pixels] = whole_frames(shown.decode(np.array([seconds])))
    return _encoded(Image.fromarray(pixels), width)


@lru_cache(CACHED_FOLDERS)
def _pictures(source: str, fps: float, version: str) -> dict[float, str]:
    """Cached, as listing a folder of 100,000 pictures takes a while."""
    return FrameFolder(source, fps).pictures()


def _encoded(picture: Image.Image, width: int) -> bytes:
    if picture.width > width:
        picture = picture.resize((width, max(1, round(picture.height * width / picture.width))))
    buffer = io.BytesIO()
    picture.save(buffer, format="JPEG", quality=85)
    return buffer.getvalue()
