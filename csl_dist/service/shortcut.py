"""The short way to one frame's trajectory, which is asked for by the thousand.

Finding the route, reading its parameters and handing the work to a thread take FastAPI longer than
the read itself. So a plain request for one frame of an audit at hand is answered before all that;
any other, and whatever is wrong with this one, goes on to the route, which says so.
"""

import re
from types import SimpleNamespace
from urllib.parse import parse_qsl

from fastapi import Response

from csl_dist.errors import CslError
from csl_dist.service.audits import AuditPool
from csl_dist.service.forms import TrajectoryQuery
from csl_dist.service.guard import App, Receive, Scope, Send
from csl_dist.service.routes.trajectories import trajectory_answer

PATH = re.compile("/api/audits/([^/]+)/trajectory")
ROUTE = SimpleNamespace(path="/api/audits/{audit}/trajectory")


class Shortcut:
    """Answers what it can at once, in the event loop, and passes on the rest."""

    def __init__(self, app: App, pool: AuditPool):
        self._app = app
        self._pool = pool

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = None
        if scope["type"] == "http" and scope["method"] == "GET":
            found = PATH.fullmatch(scope["path"])
            answer = self._answer(found[1], scope["query_string"]) if found else None
        if answer is None:
            await self._app(scope, receive, send)
            return
        scope["route"] = ROUTE  # for the metrics
        await answer(scope, receive, send)

    def _answer(self, audit: str, query: bytes) -> Response | None:
        try:
            given = dict(pairs := parse_qsl(query.decode(), strict_parsing=True))
            if len(given) != len(pairs) or "frame" not in given or "epoch" in given:
                return None  # a list of frames or checkpoints
            asked = TrajectoryQuery.model_validate({**given, "frame": [given["frame"]]})
            if not self._pool.is_at_hand(audit, asked.revision):
                return None
            return self._pool.read(
                audit, asked.revision, lambda opened: trajectory_answer(opened, asked)
            )
        except (CslError, ValueError):
            return None
