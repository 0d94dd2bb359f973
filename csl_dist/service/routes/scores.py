"""Routes of scores: of a video's frames, under its labels or others."""

from typing import Annotated

import numpy as np
from fastapi import APIRouter, Query, Response

from csl_dist.audit.reader import Audit
from csl_dist.measures import SCORE_NAMES
from csl_dist.report.shrink import column_starts, highest_in_columns
from csl_dist.service.answers import Scores
from csl_dist.service.asked import asked_labels, asked_span, span_within
from csl_dist.service.audits import AuditPool, NotFoundError, OpenAudit
from csl_dist.service.forms import Form, Revision, ScoresQuery, ScoresUnderLabels
from csl_dist.service.packing import (
    ARRAYS,
    arrow_answer,
    json_answer,
    npy_answer,
    plain,
    require_room,
)
from csl_dist.types import FloatArray, IntArray, Span

DECIDING = "deciding"
"""Names the score that is compared with the threshold."""


def score_routes(pool: AuditPool) -> APIRouter:
    """Scores of frames, below /api/audits."""
    routes = APIRouter(prefix="/api/audits", tags=["audits"])

    @routes.get("/{audit}/scores", response_model=Scores, responses=ARRAYS)
    def read_scores(audit: str, asked: Annotated[ScoresQuery, Query()]) -> Response:
        """Scores of a video's frames; higher is more suspicious."""
        given = asked.model_dump(exclude={"name", "revision"})
        under = ScoresUnderLabels(names=asked.name, **given)
        return pool.read(audit, asked.revision, lambda opened: _answer(opened, under))

    @routes.post("/{audit}/scores", response_model=Scores, responses=ARRAYS)
    def score_under_labels(
        audit: str, asked: ScoresUnderLabels, revision: Revision = None
    ) -> Response:
        """The same under labels that the request gives: no model is needed for that."""
        return pool.read(audit, revision, lambda opened: _answer(opened, asked))

    return routes


def _answer(opened: OpenAudit, asked: ScoresUnderLabels) -> Response:
    opened.video(asked.video)
    audit, scorer = opened.audit, opened.scorer(asked.scorer)
    annotation = audit.annotation(asked.video, scorer=scorer)
    span = asked_span(asked, annotation.num_frames)
    labels_T = asked_labels(audit, annotation, asked)
    num_columns = min(len(span), asked.columns or len(span))
    require_room(num_columns * len(asked.names))
    shown = {}
    for name in asked.names:
        score_T = _score(audit, asked.video, name, labels_T, scorer)
        shown[name] = highest_in_columns(score_T[span.start : span.stop], num_columns)
    threshold = opened.threshold(asked.video)
    if asked.form is Form.NPY:
        return npy_answer(np.stack(list(shown.values())))
    if asked.form is Form.ARROW:
        firsts = span.start + column_starts(len(span), num_columns)
        columns = {"frame": firsts, "seconds": annotation.times_T[firsts], **shown}
        return arrow_answer(columns, {"video": asked.video, "threshold": threshold})
    change = None
    if asked.of is not None:
        start, stop = asked.of
        of = span_within(start, stop, annotation.num_frames, asked.video)
        change = {
            "before": _mean_deciding(audit, asked.video, of, None),
            "after": _mean_deciding(audit, asked.video, of, labels_T),
            "threshold": threshold,
        }
    return json_answer(
        {
            "video": asked.video,
            "start": span.start,
            "stop": span.stop,
            "threshold": threshold,
            "scores": {name: plain(score) for name, score in shown.items()},
            "change": change,
        }
    )


def _score(
    audit: Audit, video: str, name: str, labels_T: IntArray | None, scorer: str
) -> FloatArray:
    if name == DECIDING:
        return audit.deciding_score(video, labels=labels_T)
    if name not in SCORE_NAMES:
        raise NotFoundError(
            f"there is no score {name!r}; there are {DECIDING}, {', '.join(SCORE_NAMES)}"
        )
    return audit.score(video, name, labels=labels_T, scorer=scorer)


def _mean_deciding(audit: Audit, video: str, span: Span, labels_T: IntArray | None) -> float | None:
    """The mean deciding score of a span; None where none of its frames has a label."""
    score_T = audit.deciding_score(video, labels=labels_T)[span.start : span.stop]
    known_T = score_T[~np.isnan(score_T)]
    return float(known_T.mean()) if len(known_T) else None
