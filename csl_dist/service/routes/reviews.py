"""Routes of the review: decisions and progress."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from starlette.exceptions import HTTPException

from csl_dist.errors import DataError
from csl_dist.review.annotators import annotator_records
from csl_dist.review.assignment import Assignment, agreement
from csl_dist.review.edits import SpanEdit, without_slivers
from csl_dist.review.learning import NEXT, expected_in_next
from csl_dist.review.reliability import wilson_interval
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
from csl_dist.service.forms import AssignmentForm, Limit, ReviewEdit, ReviewForm, Revision
from csl_dist.service.guard import REVIEWER
from csl_dist.service.listing import missed_errors, with_expected
from csl_dist.service.responses import (
    AnnotatorRow,
    AssignmentFacts,
    Progress,
    ReviewPage,
    ReviewRow,
)
from csl_dist.service.selection import class_id, span_within
from csl_dist.service.settings import MAX_PAGE
from csl_dist.storage.tables import table_rows
from csl_dist.types import ErrorKind


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
    def decide(audit: str, form: ReviewForm, request: Request) -> Response:
        """Saves a decision; the same key twice counts once. `accept` saves what a flag proposes."""
        name = request.scope.get(REVIEWER)
        if name is not None and form.reviewer != name:
            raise HTTPException(
                403, f"the decision is by {form.reviewer!r}, but the service knows you as {name!r}"
            )

        def saved(opened: OpenAudit) -> Review:
            opened.video(form.video)
            return opened.reviews.append(_new_review(opened, form))

        return json_response(review_row(pool.read(audit, None, saved)), status=201)

    @routes.get("/{audit}/progress", response_model=Progress)
    def show_progress(audit: str, revision: Revision = None) -> Response:
        """How many flags are decided, and how many of them found a wrong label."""
        return json_response(pool.read(audit, revision, _progress))

    @routes.get("/{audit}/annotators", response_model=list[AnnotatorRow])
    def list_annotators(audit: str, request: Request, revision: Revision = None) -> Response:
        """How often decisions went against each annotator's labels; for those who may see it."""
        if not context.settings.may_see_annotators(request.scope.get(REVIEWER)):
            raise HTTPException(
                403, "only those whom `csl serve --lead NAME` names may see how annotators fared"
            )

        def rows(opened: OpenAudit) -> list[dict[str, Any]]:
            found = annotator_records(opened.audit, opened.decisions.by_span())
            return [asdict(record) for record in found]

        return json_response(pool.read(audit, revision, rows))

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


def _new_review(opened: OpenAudit, form: ReviewForm) -> NewReview:
    """A decision, checked against the audit that it was made on."""
    audit = opened.audit
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
    if form.accept:
        form = form.model_copy(update=_accepted(opened, form))
    edits = tuple(SpanEdit(**edit.model_dump()) for edit in form.edits or ())
    for edit in edits:
        class_id(audit, edit.label)
        span_within(edit.start, edit.stop, num_frames, form.video)
    if form.decision is Decision.WRONG and form.label is not None:
        whole = SpanEdit(start=form.start, stop=form.stop, label=form.label)
        edits = (without_slivers(whole, labels_T),)
    values = form.model_dump(exclude={"accept"})
    values |= {"revision": audit.revision, "edits": edits or None}
    return NewReview(**values)


def _accepted(opened: OpenAudit, form: ReviewForm) -> dict[str, Any]:
    """The decision that what a flag proposes is right."""
    found = opened.findings
    is_it = (found.video == form.video) & (found.start == form.start) & (found.stop == form.stop)
    rows = table_rows(found[is_it])
    if not rows:
        raise DataError(
            f"frames {form.start} to {form.stop} of {form.video!r} are no flag that could be "
            "accepted; give a decision"
        )
    [flag] = rows[:1]
    edits = opened.proposal(flag)
    if not edits and flag["kind"] != ErrorKind.DISORDER:
        raise DataError("the flag proposes nothing that could be accepted; give a decision")
    if not edits:
        return {"decision": Decision.ORDER}
    if not flag["fix"]:
        return {"decision": Decision.WRONG, "label": edits[0].label}
    return {
        "decision": Decision.EDITED,
        "edits": [ReviewEdit(**edit.as_json()) for edit in edits],
    }


def _progress(opened: OpenAudit) -> dict[str, Any]:
    flags = opened.audit.flags()
    spans = list(zip(flags.video, flags.start, flags.stop, strict=True))
    everywhere = opened.decisions.by_span()
    current = {span: everywhere[span] for span in spans if span in everywhere}
    is_open = [state_of(everywhere.get(span, ())) is State.UNDECIDED for span in spans]
    expected_N = opened.expected()[1][: len(flags)]
    return progress(current, total=len(flags)) | {
        "missed": len(missed_errors(opened, everywhere)),
        "next_flags": min(NEXT, sum(is_open)),
        "next_errors": expected_in_next(expected_N, is_open),
        "last": opened.decisions.last,
    }


def _assignment(opened: OpenAudit) -> dict[str, Any]:
    rule = opened.reviews.assignment()
    if rule is None:
        return {"reviewers": [], "by": None, "double": 0.0, "counts": {}, "done": {}}
    findings = with_expected(opened)
    flags = findings[findings.is_flag]
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
    sure = wrong + correct
    low, high = wilson_interval(wrong, sure) if sure else (None, None)
    return {
        "total": total,
        "decided": len(current),
        "disputed": sum(is_disputed(reviews) for reviews in current.values()),
        "correct": correct,
        "wrong": wrong,
        "unsure": last[Decision.UNSURE],
        "precision": wrong / sure if sure else None,
        "precision_low": low,
        "precision_high": high,
        "reviewers": dict(Counter(r.reviewer for reviews in current.values() for r in reviews)),
        "pairs": agreed.pairs,
        "agree": agreed.agree,
        "kappa": agreed.kappa,
    }
