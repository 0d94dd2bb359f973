"""Tables that answer queries, for the terminal."""

from typing import Any

import pandas as pd
from rich import box
from rich.markup import escape
from rich.table import Table


def flag_table(flags: pd.DataFrame) -> Table:
    """Flagged spans; frames are the first and the last."""
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("rank", "video", "seconds", "frames", "score", "kind", "label", "suggested"):
        numeric = heading in ("rank", "seconds", "frames", "score")
        table.add_column(heading, justify="right" if numeric else "left")
    for flag in flags.itertuples():
        table.add_row(
            str(flag.rank),
            escape(str(flag.video)),
            f"{flag.start_seconds:.1f}-{flag.stop_seconds:.1f}",
            f"{flag.start}-{flag.stop - 1}",  # type: ignore[operator]
            f"{flag.score:.2f}",
            str(flag.kind),
            escape(str(flag.label)),
            f"{escape(str(flag.suggested))} {flag.suggested_probability:.0%}",
        )
    return table


def corrections_table(corrections: pd.DataFrame) -> Table:
    """Corrected spans: what they were called, and the score that decides, before and after."""
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("video", "frames", "label", "corrected", "before", "after", "below"):
        numeric = heading in ("frames", "before", "after")
        table.add_column(heading, justify="right" if numeric else "left")
    for row in corrections.itertuples():
        table.add_row(
            escape(str(row.video)),
            f"{row.start}-{row.stop - 1}",  # type: ignore[operator]
            escape(str(row.label)),
            escape(str(row.corrected)),
            _cell(row.score_before),
            _cell(row.score_after),
            "yes" if row.below_threshold else "no",
        )
    return table


def frame_table(frame: pd.DataFrame) -> Table:
    """Any other table that a query gives, a column each."""
    table = Table(box=box.SIMPLE_HEAD)
    for name in frame.columns:
        numeric = pd.api.types.is_numeric_dtype(frame[name])
        table.add_column(name.replace("_", " "), justify="right" if numeric else "left")
    for row in frame.itertuples(index=False):
        table.add_row(*(_cell(value) for value in row))
    return table


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "-" if pd.isna(value) else f"{value:.2f}"
    return escape(str(value))
