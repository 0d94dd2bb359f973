"""The application: routes behind the guard, and errors as one sentence each."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

import csl_dist
from csl_dist.errors import CslError, JobError, NotReadyError, StorageError
from csl_dist.service.answers import Health, Problem, Submitted
from csl_dist.service.audits import AuditPool, NotFoundError, OutdatedError
from csl_dist.service.forms import SubmitForm
from csl_dist.service.guard import Guard
from csl_dist.service.packing import json_answer
from csl_dist.service.routes.exports import export_routes
from csl_dist.service.routes.listing import listing_routes
from csl_dist.service.routes.media import media_routes
from csl_dist.service.routes.reviewing import reviewing_routes
from csl_dist.service.routes.scores import score_routes
from csl_dist.service.routes.trajectories import trajectory_routes
from csl_dist.service.settings import ServiceSettings, audit_ids
from csl_dist.service.shortcut import Shortcut
from csl_dist.service.submitting import JobRoots, submit
from csl_dist.service.telemetry import Counted, metrics_text

STATIC = Path(__file__).parent / "static"
DESCRIPTION = """Audits of video labels: flags, scores and loss trajectories, and the review of what
was flagged. Frames are counted from 0, spans are half-open, and a higher score is more suspicious.
Where the service has a token, every request brings it as `Authorization: Bearer TOKEN`."""
REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "What was asked for makes no sense"},
    401: {"model": Problem, "description": "The token is missing or wrong"},
    403: {"model": Problem, "description": "Not allowed"},
    404: {"model": Problem, "description": "There is no such thing"},
    409: {"model": Problem, "description": "Not ready yet, or no longer as it was"},
    413: {"model": Problem, "description": "Too large"},
    422: {"model": Problem, "description": "A parameter is missing or of the wrong form"},
    500: {"model": Problem, "description": "A mistake of the service"},
    503: {"model": Problem, "description": "Storage or the database can't be used"},
}

ASKED_ANEW = {"cache-control": "no-cache"}
ROUTES = (
    listing_routes,
    score_routes,
    trajectory_routes,
    export_routes,
    reviewing_routes,
    media_routes,
)


class PageFiles(StaticFiles):
    """What the pages load; asked for anew each time, so that no two versions meet in a browser."""

    def file_response(self, *given: Any, **named: Any) -> Response:
        answer = super().file_response(*given, **named)
        answer.headers.update(ASKED_ANEW)
        return answer


def create_app(settings: ServiceSettings) -> FastAPI:
    """The whole service over some run roots; it needs no Ray."""
    app = FastAPI(
        title="csl_dist",
        version=csl_dist.__version__,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        responses=REFUSALS,
    )
    jobs = JobRoots(settings.jobs_address) if settings.allow_submit else None
    pool = AuditPool(
        settings.roots, database=settings.database, more_roots=jobs.roots if jobs else list
    )
    _add_errors(app)
    _add_own_routes(app, settings, pool)
    for routes in ROUTES:
        app.include_router(routes(pool))
    app.mount("/static", PageFiles(directory=STATIC))
    app.add_middleware(Shortcut, pool=pool)
    app.add_middleware(Guard, settings=settings)
    app.add_middleware(Counted)
    return app


def _add_own_routes(app: FastAPI, settings: ServiceSettings, pool: AuditPool) -> None:
    @app.get("/", include_in_schema=False)
    def review_page() -> Response:
        return FileResponse(STATIC / "index.html", headers=ASKED_ANEW)

    @app.get("/docs", include_in_schema=False)
    def api_page() -> Response:
        return FileResponse(STATIC / "docs.html", headers=ASKED_ANEW)

    @app.get("/favicon.ico", include_in_schema=False)
    def icon() -> Response:
        return FileResponse(STATIC / "icon.svg", media_type="image/svg+xml")

    @app.get("/api/health", response_model=Health, tags=["service"])
    def health() -> Response:
        """Answers as long as the service does; needs no token."""
        return json_answer({"status": "ok", "version": csl_dist.__version__})

    @app.get("/metrics", response_class=Response, tags=["service"])
    def metrics() -> Response:
        """Requests and their times, of all replicas, for Prometheus."""
        return Response(metrics_text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    @app.post("/api/session", status_code=204, response_class=Response, tags=["service"])
    def keep_token() -> Response:
        """Keeps the token that came as a header in a cookie, for pictures and videos."""
        answer = Response(status_code=204)
        if settings.token is not None:
            answer.set_cookie(settings.cookie, settings.token, httponly=True, samesite="strict")
        return answer

    @app.post("/api/audits", response_model=Submitted, status_code=202, tags=["audits"])
    def submit_audit(form: SubmitForm) -> Response:
        """Starts a run as a Ray job; only where the service was started with --allow-submit."""
        if not settings.allow_submit:
            raise HTTPException(403, "this service was not started with --allow-submit")
        root, job = submit(form, settings.jobs_address)
        known = {url: name for name, url in audit_ids([*pool.ids().values(), root]).items()}
        return json_answer({"audit": known[root], "job": job}, status=202)


def _add_errors(app: FastAPI) -> None:
    """Every refusal is one sentence, in one form."""

    @app.exception_handler(CslError)
    def known(request: Request, error: CslError) -> Response:
        match error:
            case NotFoundError():
                status = 404
            case NotReadyError() | OutdatedError() | JobError():
                status = 409
            case StorageError():
                status = 503
            case _:
                status = 400
        return _refused(str(error), status)

    @app.exception_handler(RequestValidationError)
    def malformed(request: Request, error: RequestValidationError) -> Response:
        return _refused(_sentence(error.errors()), 422)

    @app.exception_handler(HTTPException)
    def refused(request: Request, error: HTTPException) -> Response:
        return _refused(str(error.detail), error.status_code, error.headers)

    @app.exception_handler(Exception)
    def broken(request: Request, error: Exception) -> Response:
        return _refused("the service made a mistake, which its log tells; please report it", 500)


def _refused(sentence: str, status: int, headers: Mapping[str, str] | None = None) -> Response:
    # In ASCII, as what a request gave may be half of a character, which UTF-8 has no bytes for.
    body = json.dumps({"error": sentence})
    return Response(body, status, headers, media_type="application/json")


def _sentence(errors: Sequence[Any]) -> str:
    """The first thing that is wrong with a request, and how many more."""
    first = errors[0]
    where = ".".join(str(part) for part in first["loc"])
    more = f" (and {len(errors) - 1} more problems)" if len(errors) > 1 else ""
    return f"{where}: {first['msg']}{more}"
