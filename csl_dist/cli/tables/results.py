"""What a run has found, and how far it is."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd
from rich.markup import escape
from rich.table import Table

from csl_dist.cli.tables.fitted import Column, fitted_table
from csl_dist.cli.tables.plain import cell, headed_table
from csl_dist.report.words import KIND_WORDS, correction_words, fix_words

if TYPE_CHECKING:
    from csl_dist.audit.changes import AuditLine
    from csl_dist.audit.status import StageStatus


def status_table(lines: Sequence["StageStatus"]) -> Table:
    table = headed_table("stage", "done", "of", numbers=("done", "of"))
    for line in lines:
        table.add_row(line.stage, f"{line.done:,}", f"{line.total:,}")
    return table


def audits_table(lines: Sequence["AuditLine"]) -> Table:
    """The audits of a run, and what changed from each to the next."""
    headings = ("audit", "made", "videos", "flags", "what changed")
    table = headed_table(*headings, numbers=("videos", "flags"))
    for line in lines:
        made = time.strftime("%Y-%m-%d %H:%M", time.localtime(line.created))
        changed = escape("; ".join(line.changes))
        table.add_row(
            str(line.number), made, f"{line.num_videos:,}", f"{line.num_flags:,}", changed
        )
    return table


SPARED_OF_FLAGS = ("frames", "score", "suggested")
"""What a narrow terminal does not get; a fix tells what is suggested."""


def flag_table(flags: pd.DataFrame, *, width: int) -> Table:
    """Flagged spans; frames are the first and the last. A narrow terminal gets fewer columns."""
    rows = list(flags.itertuples())
    columns = {
        "rank": [str(flag.rank) for flag in rows],
        "video": [str(flag.video) for flag in rows],
        "seconds": [f"{flag.start_seconds:.1f}-{flag.stop_seconds:.1f}" for flag in rows],
        "frames": [f"{flag.start}-{flag.stop - 1}" for flag in rows],  # type: ignore[operator]
        "score": [f"{flag.score:.2f}" for flag in rows],
        "likely": [_share(flag.probability) for flag in rows],
        "kind": [KIND_WORDS.get(str(flag.kind), str(flag.kind)) for flag in rows],
        "label": [str(flag.label) for flag in rows],
        "fix": [fix_words(flag) or "-" for flag in flags.to_dict("records")],
        "suggested": [f"{flag.suggested} {_share(flag.suggested_probability)}" for flag in rows],
    }
    spared: Sequence[str] = SPARED_OF_FLAGS
    if not flags["fix"].notna().any():
        # The other rules only say where to look, and which step is likeliest.
        del columns["fix"], columns["likely"]
        spared = spared[:1]
    numbers = ("rank", "seconds", "frames", "score", "likely")
    return fitted_table(
        [
            Column(heading=heading, cells=cells, is_numeric=heading in numbers)
            for heading, cells in columns.items()
        ],
        width=width,
        spared=spared,
    )


def moved_table(moved: pd.DataFrame, *, width: int) -> Table:
    """Flags of two audits that share frames and differ; what is the same is told once."""

    def ends(when: str) -> pd.Series:
        last = moved[f"stop {when}"] - 1
        return moved[f"start {when}"].astype(str) + "-" + last.astype(str)

    def changes(before: pd.Series, now: pd.Series) -> pd.Series:
        return now.where(before == now, before + " → " + now)

    kind_before, kind_now = (
        moved[f"kind {when}"].replace(KIND_WORDS) for when in ("before", "now")
    )
    shown = pd.DataFrame(
        {
            "video": moved.video,
            "frames": changes(ends("before"), ends("now")),
            "kind": changes(kind_before, kind_now),
            "label": moved.label,
            "suggested": changes(moved["suggested before"], moved["suggested now"]),
        }
    )
    return frame_table(shown, width=width)


def _share(probability: Any) -> str:
    return "-" if pd.isna(probability) else f"{probability:.0%}"


def corrections_table(corrections: pd.DataFrame, *, by_edits: bool, width: int) -> Table:
    """Corrected spans: what they were called, and the score that decides, before and after."""
    shown = pd.DataFrame(
        {
            "video": corrections.video,
            "frames": corrections.start.astype(str) + "-" + (corrections.stop - 1).astype(str),
            "label": corrections.label.replace("", "unlabelled"),
            "corrected": corrections.corrected.replace("", "unlabelled"),
            "score before": corrections.score_before,
            "score after": corrections.score_after,
            "now": [correction_words(c, by_edits=by_edits) for c in corrections.to_dict("records")],
        }
    )
    return frame_table(shown, width=width)


SPARED = ("margin_late", "aum_late", "margin", "aum", "csl_late", "final", "order", "csl")
"""Scores that a narrow terminal does not get, the first ones first."""


def frame_table(frame: pd.DataFrame, *, width: int) -> Table:
    """Any other table that a query gives, a column each; what is left out is told."""
    columns = [
        Column(
            heading=name,
            cells=[cell(value) for value in frame[name].tolist()],
            is_numeric=pd.api.types.is_numeric_dtype(frame[name]),
        )
        for name in frame.columns
    ]
    return fitted_table(columns, width=width, spared=SPARED)
