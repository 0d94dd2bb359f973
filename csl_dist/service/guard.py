"""Guard: checks host, origin, token and size of every request, and adds security headers.

A page of another site, open in the same browser, can send requests to a service on this machine. So
a request is refused if the browser says that it comes from another site, or if it uses a host name
that is not this machine's. Requests for pictures and videos can't send a header, so that they send
the token in a cookie; the cookie allows reading only, so that a forged form can't write anything.
Where each reviewer has a token, or a proxy says who is logged in, the scope has the name.
"""

import asyncio
import hmac
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any
from urllib.parse import SplitResult, urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import cookie_parser
from starlette.responses import JSONResponse

from csl_dist.service.settings import MAX_BODY_BYTES, MAX_NAME, ServiceSettings, is_loopback

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

OPEN_PATHS = ("/", "/docs", "/api/health", "/openapi.json", "/favicon.ico")
"""Paths that need no token: the pages themselves, which contain no data."""
OPEN_FOLDER = "/static/"
REVIEWER = "csl_reviewer"
"""Key of the scope: who sends the request, where that is known."""
READ_METHODS = ("GET", "HEAD")
MAX_BODY_SECONDS = 60.0
TOO_SLOW = f"the request did not arrive whole within {MAX_BODY_SECONDS:.0f} seconds"
TOO_LARGE = f"the request is larger than {MAX_BODY_BYTES:,} bytes; send less at once"

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data: blob:; media-src 'self' blob:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
_RAW_HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS.items()]


class Guard:
    """Refuses requests that must not reach the application."""

    def __init__(self, app: App, settings: ServiceSettings):
        self._app = app
        # Names by token; a token that is shared gives none.
        self._names: dict[str, str | None] = {token: name for name, token in settings.tokens}
        if settings.token is not None:
            self._names[settings.token] = None
        self._login_header = (settings.login_header or "").lower()
        self._cookie = settings.cookie
        # Behind a proxy the host is the proxy's, and the token keeps others out.
        self._local = is_loopback(settings.host) and settings.login_header is None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_RAW_HEADERS]
            await send(message)

        headers = {name.decode("latin-1"): v.decode("latin-1") for name, v in scope["headers"]}
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            status, sentence = refusal
            challenge = {"WWW-Authenticate": "Bearer"} if status == 401 else None
            response = JSONResponse({"error": sentence}, status, headers=challenge)
            await response(scope, receive, send_with_headers)
            return
        await self._app(scope, _with_limits(receive), send_with_headers)

    def _refusal(self, scope: Scope, headers: Mapping[str, str]) -> tuple[int, str] | None:
        """Status and sentence of a refusal; None if the request is allowed."""
        host = headers.get("host", "")
        if self._local and not is_loopback(_split(f"//{host}").hostname or ""):
            return 421, f"this service answers only to names of this machine, not to {host!r}"
        origin = headers.get("origin")
        if origin is not None and _split(origin).netloc != host:
            return 403, f"requests from another origin, {origin!r}, are refused"
        is_other_site = headers.get("sec-fetch-site") in ("cross-site", "same-site")
        if is_other_site and headers.get("sec-fetch-mode") != "navigate":
            return 403, "requests from another site are refused"
        if not self._is_authorized(scope, headers):
            return (
                401,
                "the token is missing or wrong; send the header `Authorization: Bearer TOKEN`",
            )
        if self._login_header and not _is_open(scope["path"]) and REVIEWER not in scope:
            return 401, f"the proxy sent no name in the header {self._login_header!r}"
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > MAX_BODY_BYTES:
            return 413, TOO_LARGE
        return None

    def _is_authorized(self, scope: Scope, headers: Mapping[str, str]) -> bool:
        """Whether the token is right; notes in the scope whose it is."""
        if not self._names:
            return True
        scheme, _, given = headers.get("authorization", "").partition(" ")
        sent = given.strip() if scheme.lower() == "bearer" else ""
        if not sent and scope["method"] in READ_METHODS:
            sent = cookie_parser(headers.get("cookie", "")).get(self._cookie, "")
        # All are compared, so that the time tells nothing.
        found = [token for token in self._names if _is_equal(sent, token)]
        if not found:
            return _is_open(scope["path"])
        name = self._names[found[0]]
        if self._login_header:
            name = _utf8(headers.get(self._login_header, "")).strip()[:MAX_NAME] or None
        if name is not None:
            scope[REVIEWER] = name
        return True


def _utf8(value: str) -> str:
    """A header's text; those with other letters than ASCII are sent as UTF-8, or as Latin-1."""
    try:
        return value.encode("latin-1").decode()
    except UnicodeDecodeError:
        return value


def _is_open(path: str) -> bool:
    return path in OPEN_PATHS or path.startswith(OPEN_FOLDER)


def _with_limits(receive: Receive) -> Receive:
    """Counts the bytes of a body, as a request may not state its length, and its seconds."""
    received = 0
    is_whole = False
    until = asyncio.get_running_loop().time() + MAX_BODY_SECONDS

    async def counted() -> Message:
        nonlocal received, is_whole
        if is_whole:  # what comes now is that the client leaves
            return await receive()
        try:
            async with asyncio.timeout_at(until):
                message = await receive()
        except TimeoutError:
            raise HTTPException(408, TOO_SLOW) from None
        received += len(message.get("body", b""))
        is_whole = not message.get("more_body", False)
        if received > MAX_BODY_BYTES:
            raise HTTPException(413, TOO_LARGE)
        return message

    return counted


def _split(url: str) -> SplitResult:
    """The parts of a URL; all empty if it is not valid."""
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")


def _is_equal(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode(), token.encode())
