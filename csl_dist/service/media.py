"""What the page shows of a video: its file, or single frames as pictures."""

import io
from functools import lru_cache
from pathlib import Path

import numpy as np
from PIL import Image

from csl_dist.data.files import exists, is_url, open_file, signature
from csl_dist.data.media.frames import FrameFolder
from csl_dist.data.media.pixels import pixel_source
from csl_dist.data.media.video import whole_frames
from csl_dist.errors import DataError
from csl_dist.service.audits import NotFoundError
from csl_dist.types import Annotation, Media, Video

PLAYABLE = (".mp4", ".m4v", ".mov", ".webm")
"""Files that browsers play; others are shown frame by frame."""
CACHED_PICTURES = 256
CACHED_FOLDERS = 16


def shown_as(video: Video, annotation: Annotation) -> tuple[str, str | None]:
    """How the page shows a video, and a note about it."""
    if video.media is Media.FEATURES:
        return "features", "This run reads ready-made features, so there is no picture."
    if is_url(video.source) and video.media is Media.VIDEO and exists(video.source):
        return "frames", "The video lies in a bucket, so single frames are shown."
    if not exists(video.source):
        return (
            "missing",
            f"{video.source} is not on the machine of this service, so there is no picture.",
        )
    if video.media is Media.FRAMES:
        return "frames", None
    if not annotation.plays_as_is:
        return "frames", "Steps of this video were swapped on purpose, so single frames are shown."
    if Path(video.source).suffix.lower() not in PLAYABLE:
        return "frames", "Browsers can't play this kind of file, so single frames are shown."
    return "video", None


def frame_picture(video: Video, annotation: Annotation, frame: int, width: int) -> bytes:
    """One frame as JPEG, at most `width` pixels wide."""
    if frame >= annotation.num_frames:
        raise DataError(
            f"video {video.id!r} has {annotation.num_frames:,} frames, so that there is no frame "
            f"{frame}"
        )
    if video.media is Media.FEATURES or not exists(video.source):
        raise NotFoundError(f"video {video.id!r} has no pictures on this machine")
    seconds = float(annotation.source_times_T[frame])
    folder = video.media is Media.FRAMES and not is_url(video.source)
    version = str(Path(video.source).stat().st_mtime_ns) if folder else signature(video.source)[1]
    return _jpeg(video, version, seconds, width)


@lru_cache(CACHED_PICTURES)
def _jpeg(video: Video, version: str, seconds: float, width: int) -> bytes:
    """Cached, as a frame is often shown again soon."""
    if video.media is Media.FRAMES:
        pictures = _pictures(video.source, video.source_fps, version)
        path = pictures[min(pictures, key=lambda at: abs(at - seconds))]
        try:
            with open_file(path) as file, Image.open(file) as picture:
                return _encoded(picture.convert("RGB"), width)
        except OSError as error:
            raise DataError(f"{path} can't be read ({error}); replace it") from error
    [pixels] = whole_frames(pixel_source(video).decode(np.array([seconds])))
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
