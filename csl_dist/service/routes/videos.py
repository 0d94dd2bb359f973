"""Routes of videos: the list of an audit's videos, and the labels and flags of one."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from fastapi import APIRouter, Response

from csl_dist.service.audits import OpenAudit
from csl_dist.service.context import ServiceContext
from csl_dist.service.encoding import check_size, json_response, rounded_lists, table_rows
from csl_dist.service.forms import Limit, Offset, Revision, VideoId
from csl_dist.service.media import media_folders, shown_as
from csl_dist.service.responses import VideoFacts, VideoPage
from csl_dist.types import runs_of


def video_routes(context: ServiceContext) -> APIRouter:
    """The list of videos, and the facts of one."""
    routes = APIRouter(prefix="/api/audits", tags=["audits"])
    pool = context.pool

    @routes.get("/{audit}/videos", response_model=VideoPage)
    def list_videos(
        audit: str, offset: Offset = 0, limit: Limit = 100, revision: Revision = None
    ) -> Response:
        """Audited videos with their worst score, worst first."""
        table = pool.read(audit, revision, lambda opened: opened.videos())
        rows = table_rows(table.iloc[offset : offset + limit])
        return json_response({"total": len(table), "offset": offset, "videos": rows})

    @routes.get("/{audit}/video", response_model=VideoFacts)
    def describe_video(audit: str, video: VideoId, revision: Revision = None) -> Response:
        """A video's labels, times and flags, and how it can be shown."""
        more = context.settings.media
        facts = pool.read(audit, revision, lambda opened: _video_facts(opened, video, more))
        return json_response(facts)

    return routes


def _video_facts(opened: OpenAudit, video_id: str, more: Sequence[str]) -> dict[str, Any]:
    video, audit = opened.video(video_id), opened.audit
    annotation = audit.annotation(video_id)
    media, note = shown_as(video, annotation, media_folders(audit.config.dataset, more))
    fps = annotation.timeline.fps or 1.0
    even_T = np.arange(annotation.num_frames) / fps
    is_even = np.abs(annotation.times_T - even_T).max(initial=0.0) < 0.25 / fps
    if not is_even:
        check_size(annotation.num_frames)
    return {
        "video": video_id,
        "num_frames": annotation.num_frames,
        "duration": annotation.duration or float(annotation.times_T[-1]) + 1 / fps,
        "fps": fps,
        "media": media,
        "note": note,
        "labels": [
            (run.start, run.stop, int(annotation.labels_T[run.start]))
            for run in runs_of(annotation.labels_T)
        ],
        "times": None if is_even else rounded_lists(annotation.times_T),
        "threshold": opened.threshold(video_id),
        "flags": table_rows(audit.flags(video=video_id)) if audit.has_flags else [],
        "known_errors": [
            {"start": e.span.start, "stop": e.span.stop, "kind": e.kind, "label": e.true_label}
            for e in (audit.known_errors if audit.has_flags else ())
            if e.video == video_id
        ],
    }
