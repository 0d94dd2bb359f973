"""The digest of a decision, by which a damaged one is noticed; needs no database's package."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from csl_dist.types import fingerprint

TABLE = "csl_reviews"
DIGESTED = (
    *("audit", "key", "revision", "video", "start", "stop", "decision", "label"),
    *("new_start", "new_stop", "reviewer", "comment", "edits"),
)
"""Columns that the digest is of, beside the time; the number is given by the database."""


def row_digest(values: Mapping[str, Any]) -> str:
    """What tells whether a decision is as it was saved."""
    when = values["when"]
    if isinstance(when, datetime):  # otherwise it is text, as SQLite has it
        utc = when if when.tzinfo is None else when.astimezone(UTC)
        when = f"{utc:%Y-%m-%d %H:%M:%S.%f}"
    return fingerprint(when, *(values[name] for name in DIGESTED))
