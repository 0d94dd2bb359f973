"""Routes of videos: the list of an audit's videos, and the labels and flags of one."""

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Response

from csl_dist.audit.typical import typical_frames
from csl_dist.config import DatasetConfig
from csl_dist.service.audits import OpenAudit
from csl_dist.service.context import ServiceContext
from csl_dist.service.encoding import check_size, json_response, rounded_lists
from csl_dist.service.forms import Limit, Offset, Revision, VideoId
from csl_dist.service.media import Folders, readable_folders, shown_as, views_of
from csl_dist.service.responses import FrameOf, Prediction, VideoFacts, VideoPage
from csl_dist.service.selection import class_id
from csl_dist.service.settings import MAX_ID, ServiceSettings
from csl_dist.storage.tables import table_rows
from csl_dist.types import Video, runs_of

NUM_TYPICAL = 3


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
        settings = context.settings
        facts = pool.read(audit, revision, lambda opened: _video_facts(opened, video, settings))
        return json_response(facts)

    @routes.get("/{audit}/prediction", response_model=Prediction)
    def show_prediction(audit: str, video: VideoId, revision: Revision = None) -> Response:
        """What models predict for a video: runs of the likeliest class of later checkpoints."""

        def runs(opened: OpenAudit) -> dict[str, Any]:
            opened.video(video)
            predicted_T = opened.audit.predicted(video)
            return {
                "runs": [(r.start, r.stop, int(predicted_T[r.start])) for r in runs_of(predicted_T)]
            }

        return json_response(pool.read(audit, revision, runs))

    @routes.get("/{audit}/typical", response_model=list[FrameOf])
    def list_typical(
        audit: str,
        label: Annotated[str, Query(max_length=MAX_ID)],
        without: Annotated[str, Query(max_length=MAX_ID, description="A video to leave out.")] = "",
        revision: Revision = None,
    ) -> Response:
        """Frames of other videos that show what a class usually looks like."""

        def frames(opened: OpenAudit) -> list[dict[str, Any]]:
            wanted = class_id(opened.audit, label)
            found = typical_frames(opened.audit, wanted, without=without, most=NUM_TYPICAL)
            return [{"video": one.video, "frame": one.frame} for one in found]

        return json_response(pool.read(audit, revision, frames))

    return routes


def _cameras(config: DatasetConfig, video: Video, folders: Folders) -> list[dict[str, Any]]:
    """Names of the cameras, the audited one first, and where in its file each begins."""
    views = views_of(config, video, folders)
    ordered = sorted(views, key=lambda name: views[name].source != video.source)
    return [{"name": n, "start_seconds": views[n].start_seconds} for n in ordered]


def _video_facts(opened: OpenAudit, video_id: str, settings: ServiceSettings) -> dict[str, Any]:
    video, audit = opened.video(video_id), opened.audit
    annotation = audit.annotation(video_id)
    config = audit.config.dataset
    folders = readable_folders(config, settings)
    showing = shown_as(video, annotation, folders)
    fps = annotation.timeline.fps or 1.0
    even_T = np.arange(annotation.num_frames) / fps
    is_even = np.abs(annotation.times_T - even_T).max(initial=0.0) < 0.25 / fps
    flags = table_rows(audit.flags(video=video_id)) if audit.has_flags else []
    if not is_even:
        check_size(annotation.num_frames)
    return {
        "video": video_id,
        "num_frames": annotation.num_frames,
        "duration": annotation.duration or float(annotation.times_T[-1]) + 1 / fps,
        "fps": fps,
        "start_seconds": video.start_seconds,
        "source_fps": annotation.source_fps or fps,
        "media": showing.media,
        "cameras": _cameras(config, video, folders) if showing.media == "video" else [],
        "note": showing.note,
        "preparing": showing.is_preparing,
        "labels": [
            (run.start, run.stop, int(annotation.labels_T[run.start]))
            for run in runs_of(annotation.labels_T)
        ],
        "times": None if is_even else rounded_lists(annotation.times_T),
        "threshold": opened.threshold(video_id),
        "flags": [
            flag | {"proposal": [edit.as_json() for edit in opened.proposal(flag)]}
            for flag in flags
        ],
        "known_errors": [
            {"start": e.span.start, "stop": e.span.stop, "kind": e.kind, "label": e.true_label}
            for e in (audit.known_errors if audit.has_flags else ())
            if e.video == video_id
        ],
    }
