"""Routes that show a video: its file in byte ranges, or single frames as pictures."""

import mimetypes
from typing import Annotated

from fastapi import APIRouter, Query, Response
from fastapi.responses import FileResponse

from csl_dist.service.audits import NotFoundError, OpenAudit
from csl_dist.service.context import ServiceContext
from csl_dist.service.forms import Frame, VideoId
from csl_dist.service.media import (
    Folders,
    frame_picture,
    may_show,
    outside,
    played_file,
    readable_folders,
    views_of,
)
from csl_dist.service.settings import MAX_ID
from csl_dist.types import Video

MAX_WIDTH = 960
Camera = Annotated[str | None, Query(max_length=MAX_ID, description="One of its cameras.")]


def media_routes(context: ServiceContext) -> APIRouter:
    """Videos and pictures, below /api/audits."""
    routes = APIRouter(prefix="/api/audits", tags=["media"])
    pool = context.pool

    def folders_of(opened: OpenAudit) -> Folders:
        return readable_folders(opened.audit.config.dataset, context.settings)

    @routes.get("/{audit}/media", response_class=FileResponse)
    def play(audit: str, video: VideoId, camera: Camera = None) -> Response:
        """A video's file, or byte ranges of it; of another camera, where it has several."""

        def seen(opened: OpenAudit) -> Video:
            found = opened.video(video)
            if camera is None:
                return found
            views = views_of(opened.audit.config.dataset, found, folders_of(opened))
            if camera not in views:
                raise NotFoundError(f"video {video!r} has no camera {camera!r}")
            return views[camera]

        found, folders = pool.read(audit, None, lambda opened: (seen(opened), folders_of(opened)))
        if not may_show(found, folders):
            raise NotFoundError(outside(found))
        path = played_file(found)
        if path is None:
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
            annotation = opened.audit.annotation(video)
            return frame_picture(found, annotation, frame, width, folders_of(opened))

        content = pool.read(audit, None, picture)
        headers = {"cache-control": "private, max-age=3600"}
        return Response(content, media_type="image/jpeg", headers=headers)

    return routes
