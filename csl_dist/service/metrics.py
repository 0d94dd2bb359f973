"""Prometheus metrics of requests, summed over all replicas.

Each replica is a process. If PROMETHEUS_MULTIPROC_DIR is set, all of them count in files of that
folder, and the replica that gets a request for metrics adds them up.
"""

import os
import time
from functools import lru_cache

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest, multiprocess

from csl_dist.service.guard import App, Message, Receive, Scope, Send

FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
REGISTRY = CollectorRegistry()
REQUESTS = Counter(
    "csl_requests",
    "Requests, by route and status.",
    ("method", "route", "status"),
    registry=REGISTRY,
)
SECONDS = Histogram(
    "csl_request_seconds",
    "Seconds until the last byte of a response was sent.",
    ("route",),
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
    registry=REGISTRY,
)
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class RequestMetrics:
    """Middleware that counts and times requests."""

    def __init__(self, app: App):
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 500
        start = time.perf_counter()

        async def send_and_note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_and_note_status)
        finally:
            # By route, not by path: there is no limit to the paths that somebody may send.
            route = getattr(scope.get("route"), "path", "none")
            method = scope["method"] if scope["method"] in METHODS else "other"
            count, seconds = _series(method, route, status)
            count.inc()
            seconds.observe(time.perf_counter() - start)


@lru_cache(maxsize=1024)
def _series(method: str, route: str, status: int) -> tuple[Counter, Histogram]:
    return REQUESTS.labels(method, route, str(status)), SECONDS.labels(route)


def metrics_text() -> bytes:
    """All metrics in the text format of Prometheus."""
    if FOLDER_VARIABLE not in os.environ:
        return generate_latest(REGISTRY)
    all_replicas = CollectorRegistry()
    multiprocess.MultiProcessCollector(all_replicas)
    return generate_latest(all_replicas)
