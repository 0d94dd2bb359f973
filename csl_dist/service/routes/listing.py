"""Routes that list what there is: runs, their videos, and the flags on them."""

from typing import Annotated, Any

import numpy as np
import pandas as pd
from fastapi import APIRouter, Query, Response

from csl_dist.audit.reader import Audit
from csl_dist.errors import CslError
from csl_dist.report.drawing import class_colour
from csl_dist.report.page import calibration_sentence
from csl_dist.review.store import State, state_of
from csl_dist.service.answers import (
    AuditEntry,
    AuditFacts,
    FlagPage,
    StageLine,
    VideoFacts,
    VideoPage,
)
from csl_dist.service.audits import AuditPool, OpenAudit
from csl_dist.service.forms import Limit, Offset, Revision, VideoId
from csl_dist.service.packing import json_answer, plain, require_room
from csl_dist.service.routes.media import shown_as
from csl_dist.service.routes.reviewing import review_row
from csl_dist.service.settings import MAX_ID
from csl_dist.types import ErrorKind, Split, runs_of


def listing_routes(pool: AuditPool) -> APIRouter:
    """What there is to read, below /api/audits."""
    routes = APIRouter(prefix="/api/audits", tags=["audits"])

    @routes.get("", response_model=list[AuditEntry])
    def list_audits() -> Response:
        """All runs that are served."""
        return json_answer([_entry(pool, audit, root) for audit, root in pool.ids().items()])

    @routes.get("/{audit}", response_model=AuditFacts)
    def describe_audit(audit: str, revision: Revision = None) -> Response:
        """Classes, scorers, revisions, and what an unfinished run still lacks."""
        return json_answer(pool.read(audit, revision, lambda opened: _facts(audit, opened.audit)))

    @routes.get("/{audit}/status", response_model=list[StageLine])
    def show_status(audit: str) -> Response:
        """Units done of all, by stage."""
        from csl_dist.audit.status import run_status  # takes torch along

        lines = run_status(pool.root(audit))
        return json_answer([{"stage": s.stage, "done": s.done, "total": s.total} for s in lines])

    @routes.get("/{audit}/videos", response_model=VideoPage)
    def list_videos(
        audit: str, offset: Offset = 0, limit: Limit = 100, revision: Revision = None
    ) -> Response:
        """Audited videos with their worst score, worst first."""
        table = pool.read(audit, revision, lambda opened: opened.videos())
        rows = _rows(table.iloc[offset : offset + limit])
        return json_answer({"total": len(table), "offset": offset, "videos": rows})

    @routes.get("/{audit}/video", response_model=VideoFacts)
    def describe_video(audit: str, video: VideoId, revision: Revision = None) -> Response:
        """A video's labels, times and flags, and whether it can be shown."""
        return json_answer(pool.read(audit, revision, lambda opened: _video(opened, video)))

    @routes.get("/{audit}/flags", response_model=FlagPage)
    def list_flags(
        audit: str,
        video: Annotated[str | None, Query(max_length=MAX_ID)] = None,
        label: Annotated[
            str | None, Query(max_length=MAX_ID, description="Annotated or suggested.")
        ] = None,
        kind: ErrorKind | None = None,
        min_score: Annotated[float | None, Query(allow_inf_nan=False)] = None,
        from_seconds: Annotated[float | None, Query(allow_inf_nan=False)] = None,
        to_seconds: Annotated[float | None, Query(allow_inf_nan=False)] = None,
        text: Annotated[
            str, Query(max_length=MAX_ID, description="Words of the video's id, labels or reason.")
        ] = "",
        state: State | None = None,
        offset: Offset = 0,
        limit: Limit = 100,
        revision: Revision = None,
    ) -> Response:
        """Flagged spans, worst first, with the decisions on them."""

        def page(opened: OpenAudit) -> dict[str, Any]:
            if video is not None:
                opened.video(video)
            table = opened.audit.flags(
                video=video,
                label=label,
                kind=kind,
                min_score=min_score,
                from_seconds=from_seconds,
                to_seconds=to_seconds,
            )
            return _flag_page(opened, _with_words(table, text), state, offset, limit)

        return json_answer(pool.read(audit, revision, page))

    return routes


