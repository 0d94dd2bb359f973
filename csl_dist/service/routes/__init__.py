"""All routes of the service. A new one is a module with a function that makes its APIRouter."""

from collections.abc import Callable

from fastapi import APIRouter

from csl_dist.service.context import ServiceContext
from csl_dist.service.routes.audits import audit_routes
from csl_dist.service.routes.exports import export_routes
from csl_dist.service.routes.flags import flag_routes
from csl_dist.service.routes.jobs import job_routes
from csl_dist.service.routes.media import media_routes
from csl_dist.service.routes.overview import overview_routes
from csl_dist.service.routes.pages import page_routes
from csl_dist.service.routes.reviews import review_routes
from csl_dist.service.routes.scores import score_routes
from csl_dist.service.routes.system import system_routes
from csl_dist.service.routes.trajectories import trajectory_routes
from csl_dist.service.routes.videos import video_routes

ROUTES: tuple[Callable[[ServiceContext], APIRouter], ...] = (
    page_routes,
    system_routes,
    job_routes,
    audit_routes,
    video_routes,
    flag_routes,
    score_routes,
    trajectory_routes,
    export_routes,
    review_routes,
    overview_routes,
    media_routes,
)
