"""Routes that show a video: its file in byte ranges, or single frames as pictures."""

import io
import mimetypes
from functools import lru_cache
from pathlib import Path
from typing import Annotated

import numpy as np
from fastapi import APIRouter, Query, Response
from fastapi.responses import FileResponse
from PIL import Image

from csl_dist.data.media.frames import FrameFolder
from csl_dist.data.media.video import VideoFile, whole_frames
from csl_dist.errors import DataError
from csl_dist.service.audits import AuditPool, NotFoundError, OpenAudit
from csl_dist.service.forms import Frame, VideoId
from csl_dist.types import Annotation, Media, Video

PLAYABLE = (".mp4", ".m4v", ".mov", ".webm")
"""What browsers play; other files are shown frame by frame."""
MAX_WIDTH = 960
KEPT_PICTURES = 256
KEPT_FOLDERS = 16


def shown_as(video: Video, annotation: Annotation) -> tuple[str, str | None]:
    """How the page shows a video, and what it says about that."""
    if video.media is Media.FEATURES:
        return "features", "This run reads ready-made features, so that there is no picture."
    if not Path(video.source).exists():
        return "missing", f"{video.source} is not on the machine of this service: no picture."
    if video.media is Media.FRAMES:
        return "frames", None
    if not annotation.plays_as_is:
        return "frames", "Frames of this video were moved on purpose, so it is shown by frames."
    if Path(video.source).suffix.lower() not in PLAYABLE:
        return "frames", "Browsers do not play this kind of file, so it is shown by frames."
    return "video", None


def media_routes(pool: AuditPool) -> APIRouter:
    """Videos and pictures, below /api/audits."""
    routes = APIRouter(prefix="/api/audits", tags=["media"])

    @routes.get("/{audit}/media", response_class=FileResponse)
    def play(audit: str, video: VideoId) -> Response:
        """A video's file, in byte ranges where asked for."""
        found = pool.read(audit, None, lambda opened: opened.video(video))
        path = Path(found.source)
        if found.media is not Media.VIDEO or not path.is_file():
            raise NotFoundError(f"video {video!r} has no video file on this machine")
        kind = mimetypes.guess_type(path.name)[0] or ""
        if not kind.startswith("video/"):
            kind = "application/octet-stream"
        return FileResponse(path, media_type=kind, headers={"cache-control": "private, no-cache"})

    @routes.get("/{audit}/picture", response_class=Response)
    def show_frame(
        audit: str,
        video: VideoId,
        frame: Frame,
        width: Annotated[int, Query(ge=16, le=MAX_WIDTH)] = MAX_WIDTH,
    ) -> Response:
        """One frame of the audit as JPEG."""

        def picture(opened: OpenAudit) -> bytes:
            found = opened.video(video)
            return _picture(found, opened.audit.annotation(video), frame, width)

        content = pool.read(audit, None, picture)
        headers = {"cache-control": "private, max-age=3600"}
        return Response(content, media_type="image/jpeg", headers=headers)

    return routes


def _picture(video: Video, annotation: Annotation, frame: int, width: int) -> bytes:
    if frame >= annotation.num_frames:
        raise DataError(
            f"video {video.id!r} has {annotation.num_frames:,} frames, but frame {frame} is asked "
            "for"
        )
    if video.media is Media.FEATURES or not Path(video.source).exists():
        raise NotFoundError(f"video {video.id!r} has no pictures on this machine")
    seconds = float(annotation.source_times_T[frame])
    changed = Path(video.source).stat().st_mtime_ns
    return _jpeg(video.source, video.media, video.source_fps, changed, seconds, width)


@lru_cache(KEPT_PICTURES)
def _jpeg(source: str, media: Media, fps: float, changed: int, seconds: float, width: int) -> bytes:
    """A frame that was shown lately is likely to be asked for again."""
    if media is Media.FRAMES:
        pictures = _pictures(source, fps, changed)
        path = pictures[min(pictures, key=lambda at: abs(at - seconds))]
        try:
            with Image.open(path) as picture:
                return _encoded(picture.convert("RGB"), width)
        except OSError as error:
            raise DataError(f"{path} can't be read ({error}); replace it") from error
    [pixels] = whole_frames(VideoFile(source).decode(np.array([seconds])))
    return _encoded(Image.fromarray(pixels), width)


@lru_cache(KEPT_FOLDERS)
def _pictures(source: str, fps: float, changed: int) -> dict[float, str]:
    """A folder's list; folders of 100,000 pictures take a while."""
    return FrameFolder(source, fps).pictures()


def _encoded(picture: Image.Image, width: int) -> bytes:
    if picture.width > width:
        picture = picture.resize((width, max(1, round(picture.height * width / picture.width))))
    buffer = io.BytesIO()
    picture.save(buffer, format="JPEG", quality=85)
    return buffer.getvalue()
