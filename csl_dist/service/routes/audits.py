"""Routes of audits: which there are, what they contain, how far they are."""

from typing import Any

from fastapi import APIRouter, Response

from csl_dist.audit.reader import Audit
from csl_dist.audit.status import run_status
from csl_dist.certify.sample import read_sample
from csl_dist.errors import CslError
from csl_dist.report.drawing import class_colour
from csl_dist.report.page import calibration_sentence
from csl_dist.service.audits import AuditPool, OpenAudit
from csl_dist.service.context import ServiceContext
from csl_dist.service.encoding import json_response
from csl_dist.service.forms import Revision
from csl_dist.service.responses import AuditEntry, AuditFacts, StageLine
from csl_dist.types import Split


def audit_routes(context: ServiceContext) -> APIRouter:
    """The list of audits, and the facts of one."""
    routes = APIRouter(prefix="/api/audits", tags=["audits"])
    pool = context.pool

    @routes.get("", response_model=list[AuditEntry])
    def list_audits() -> Response:
        """All runs that are served."""
        return json_response([_entry(pool, audit, root) for audit, root in pool.ids().items()])

    @routes.get("/{audit}", response_model=AuditFacts)
    def describe_audit(audit: str, revision: Revision = None) -> Response:
        """Classes, scorers, revisions, and what is missing if the run is not finished."""
        return json_response(pool.read(audit, revision, lambda opened: _facts(audit, opened.audit)))

    @routes.get("/{audit}/status", response_model=list[StageLine])
    def show_status(audit: str) -> Response:
        """Finished units and all units, by stage."""
        lines = run_status(pool.root(audit))
        return json_response([{"stage": s.stage, "done": s.done, "total": s.total} for s in lines])

    return routes


def _entry(pool: AuditPool, audit_id: str, root: str) -> dict[str, Any]:
    """A run in the list; one that can't be read yet says why."""

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
        "root": audit.paths.root.url,
        "revision": audit.revision,
        "revisions": audit.revisions,
        "classes": [{"name": n, "colour": class_colour(i)} for i, n in enumerate(audit.classes)],
        "class_order": audit.class_order,
        "kinds": sorted(audit.flags().kind.unique()) if audit.has_flags else [],
        "annotators": _values(audit, "annotator"),
        "procedures": _values(audit, "procedure"),
        "scorers": audit.scorers,
        "scorer": audit.scorer,
        "score": audit.settings.deciding if audit.has_flags else None,
        "deciding_scorer": audit.settings.scorer if audit.has_flags else None,
        "num_videos": _num_audited(audit),
        "num_flags": _num_flags(audit),
        "num_sampled": len(sample.spans) if (sample := read_sample(audit)) is not None else 0,
        "missing": audit.missing(),
        "rests_on": audit.rests_on,
        "calibration": calibration_sentence(audit),
    }


def _values(audit: Audit, name: str) -> list[str]:
    """What the audited videos have as their annotator or procedure."""
    found = {getattr(video, name) for video in audit.held_out_videos()}
    return sorted(value for value in found if value)


def _num_audited(audit: Audit) -> int:
    return sum(video.split is Split.AUDIT for video in audit.held_out_videos())


def _num_flags(audit: Audit) -> int | None:
    return len(audit.flags()) if audit.has_flags else None
