"""Routes of the review: decisions and progress."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from csl_dist.audit.reader import Audit
from csl_dist.errors import DataError
from csl_dist.review.store import (
    Decision,
    NewReview,
    Review,
    SpanKey,
    is_disputed,
)
from csl_dist.service.audits import NotFoundError, OpenAudit, OutdatedError
from csl_dist.service.context import ServiceContext
from csl_dist.service.encoding import json_response, review_row
from csl_dist.service.forms import Limit, ReviewForm, Revision
from csl_dist.service.responses import Progress, ReviewPage, ReviewRow
from csl_dist.service.selection import class_id
from csl_dist.service.settings import MAX_PAGE

NORMAL_95 = 1.96


def review_routes(context: ServiceContext) -> APIRouter:
    """Decisions and progress, below /api/audits."""
    routes = APIRouter(prefix="/api/audits", tags=["reviews"])
    pool = context.pool

    @routes.get("/{audit}/reviews", response_model=ReviewPage)
    def list_reviews(
        audit: str,
        after: Annotated[
            int, Query(ge=0, le=2**31 - 1, description="Only decisions after this number.")
        ] = 0,
        limit: Limit = MAX_PAGE,
    ) -> Response:
        """The whole history of decisions, oldest first; nothing is ever removed from it."""
        found = pool.read(audit, None, lambda opened: opened.reviews.after(after, limit=limit))
        last = found[-1].number if found else after
        return json_response({"reviews": [review_row(review) for review in found], "last": last})

    @routes.post("/{audit}/reviews", response_model=ReviewRow, status_code=201)
    def decide(audit: str, form: ReviewForm) -> Response:
        """Saves a decision; the same key twice counts once."""

        def saved(opened: OpenAudit) -> Review:
            opened.video(form.video)
            return opened.reviews.append(_new_review(opened.audit, form))

        return json_response(review_row(pool.read(audit, None, saved)), status=201)

    @routes.get("/{audit}/progress", response_model=Progress)
    def show_progress(audit: str, revision: Revision = None) -> Response:
        """How many flags are decided, and how many of them found a wrong label."""
        return json_response(pool.read(audit, revision, _progress))

    return routes


def _new_review(audit: Audit, form: ReviewForm) -> NewReview:
    """A decision, checked against the audit that it was made on."""
    if form.revision not in (None, audit.revision):
        raise OutdatedError(
            f"the decision is on audit {form.revision}, but the newest is now {audit.revision}; "
            "load the page again"
        )
    flags = audit.flags(video=form.video)
    if not ((flags.start == form.start) & (flags.stop == form.stop)).any():
        raise NotFoundError(
            f"video {form.video!r} has no flag from frame {form.start} to {form.stop}; if the "
            "run was audited again, load the page again"
        )
    if form.label is not None:
        class_id(audit, form.label)
    num_frames = audit.annotation(form.video).num_frames
    if form.new_stop is not None and form.new_stop > num_frames:
        raise DataError(f"new_stop is {form.new_stop}, but the video has {num_frames:,} frames")
    return NewReview(**form.model_dump() | {"revision": audit.revision})


def _progress(opened: OpenAudit) -> dict[str, Any]:
    flags = opened.audit.flags()
    spans = set(zip(flags.video, flags.start, flags.stop, strict=True))
    current = {
        span: reviews for span, reviews in opened.decisions.by_span().items() if span in spans
    }
    return progress(current, total=len(flags)) | {"last": opened.decisions.last}


def progress(current: Mapping[SpanKey, Sequence[Review]], *, total: int) -> dict[str, Any]:
    """Counts of the last decision on each span, and the precision of the flags so far."""
    last = Counter(reviews[-1].decision for reviews in current.values())
    wrong, correct = last[Decision.WRONG] + last[Decision.BOUNDARY], last[Decision.CORRECT]
    low, high = wilson_interval(wrong, wrong + correct)
    return {
        "total": total,
        "decided": len(current),
        "disputed": sum(is_disputed(reviews) for reviews in current.values()),
        "correct": correct,
        "wrong": wrong,
        "unsure": last[Decision.UNSURE],
        "precision": wrong / (wrong + correct) if wrong + correct else None,
        "precision_low": low,
        "precision_high": high,
        "reviewers": dict(Counter(r.reviewer for reviews in current.values() for r in reviews)),
    }


def wilson_interval(hits: int, total: int) -> tuple[float | None, float | None]:
    """Wilson's 95 % interval of a share; None if nothing was counted."""
    if not total:
        return None, None
    share, z = hits / total, NORMAL_95
    middle = (share + z**2 / (2 * total)) / (1 + z**2 / total)
    half = z * math.sqrt(share * (1 - share) / total + z**2 / (4 * total**2)) / (1 + z**2 / total)
    return max(0.0, middle - half), min(1.0, middle + half)
