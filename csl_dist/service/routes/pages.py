"""Routes of the two pages: the review and the description of the API."""

from pathlib import Path
from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles

from csl_dist.service.context import ServiceContext

STATIC = Path(__file__).parents[1] / "static"
NO_CACHE = {"cache-control": "no-cache"}
"""Browsers ask for each file again, so that they never mix files of two versions."""


class PageFiles(StaticFiles):
    """Scripts, styles and pictures that the pages load."""

    def file_response(self, *given: Any, **named: Any) -> Response:
        response = super().file_response(*given, **named)
        response.headers.update(NO_CACHE)
        return response


def page_routes(context: ServiceContext) -> APIRouter:
    """Pages; what they load is below /static."""
    routes = APIRouter(include_in_schema=False)

    @routes.get("/")
    def review_page() -> Response:
        return FileResponse(STATIC / "index.html", headers=NO_CACHE)

    @routes.get("/docs")
    def api_page() -> Response:
        return FileResponse(STATIC / "docs.html", headers=NO_CACHE)

    @routes.get("/favicon.ico")
    def icon() -> Response:
        return FileResponse(STATIC / "icon.svg", media_type="image/svg+xml")

    return routes
