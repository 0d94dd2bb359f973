"""The application: routes behind the guard, and one sentence for each error."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

import csl_dist
from csl_dist.errors import CslError, JobError, NotReadyError, StorageError
from csl_dist.service.audits import AuditPool, NotFoundError, OutdatedError
from csl_dist.service.context import ServiceContext
from csl_dist.service.guard import Guard
from csl_dist.service.jobs import JobRoots
from csl_dist.service.metrics import RequestMetrics
from csl_dist.service.responses import Problem
from csl_dist.service.routes import ROUTES
from csl_dist.service.routes.pages import STATIC, PageFiles
from csl_dist.service.settings import ServiceSettings
from csl_dist.words import counted

DESCRIPTION = """Audits of video labels: flags, scores and loss trajectories, and the review of the
flags. Frames are counted from 0, spans are half-open, and a higher score is more suspicious.
If the service has a token, every request must send it as `Authorization: Bearer TOKEN`."""
REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "The request makes no sense"},
    401: {"model": Problem, "description": "The token is missing or wrong"},
    403: {"model": Problem, "description": "Not allowed"},
    404: {"model": Problem, "description": "Not found"},
    409: {"model": Problem, "description": "Not ready yet, or changed in the meantime"},
    413: {"model": Problem, "description": "Too large"},
    422: {"model": Problem, "description": "A parameter is missing or has the wrong form"},
    500: {"model": Problem, "description": "Internal error"},
    503: {"model": Problem, "description": "Storage or the database does not work"},
}


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
    context = ServiceContext(settings=settings, pool=pool)
    for routes in ROUTES:
        app.include_router(routes(context))
    app.mount("/static", PageFiles(directory=STATIC))
    _add_error_handlers(app)
    app.add_middleware(Guard, settings=settings)
    app.add_middleware(RequestMetrics)
    return app


def _add_error_handlers(app: FastAPI) -> None:
    """Every refusal is one sentence, in one form."""

    @app.exception_handler(CslError)
    def user_error(request: Request, error: CslError) -> Response:
        match error:
            case NotFoundError():
                status = 404
            case NotReadyError() | OutdatedError() | JobError():
                status = 409
            case StorageError():
                status = 503
            case _:
                status = 400
        return _error_response(str(error), status)

    @app.exception_handler(RequestValidationError)
    def invalid_request(request: Request, error: RequestValidationError) -> Response:
        return _error_response(_sentence(error.errors()), 422)

    @app.exception_handler(HTTPException)
    def http_error(request: Request, error: HTTPException) -> Response:
        return _error_response(str(error.detail), error.status_code, error.headers)

    @app.exception_handler(Exception)
    def internal_error(request: Request, error: Exception) -> Response:
        return _error_response("internal error; see the service's log, and please report it", 500)


def _error_response(
    sentence: str, status: int, headers: Mapping[str, str] | None = None
) -> Response:
    # In ASCII: a request may hold half of a surrogate pair, which UTF-8 can't encode.
    body = json.dumps({"error": sentence})
    return Response(body, status, headers, media_type="application/json")


def _sentence(errors: Sequence[Any]) -> str:
    """The first problem of a request, and how many more there are."""
    first = errors[0]
    where = ".".join(str(part) for part in first["loc"])
    more = f" (and {counted(len(errors) - 1, 'more problem')})" if len(errors) > 1 else ""
    return f"{where}: {first['msg']}{more}"
