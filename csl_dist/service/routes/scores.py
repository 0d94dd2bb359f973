"""Routes of scores: of a video's frames, under its labels or others."""

from typing import Annotated

import numpy as np
from fastapi import APIRouter, Query, Response

from csl_dist.audit.reader import Audit
from csl_dist.measures import DECIDING, SCORE_NAMES
from csl_dist.report.shrink import column_starts, highest_in_columns
from csl_dist.service.audits import NotFoundError, OpenAudit
from csl_dist.service.context import ServiceContext
from csl_dist.service.encoding import (
    ARRAYS,
    arrow_response,
    check_size,
    json_response,
    npy_response,
    rounded_lists,
)
from csl_dist.service.forms import Form, Revision, ScoresQuery, ScoresUnderLabels
from csl_dist.service.responses import Scores
from csl_dist.service.selection import requested_labels, requested_span, span_within
from csl_dist.types import FloatArray, IntArray, Span


def score_routes(context: ServiceContext) -> APIRouter:
    """Scores of frames, below /api/audits."""
    routes = APIRouter(prefix="/api/audits", tags=["audits"])
    pool = context.pool

    @routes.get("/{audit}/scores", response_model=Scores, responses=ARRAYS)
    def read_scores(audit: str, query: Annotated[ScoresQuery, Query()]) -> Response:
        """Scores of a video's frames; higher is more suspicious."""
        given = query.model_dump(exclude={"name", "revision"})
        under = ScoresUnderLabels(names=query.name, **given)
        return pool.read(audit, query.revision, lambda opened: _scores(opened, under))

    @routes.post("/{audit}/scores", response_model=Scores, responses=ARRAYS)
    def score_under_labels(
        audit: str, query: ScoresUnderLabels, revision: Revision = None
    ) -> Response:
        """The same under labels that the request gives; no model runs for this."""
        return pool.read(audit, revision, lambda opened: _scores(opened, query))

    return routes


def _scores(opened: OpenAudit, query: ScoresUnderLabels) -> Response:
    opened.video(query.video)
    audit, scorer = opened.audit, opened.scorer(query.scorer)
    annotation = audit.annotation(query.video, scorer=scorer)
    span = requested_span(query, annotation.num_frames)
    labels_T = requested_labels(audit, annotation, query)
    num_columns = min(len(span), query.columns or len(span))
    check_size(num_columns * len(query.names))
    shown = {}
    for name in query.names:
        score_T = _score(audit, query.video, name, labels_T, scorer)
        shown[name] = highest_in_columns(score_T[span.start : span.stop], num_columns)
    threshold = opened.threshold(query.video)
    if query.form is Form.NPY:
        return npy_response(np.stack(list(shown.values())))
    if query.form is Form.ARROW:
        firsts = span.start + column_starts(len(span), num_columns)
        columns = {"frame": firsts, "seconds": annotation.times_T[firsts], **shown}
        return arrow_response(columns, {"video": query.video, "threshold": threshold})
    change = None
    if query.of is not None:
        start, stop = query.of
        of = span_within(start, stop, annotation.num_frames, query.video)
        change = {
            "before": _mean_deciding(audit, query.video, of, None),
            "after": _mean_deciding(audit, query.video, of, labels_T),
            "threshold": threshold,
        }
    return json_response(
        {
            "video": query.video,
            "start": span.start,
            "stop": span.stop,
            "threshold": threshold,
            "scores": {name: rounded_lists(score) for name, score in shown.items()},
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
    """The mean deciding score of a span; None if none of its frames has a label."""
    score_T = audit.deciding_score(video, labels=labels_T)[span.start : span.stop]
    known_T = score_T[~np.isnan(score_T)]
    return float(known_T.mean()) if len(known_T) else None
