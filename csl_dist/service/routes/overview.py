"""Routes of the dataset as a whole: what is said of it, and its certificate."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from csl_dist.certify.certificate import Certificate, certificate
from csl_dist.certify.drawing import first_sample, larger_sample
from csl_dist.certify.page import render
from csl_dist.certify.sample import put_sample, read_sample, sample_of
from csl_dist.report.overview import CLAIM, overview
from csl_dist.review.reliability import reliability
from csl_dist.service.audits import OpenAudit
from csl_dist.service.context import ServiceContext
from csl_dist.service.encoding import json_response
from csl_dist.service.forms import Revision, SampleForm
from csl_dist.service.responses import CertificateFacts, OverviewFacts

Claim = Annotated[float, Query(gt=0, lt=1, description="Share of right seconds.")]


def overview_routes(context: ServiceContext) -> APIRouter:
    """The dataset as a whole, below /api/audits."""
    routes = APIRouter(prefix="/api/audits", tags=["audits"])
    pool = context.pool

    @routes.get("/{audit}/overview", response_model=OverviewFacts)
    def show_overview(audit: str, revision: Revision = None) -> Response:
        """Exchanged labels, conventions, lint, annotators, and whether probabilities hold."""
        return json_response(pool.read(audit, revision, _overview))

    @routes.get("/{audit}/certificate", response_model=CertificateFacts)
    def show_certificate(audit: str, claim: Claim = CLAIM, revision: Revision = None) -> Response:
        """What the reviewed part of a certificate's sample says so far."""
        return json_response(
            pool.read(audit, revision, lambda opened: _facts(_certificate(opened, claim)))
        )

    @routes.post("/{audit}/certificate", response_model=CertificateFacts, status_code=201)
    def draw_sample(audit: str, form: SampleForm) -> Response:
        """Draws segments for a certificate at random; adds to the sample where there is one."""

        def drawn(opened: OpenAudit) -> dict[str, Any]:
            sample = read_sample(opened.audit)
            segments = opened.segments()
            if sample is None:
                sample = first_sample(
                    segments,
                    seed=form.seed,
                    within_seconds=form.within_seconds,
                    confidence=form.confidence,
                    num_reviews=form.reviews,
                )
            else:
                current = opened.decisions.by_span()
                sample = larger_sample(sample, segments, current, num_more=form.reviews)
            put_sample(opened.audit, sample)
            return _facts(_certificate(opened, form.claim))

        return json_response(pool.read(audit, None, drawn), status=201)

    @routes.get("/{audit}/certificate/page", response_class=Response)
    def download_certificate(
        audit: str, claim: Claim = CLAIM, revision: Revision = None
    ) -> Response:
        """The certificate as a page to print, with method and seed."""

        def page(opened: OpenAudit) -> str:
            found = _certificate(opened, claim)
            spans = set(found.sample.spans)
            current = opened.decisions.by_span()
            names = {r.reviewer for span, held in current.items() if span in spans for r in held}
            return render(opened.audit, found, sorted(names))

        # Downloaded, not shown: its style stands in the page, which the service's pages may not.
        headers = {"content-disposition": 'attachment; filename="certificate.html"'}
        content = pool.read(audit, revision, page)
        return Response(content, media_type="text/html; charset=utf-8", headers=headers)

    return routes


def _overview(opened: OpenAudit) -> dict[str, Any]:
    points = reliability(opened.audit, opened.decisions.by_span())
    found = overview(opened.audit, opened.linted())
    return asdict(found) | {"reliability": [asdict(point) for point in points]}


def _certificate(opened: OpenAudit, claim: float) -> Certificate:
    sample = sample_of(opened.audit)
    return certificate(sample, opened.segments(), opened.decisions.by_span(), claim=claim)


def _facts(found: Certificate) -> dict[str, Any]:
    return {
        "sampled": len(found.sample.spans),
        "judged": found.judged,
        "right": 1 - found.wrong.share,
        "right_low": 1 - found.wrong.high,
        "right_high": 1 - found.wrong.low,
        "confidence": found.sample.confidence,
        "claim": found.claim,
        "still_needed": found.still_needed,
        "sentence": found.sentence(),
    }
