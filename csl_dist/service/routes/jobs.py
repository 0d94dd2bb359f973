"""The route that starts a run as a Ray job."""

from fastapi import APIRouter, Response
from starlette.exceptions import HTTPException

from csl_dist.service.context import ServiceContext
from csl_dist.service.encoding import json_response
from csl_dist.service.forms import SubmitForm
from csl_dist.service.jobs import submit
from csl_dist.service.responses import Submitted
from csl_dist.service.settings import audit_ids


def job_routes(context: ServiceContext) -> APIRouter:
    """Submission of runs."""
    routes = APIRouter(prefix="/api/audits", tags=["audits"])
    settings, pool = context.settings, context.pool

    @routes.post("", response_model=Submitted, status_code=202)
    def submit_audit(form: SubmitForm) -> Response:
        """Starts a run as a Ray job; only if the service was started with --allow-submit."""
        if not settings.allow_submit:
            raise HTTPException(403, "this service was not started with --allow-submit")
        root, job = submit(form, settings)
        ids = {url: name for name, url in audit_ids([*pool.ids().values(), root]).items()}
        return json_response({"audit": ids[root], "job": job}, status=202)

    return routes
