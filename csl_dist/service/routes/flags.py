"""Routes of spans to review: lists of them, groups of similar ones, and what a threshold brings."""

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Response

from csl_dist.review.store import State, state_of
from csl_dist.service.audits import OpenAudit
from csl_dist.service.context import ServiceContext
from csl_dist.service.encoding import json_response
from csl_dist.service.forms import FlagsQuery, Revision
from csl_dist.service.listing import page_of_spans, with_expected
from csl_dist.service.responses import EffortPoint, FlagPage, Group

THRESHOLDS = tuple(np.arange(0, 1, 0.05).round(2).tolist())


def flag_routes(context: ServiceContext) -> APIRouter:
    """The flags of an audit."""
    routes = APIRouter(prefix="/api/audits", tags=["audits"])
    pool = context.pool

    @routes.get("/{audit}/flags", response_model=FlagPage)
    def list_flags(audit: str, query: Annotated[FlagsQuery, Query()]) -> Response:
        """Flagged spans, worst first, with the decisions on them; or segments without a flag."""
        page = pool.read(audit, query.revision, lambda opened: page_of_spans(opened, query))
        return json_response(page)

    @routes.get("/{audit}/groups", response_model=list[Group])
    def list_groups(audit: str, revision: Revision = None) -> Response:
        """Open flags of the same kind and labels, the largest groups first."""
        return json_response(pool.read(audit, revision, _groups))

    @routes.get("/{audit}/effort", response_model=list[EffortPoint])
    def show_effort(audit: str, revision: Revision = None) -> Response:
        """How many minutes a threshold costs, and how many errors it is expected to bring."""
        return json_response(pool.read(audit, revision, _effort))

    return routes


def _groups(opened: OpenAudit) -> list[dict[str, Any]]:
    findings = with_expected(opened)
    flags = findings[findings.is_flag]
    current = opened.decisions.by_span()
    spans = zip(flags.video, flags.start, flags.stop, strict=True)
    is_open = [state_of(current.get(span, ())) is State.UNDECIDED for span in spans]
    grouped = flags[np.array(is_open, dtype=bool)].groupby(["kind", "label", "suggested"])
    groups = [
        {
            "kind": kind,
            "label": label,
            "suggested": suggested,
            "flags": len(own),
            "expected": float(own.expected.mean()),
        }
        for (kind, label, suggested), own in grouped
        if len(own) > 1
    ]
    return sorted(groups, key=lambda group: -group["flags"])


def _effort(opened: OpenAudit) -> list[dict[str, Any]]:
    """What the flags bring, and then all findings from each probability on."""
    findings = opened.findings
    _, expected_N = opened.expected()
    seconds_N = (findings.stop_seconds - findings.start_seconds).to_numpy(dtype=float)
    is_flag_N = findings.is_flag.to_numpy(dtype=bool)
    chosen_by = [(None, is_flag_N), *((least, expected_N >= least) for least in THRESHOLDS)]
    return [
        {
            "min_expected": least,
            "flags": int(chosen_N.sum()),
            "below": int((chosen_N & ~is_flag_N).sum()),
            "minutes": float(seconds_N[chosen_N].sum() / 60),
            "errors": float(expected_N[chosen_N].sum()),
        }
        for least, chosen_N in chosen_by
    ]
