"""Connections that ask for nothing are closed: soon at first, later when others need the room.

uvicorn limits the time between two requests, but not the time until the first, nor that of a
request whose headers never end. Some hundred such connections would keep everybody out.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

MAX_CONNECTIONS = 512
"""Of one replica that requests are answered on; further ones are refused with status 503."""
MAX_OPEN = 384
"""From so many connections on, the one that is idle longest makes room for a new one."""
FIRST_REQUEST_SECONDS = 10.0
IDLE_SECONDS = 75.0
CHECK_SECONDS = 1.0


class Connection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """A connection that is closed if no request comes, or comes to its end."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._idle_since = self.loop.time()
        if len(self.connections) > MAX_OPEN:
            self._close_idlest()
        self._check = self.loop.call_later(CHECK_SECONDS, self._close_if_idle)

    def connection_lost(self, exc: Exception | None) -> None:
        self._check.cancel()
        super().connection_lost(exc)

    @property
    def _is_at_work(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _close_if_idle(self) -> None:
        now = self.loop.time()
        if self._is_at_work:
            self._idle_since = now
        limit = FIRST_REQUEST_SECONDS if self.cycle is None else IDLE_SECONDS
        if now - self._idle_since > limit:
            self.transport.close()
        else:
            self._check = self.loop.call_later(CHECK_SECONDS, self._close_if_idle)

    def _close_idlest(self) -> None:
        others: list[Any] = [one for one in self.connections if one is not self]
        idle = [one for one in others if not one._is_at_work and not one.transport.is_closing()]
        if idle:
            min(idle, key=lambda one: one._idle_since).transport.close()
