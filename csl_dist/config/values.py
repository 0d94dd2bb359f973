"""Values that several sections of a config share, and what they refuse."""

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
)

from csl_dist.measures import known_score
from csl_dist.types import names_folder

FORBID = ConfigDict(extra="forbid")
DATABASE_SCHEMES = ("postgresql", "postgres", "postgresql+psycopg", "sqlite")
WHOLE_FILE = re.compile(r"sqlite:////(?!:memory:)[^/]")
PASSWORD = re.compile(r"^[^:]+://[^:/]*:[^@?]*@|[?&](ssl)?password=")
"""As SQLAlchemy finds one; `urlsplit` takes one with a slash for part of a path."""


def ascending(pair: tuple[int, int]) -> tuple[int, int]:
    if pair[0] > pair[1]:
        raise ValueError(f"{list(pair)} must name the shorter length first")
    return pair


def odd(value: int) -> int:
    if value % 2 == 0:
        raise ValueError(
            f"{value} is even, but a window has a frame in its middle; take {value + 1}"
        )
    return value


def known_url(url: str) -> str:
    """Refuses what names no place: such a root would be the folder that one stands in."""
    if not names_folder(url):
        raise ValueError(f"{url!r} names no folder; expected a path, or a URL as s3://bucket/run")
    return url


def known_database(url: str) -> str:
    """Refuses what names no database, one that is another in every folder, and what would write a
    password into the run root."""
    parts = urlsplit(url)
    if parts.scheme not in DATABASE_SCHEMES or "://" not in url:
        raise ValueError(
            f"{url!r} names no database; expected postgresql://USER@HOST/NAME or sqlite:////FILE"
        )
    if parts.scheme == "sqlite" and not WHOLE_FILE.match(url):
        raise ValueError(
            f"{url!r} names no file by its whole path, which a job in another folder needs; write "
            "sqlite:////FILE, with four slashes"
        )
    if parts.scheme != "sqlite" and PASSWORD.search(url):
        raise ValueError(
            "it holds a password, which everybody who reads the run root would see; leave it out, "
            "and set PGPASSWORD or write it into ~/.pgpass"
        )
    return url


Count = Annotated[int, Field(ge=1, lt=2**63)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Rate = Annotated[float, Field(gt=0, le=100_000)]
"""Frames a second."""
Url = Annotated[str, AfterValidator(known_url)]
Share = Annotated[float, Field(gt=0, lt=1)]
Percent = Annotated[float, Field(gt=0, le=100)]
ScoreName = Annotated[str, AfterValidator(known_score)]
