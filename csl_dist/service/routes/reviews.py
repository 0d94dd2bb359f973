"""Routes of the review: decisions and progress."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from csl_dist.audit.reader import Audit
from csl_dist.certify.certificate import certificate
from csl_dist.certify.sample import sample_of
from csl_dist.errors import DataError
from csl_dist.review.assignment import Assignment, agreement
from csl_dist.review.edits import SpanEdit, without_slivers
from csl_dist.review.learning import NEXT, expected_in_next
from csl_dist.review.store import (
    ERRORS,
    Decision,
    NewReview,
    Review,
    SpanKey,
    State,
    is_disputed,
    state_of,
)
from csl_dist.service.audits import OpenAudit, OutdatedError
from csl_dist.service.context import ServiceContext
from csl_dist.service.encoding import json_response, review_row
from csl_dist.service.forms import AssignmentForm, Limit, ReviewForm, Revision
from csl_dist.service.listing import missed_errors, with_expected
from csl_dist.service.responses import (
    AssignmentFacts,
    CertificateFacts,
    Progress,
    ReviewPage,
    ReviewRow,
)
from csl_dist.service.selection import class_id, span_within
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
        found, newest = pool.read(
            audit,
            None,
            lambda opened: (opened.reviews.after(after, limit=limit), opened.audit.revision),
        )
        last = found[-1].number if found else after
        rows = [review_row(review) for review in found]
        return json_response({"reviews": rows, "last": last, "newest": newest})

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

    @routes.get("/{audit}/certificate", response_model=CertificateFacts)
    def show_certificate(
        audit: str,
        claim: Annotated[float, Query(gt=0, lt=1, description="Share of right seconds.")] = 0.97,
        revision: Revision = None,
    ) -> Response:
        """What the reviewed part of a certificate's sample says so far."""
        return json_response(pool.read(audit, revision, lambda opened: _certificate(opened, claim)))

    @routes.get("/{audit}/assignment", response_model=AssignmentFacts)
    def show_assignment(audit: str, revision: Revision = None) -> Response:
        """Who reviews which flags, and how far everybody is."""
        return json_response(pool.read(audit, revision, _assignment))

    @routes.post("/{audit}/assignment", response_model=AssignmentFacts, status_code=201)
    def assign(audit: str, form: AssignmentForm) -> Response:
        """Deals the flags out; replaces what was dealt out before."""
        rule = Assignment(reviewers=tuple(form.reviewers), by=form.by, double=form.double).as_json()

        def saved(opened: OpenAudit) -> dict[str, Any]:
            opened.reviews.put_assignment(rule)
            return _assignment(opened)

        return json_response(pool.read(audit, None, saved), status=201)

    return routes


def _new_review(audit: Audit, form: ReviewForm) -> NewReview:
    """A decision, checked against the audit that it was made on."""
    if form.revision not in (None, audit.revision):
        raise OutdatedError(
            f"the decision is on audit {form.revision}, but the newest is now {audit.revision}; "
            "load the page again"
        )
    labels_T = audit.annotation(form.video).labels_T
    num_frames = len(labels_T)
    span_within(form.start, form.stop, num_frames, form.video)
    if form.label is not None:
        class_id(audit, form.label)
    if form.new_stop is not None and form.new_stop > num_frames:
        raise DataError(f"new_stop is {form.new_stop}, but the video has {num_frames:,} frames")
    edits = tuple(SpanEdit(**edit.model_dump()) for edit in form.edits or ())
    for edit in edits:
        class_id(audit, edit.label)
        span_within(edit.start, edit.stop, num_frames, form.video)
    if form.decision is Decision.WRONG and form.label is not None:
        whole = SpanEdit(start=form.start, stop=form.stop, label=form.label)
        edits = (without_slivers(whole, labels_T),)
    values = form.model_dump() | {"revision": audit.revision, "edits": edits or None}
    return NewReview(**values)


def _progress(opened: OpenAudit) -> dict[str, Any]:
    flags = opened.audit.flags()
    spans = list(zip(flags.video, flags.start, flags.stop, strict=True))
    everywhere = opened.decisions.by_span()
    current = {span: everywhere[span] for span in spans if span in everywhere}
    is_open = [state_of(everywhere.get(span, ())) is State.UNDECIDED for span in spans]
    expected_N = opened.expected()[1]
    return progress(current, total=len(flags)) | {
        "missed": len(missed_errors(opened, everywhere)),
        "next_flags": min(NEXT, sum(is_open)),
        "next_errors": expected_in_next(expected_N, is_open),
        "last": opened.decisions.last,
    }


def _certificate(opened: OpenAudit, claim: float) -> dict[str, Any]:
    sample = sample_of(opened.audit)
    found = certificate(sample, opened.segments(), opened.decisions.by_span(), claim=claim)
    return {
        "sampled": len(sample.spans),
        "judged": found.judged,
        "right": 1 - found.wrong.share,
        "right_low": 1 - found.wrong.high,
        "right_high": 1 - found.wrong.low,
        "confidence": sample.confidence,
        "claim": claim,
        "still_needed": found.still_needed,
        "sentence": found.sentence(),
    }


def _assignment(opened: OpenAudit) -> dict[str, Any]:
    rule = opened.reviews.assignment()
    if rule is None:
        return {"reviewers": [], "by": None, "double": 0.0, "counts": {}, "done": {}}
    flags = with_expected(opened, opened.audit.flags())
    current = opened.decisions.by_span()
    counts, done = Counter[str](), Counter[str]()
    for video, start, stop, names in zip(
        flags.video, flags.start, flags.stop, flags.assigned, strict=True
    ):
        reviewed = {review.reviewer for review in current.get((video, start, stop), ())}
        counts.update(names)
        done.update(name for name in names if name in reviewed)
    return {**rule, "counts": counts, "done": done}


def progress(current: Mapping[SpanKey, Sequence[Review]], *, total: int) -> dict[str, Any]:
    """Counts of the last decision on each span, and the precision of the flags so far."""
    last = Counter(reviews[-1].decision for reviews in current.values())
    wrong, correct = sum(last[error] for error in ERRORS), last[Decision.CORRECT]
    agreed = agreement(current)
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
        "pairs": agreed.pairs,
        "agree": agreed.agree,
        "kappa": agreed.kappa,
    }


def wilson_interval(hits: int, total: int) -> tuple[float | None, float | None]:
    """Wilson's 95 % interval of a share; None if nothing was counted."""
    if not total:
        return None, None
    share, z = hits / total, NORMAL_95
    middle = (share + z**2 / (2 * total)) / (1 + z**2 / total)
    half = z * math.sqrt(share * (1 - share) / total + z**2 / (4 * total**2)) / (1 + z**2 / total)
    return max(0.0, middle - half), min(1.0, middle + half)
