"""The route of flags: filtered, in pages, with the decisions on them."""

from typing import Annotated, Any

import numpy as np
import pandas as pd
from fastapi import APIRouter, Query, Response

from csl_dist.review.store import State, state_of
from csl_dist.service.audits import OpenAudit
from csl_dist.service.context import ServiceContext
from csl_dist.service.encoding import json_response, review_row, table_rows
from csl_dist.service.forms import Limit, Offset, Revision
from csl_dist.service.responses import FlagPage
from csl_dist.service.settings import MAX_ID
from csl_dist.types import ErrorKind


def flag_routes(context: ServiceContext) -> APIRouter:
    """The flags of an audit."""
    routes = APIRouter(prefix="/api/audits", tags=["audits"])
    pool = context.pool

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
            return _flag_page(opened, _matching(table, text), state, offset, limit)

        return json_response(pool.read(audit, revision, page))

    return routes


def _flag_page(
    opened: OpenAudit, table: pd.DataFrame, state: State | None, offset: int, limit: int
) -> dict[str, Any]:
    current = opened.decisions.by_span()
    spans = list(zip(table.video, table.start, table.stop, strict=True))
    states = [state_of(current.get(span, [])) for span in spans]
    matching = [i for i, own in enumerate(states) if state in (None, own)]
    shown = matching[offset : offset + limit]
    rows = table_rows(table.iloc[shown])
    for row, i in zip(rows, shown, strict=True):
        row |= {
            "state": states[i],
            "reviews": [review_row(review) for review in current.get(spans[i], [])],
        }
    return {"total": len(matching), "offset": offset, "flags": rows}


def _matching(table: pd.DataFrame, text: str) -> pd.DataFrame:
    """Rows whose video, labels and reason contain all words of a text."""
    words = text.lower().split()
    if not words:
        return table
    joined = (table.video + " " + table.label + " " + table.suggested + " " + table.why).str.lower()
    is_match = np.ones(len(table), dtype=bool)
    for word in words:
        is_match &= joined.str.contains(word, regex=False).to_numpy(dtype=bool)
    return table[is_match]
