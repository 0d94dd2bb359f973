"""What a notebook shows of an audit and of its flags: short tables instead of every column."""

from html import escape
from typing import Any

import pandas as pd

from csl_dist.words import clock, counted

SHOWN_FLAGS = 5
MOST_SHOWN = 20
"""Rows of flags that are shown; the table has all of them."""


def shown_flags(flags: pd.DataFrame) -> pd.DataFrame:
    """The columns of flags that people read: where, what is wrong, how sure, and why."""
    return pd.DataFrame(
        {
            "video": flags.video,
            "from": flags.start_seconds.map(clock),
            "to": flags.stop_seconds.map(clock),
            "kind": flags.kind,
            "label": flags.label,
            "suggested": flags.suggested,
            "sure": [f"{p:.0%}" if pd.notna(p) else "" for p in flags.probability],
            "why": flags.why,
        }
    )


class Flags(pd.DataFrame):
    """A table of flags that shows itself in short; its columns are all there.

    Whatever pandas makes of it is a plain DataFrame.
    """

    def __repr__(self) -> str:
        if not _are_flags(self):
            return super().__repr__()
        shown = shown_flags(self.head(MOST_SHOWN)).drop(columns="why")
        table = shown.to_string(index=False) if len(self) else "none"
        return f"{table}\n{_count(self)}"

    def _repr_html_(self) -> str:
        if not _are_flags(self):
            return self.to_html()
        return flags_html(self, MOST_SHOWN)


def flags_html(flags: pd.DataFrame, most: int) -> str:
    """The first flags as a table of HTML, and how many there are."""
    table = (
        shown_flags(flags.head(most)).to_html(index=False, border=0, justify="left")
        if len(flags)
        else ""
    )
    return f"{table}<p>{escape(_count(flags))}</p>"


def audit_html(facts: dict[str, Any], flags: pd.DataFrame | None, told: list[str]) -> str:
    """An audit at a glance: what it is of, sentences on it as a whole, and its first flags."""
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(str(value))}</td></tr>'
        for name, value in facts.items()
    )
    sentences = "".join(f"<p>{escape(sentence)}</p>" for sentence in told)
    first = "" if flags is None else flags_html(flags, SHOWN_FLAGS)
    return f"<table>{rows}</table>{sentences}{first}"


def _are_flags(table: pd.DataFrame) -> bool:
    """Columns may have been taken out in place."""
    return {"video", "start_seconds", "kind", "suggested", "why"} <= set(table.columns)


def _count(flags: pd.DataFrame) -> str:
    videos = flags.video.nunique()
    return f"{counted(len(flags), 'flag')} in {counted(videos, 'video')}"
