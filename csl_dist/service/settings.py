"""Settings of a service, and limits of its requests and responses."""

import csv
import ipaddress
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from csl_dist.errors import ConfigError
from csl_dist.storage.url import Storage, key_part
from csl_dist.types import fingerprint

DEFAULT_PORT = 8000

MAX_BODY_BYTES = 8 << 20
"""Of a request; enough for the labels of some hundred thousand frames."""
MAX_VALUES = 2_000_000
"""Numbers in one response."""
MAX_FRAMES_LISTED = 256
"""Single frames in one request; ranges may be longer."""
MAX_PAGE = 1000
"""Rows in one response."""
MAX_COLUMNS = 4000
"""Columns into which a request may group frames."""
MAX_EXPORT_BYTES = 512 << 20
"""Of an export that is written for a download."""
MAX_ID = 500
"""Characters of a name."""
MAX_COMMENT = 2000
MAX_NAME = 100
"""Characters of a reviewer's name."""

MIN_TOKEN_LENGTH = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """The settings of all replicas."""

    roots: tuple[str, ...]
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    token: str | None = None
    """Every request must send it; None is allowed on the loopback address only."""
    tokens: tuple[tuple[str, str], ...] = ()
    """Instead of one token: names of reviewers, each with a token of their own."""
    login_header: str | None = None
    """The header in which a proxy says who is logged in; it also sends the token."""
    leads: tuple[str, ...] = ()
    """Who may see how annotators' labels fared, by the name that tokens or the proxy give."""
    database: str | None = None
    """URL of the reviews; None keeps them in each run root."""
    media: tuple[str, ...] = ()
    """Folders and URLs that videos and labels are read from, beside each dataset's own folder."""
    allow_submit: bool = False
    submit_below: tuple[str, ...] = ()
    """URLs below which a submitted config may read and write, beside the roots themselves."""
    submit_models: tuple[str, ...] = ()
    """Import paths of models that a submitted config may name."""
    jobs_address: str | None = None
    """The cluster's dashboard, for submitting."""

    def __post_init__(self) -> None:
        if self.token is not None and self.tokens:
            raise ConfigError("--token and --tokens exclude each other; give one of them")
        if self.login_header is not None:
            if self.token is None:
                raise ConfigError(
                    "--login-header is what a proxy says, so that it needs --token, which the "
                    "proxy sends too and nobody else knows"
                )
            if not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*", self.login_header):
                raise ConfigError(
                    f"--login-header is {self.login_header!r}; give the name of a header, such as "
                    "X-Forwarded-User"
                )
        if self.leads and not self.knows_names:
            raise ConfigError(
                "--lead names who may see the annotators, so that it needs --tokens or "
                "--login-header, which tell who asks"
            )
        if self.token is None and self.allow_submit:
            raise ConfigError("--allow-submit lets requests start jobs, so that it needs --token")
        if not self.needs_token and not is_loopback(self.host):
            raise ConfigError(
                f"other machines can reach --host {self.host}, so that the service needs a token; "
                "give --token"
            )
        if self.token is not None:
            _check_token(self.token, "--token")
        for name, token in self.tokens:
            _check_token(token, f"the token of {name!r}")

    @property
    def needs_token(self) -> bool:
        return self.token is not None or bool(self.tokens)

    @property
    def knows_names(self) -> bool:
        """Whether the service knows who sends a request, instead of being told by the page."""
        return bool(self.tokens) or self.login_header is not None

    def may_see_annotators(self, reviewer: str | None) -> bool:
        """Leads may; without names, whoever sits at the machine of the service."""
        if self.knows_names:
            return reviewer in self.leads
        return not self.needs_token

    @property
    def cookie(self) -> str:
        """Name of the cookie; it has the port, as all ports of a host share their cookies."""
        return f"csl_token_{self.port}"

    @property
    def address(self) -> str:
        """The URL of the service for a browser."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


@lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host name or address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _check_token(token: str, what: str) -> None:
    if len(token) < MIN_TOKEN_LENGTH:
        raise ConfigError(
            f"{what} has {len(token)} characters, but needs {MIN_TOKEN_LENGTH} or more"
        )
    if not (token.isascii() and token.isprintable()):
        raise ConfigError(f"{what} must consist of printable ASCII characters")


def read_tokens(path: Path) -> tuple[tuple[str, str], ...]:
    """Names and tokens of a file with lines `name,token`; lines with `#` are comments."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--tokens {path} can't be read: {error}") from error
    found: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        cells = [cell.strip() for cell in next(csv.reader([line]))]
        if len(cells) != 2 or not all(cells):
            raise ConfigError(f"{path}, line {number}: expected `name,token`")
        name, token = cells
        if len(name) > MAX_NAME:
            raise ConfigError(f"{path}, line {number}: a name has at most {MAX_NAME} characters")
        if name in found or token in found.values():
            raise ConfigError(f"{path}, line {number}: a name and a token may stand there once")
        found[name] = token
    if not found:
        raise ConfigError(f"{path} names nobody; write a line `name,token` for each reviewer")
    return tuple(found.items())


def new_token() -> str:
    return secrets.token_urlsafe(24)


def audit_ids(roots: Sequence[str]) -> dict[str, str]:
    """Run roots by id: the folder's name, with a suffix where two folders have the same name.

    Every replica gives the same ids to the same roots in the same order.
    """
    by_id: dict[str, str] = {}
    for root in dict.fromkeys(Storage(root).url for root in roots):
        name = key_part(root.rsplit("/", 1)[-1])
        by_id[name if name not in by_id else f"{name}-{fingerprint(root)[:8]}"] = root
    return by_id