def _entry(pool: AuditPool, audit_id: str, root: str) -> dict[str, Any]:
    """A run in the list of all; one that can't be read yet says why."""

    def ready(opened: OpenAudit) -> dict[str, Any]:
        audit = opened.audit
        return {
            "id": audit_id,
            "root": root,
            "ready": True,
            "revision": audit.revision,
            "videos": _num_audited(audit),
            "flags": _num_flags(audit),
        }

    try:
        return pool.read(audit_id, None, ready)
    except CslError as error:
        return {"id": audit_id, "root": root, "ready": False, "note": str(error)}


def _facts(audit_id: str, audit: Audit) -> dict[str, Any]:
    return {
        "id": audit_id,
        "root": audit.layout.root.url,
        "revision": audit.revision,
        "revisions": audit.revisions,
        "classes": [{"name": n, "colour": class_colour(i)} for i, n in enumerate(audit.classes)],
        "scorers": audit.scorers,
        "scorer": audit.scorer,
        "score": audit.verdict.score if audit.has_flags else None,
        "deciding_scorer": audit.verdict.scorer if audit.has_flags else None,
        "num_videos": _num_audited(audit),
        "num_flags": _num_flags(audit),
        "missing": audit.missing(),
        "calibration": calibration_sentence(audit),
    }


def _num_audited(audit: Audit) -> int:
    return sum(video.split is Split.AUDIT for video in audit.held_out_videos())


def _num_flags(audit: Audit) -> int | None:
    return len(audit.flags()) if audit.has_flags else None


def _video(opened: OpenAudit, video_id: str) -> dict[str, Any]:
    video, audit = opened.video(video_id), opened.audit
    annotation = audit.annotation(video_id)
    media, note = shown_as(video, annotation)
    intervals = np.diff(annotation.times_T)
    fps = float(1 / np.median(intervals)) if len(intervals) else annotation.source_fps or 1.0
    even_T = np.arange(annotation.num_frames) / fps
    is_even = np.abs(annotation.times_T - even_T).max(initial=0.0) < 0.25 / fps
    if not is_even:
        require_room(annotation.num_frames)
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
        "times": None if is_even else plain(annotation.times_T),
        "threshold": opened.threshold(video_id),
        "flags": _rows(audit.flags(video=video_id)) if audit.has_flags else [],
        "known_errors": [
            {"start": e.span.start, "stop": e.span.stop, "kind": e.kind, "label": e.true_label}
            for e in (audit.known_errors if audit.has_flags else ())
            if e.video == video_id
        ],
    }


def _flag_page(
    opened: OpenAudit, table: pd.DataFrame, state: State | None, offset: int, limit: int
) -> dict[str, Any]:
    current = opened.board.current()
    spans = list(zip(table.video, table.start, table.stop, strict=True))
    states = [state_of(current.get(span, [])) for span in spans]
    chosen = [i for i, own in enumerate(states) if state in (None, own)]
    shown = chosen[offset : offset + limit]
    rows = _rows(table.iloc[shown])
    for row, i in zip(rows, shown, strict=True):
        row |= {
            "state": states[i],
            "reviews": [review_row(review) for review in current.get(spans[i], [])],
        }
    return {"total": len(chosen), "offset": offset, "flags": rows}


def _with_words(table: pd.DataFrame, text: str) -> pd.DataFrame:
    """Rows whose video, labels and reason hold all words of a text."""
    words = text.lower().split()
    if not words:
        return table
    joined = (table.video + " " + table.label + " " + table.suggested + " " + table.why).str.lower()
    fits = np.ones(len(table), dtype=bool)
    for word in words:
        fits &= joined.str.contains(word, regex=False).to_numpy(dtype=bool)
    return table[fits]


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of a table with null where a number is missing."""
    return [
        {str(name): None if isinstance(v, float) and np.isnan(v) else v for name, v in row.items()}
        for row in table.to_dict("records")
    ]
