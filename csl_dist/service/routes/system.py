"""Routes of the service itself: health, metrics, and the token of a browser."""

from fastapi import APIRouter, Request, Response

import csl_dist
from csl_dist.service.context import ServiceContext
from csl_dist.service.encoding import json_response
from csl_dist.service.guard import REVIEWER
from csl_dist.service.metrics import metrics_text
from csl_dist.service.responses import Health, Me


def system_routes(context: ServiceContext) -> APIRouter:
    """Health, metrics and sessions."""
    routes = APIRouter(tags=["service"])
    settings = context.settings

    @routes.get("/api/health", response_model=Health)
    async def health() -> Response:
        """Says that the service is running; needs no token."""
        # Not in a thread: all of these may wait for a database that gives no answer.
        return json_response({"status": "ok", "version": csl_dist.__version__})

    @routes.get("/metrics", response_class=Response)
    def metrics() -> Response:
        """Number and duration of requests, of all replicas, for Prometheus."""
        return Response(metrics_text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    @routes.post("/api/session", status_code=204, response_class=Response)
    def start_session(request: Request) -> Response:
        """Copies the token from the header to a cookie, for pictures and videos."""
        response = Response(status_code=204)
        token = request.headers.get("authorization", "").partition(" ")[2].strip()
        if settings.needs_token and token:
            response.set_cookie(settings.cookie, token, httponly=True, samesite="strict")
        return response

    @routes.get("/api/me", response_model=Me)
    def show_me(request: Request) -> Response:
        """Who asks, where the service knows, and what they may see."""
        name = request.scope.get(REVIEWER)
        return json_response(
            {"name": name, "may_see_annotators": settings.may_see_annotators(name)}
        )

    return routes
