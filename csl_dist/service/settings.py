"""Settings of a service, and limits of its requests and responses."""

import ipaddress
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

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

MIN_TOKEN_LENGTH = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """The settings of all replicas."""

    roots: tuple[str, ...]
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    token: str | None = None
    """Every request must send it; None is allowed on the loopback address only."""
    database: str | None = None
    """URL of the reviews; None keeps them in each run root."""
    media: tuple[str, ...] = ()
    """Folders that videos may be shown from, beside that of each dataset."""
    allow_submit: bool = False
    submit_below: tuple[str, ...] = ()
    """URLs below which a submitted config may read and write, beside the roots themselves."""
    submit_models: tuple[str, ...] = ()
    """Import paths of models that a submitted config may name."""
    jobs_address: str | None = None
    """The cluster's dashboard, for submitting."""

    def __post_init__(self) -> None:
        if self.token is None and self.allow_submit:
            raise ConfigError("--allow-submit lets requests start jobs, so that it needs --token")
        if self.token is None and not is_loopback(self.host):
            raise ConfigError(
                f"other machines can reach --host {self.host}, so that the service needs a token; "
                "give --token"
            )
        if self.token is not None and len(self.token) < MIN_TOKEN_LENGTH:
            raise ConfigError(
                f"--token has {len(self.token)} characters, but needs {MIN_TOKEN_LENGTH} or more"
            )
        if self.token is not None and not (self.token.isascii() and self.token.isprintable()):
            raise ConfigError("--token must consist of printable ASCII characters")

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
