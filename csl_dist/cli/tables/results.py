"""What a run has found, and how far it is."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd
from rich import box
from rich.markup import escape
from rich.table import Table

from csl_dist.cli.tables.plain import cell, headed_table
from csl_dist.report.words import correction_words

if TYPE_CHECKING:
    from csl_dist.audit.changes import AuditLine
    from csl_dist.audit.status import StageStatus


WIDE = 110
"""Columns of a terminal from which on a table of flags has all that there is."""


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


def flag_table(flags: pd.DataFrame, *, width: int) -> Table:
    """Flagged spans; frames are the first and the last. A narrow terminal gets fewer columns.

    Names and labels are broken over lines where there is no room, never cut; numbers never are.
    """
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1) if width >= WIDE else (0, 1, 0, 0))
    has_fixes = bool(flags["fix"].notna().any())
    columns = ["rank", "video", "seconds", *(["frames"] if width >= WIDE else []), "score"]
    columns += ["error"] if has_fixes else []
    columns += ["fix"] if has_fixes and width >= WIDE else []
    for heading in (*columns, "kind", "label", "suggested"):
        numeric = heading in ("rank", "seconds", "frames", "score", "error")
        table.add_column(
            heading,
            justify="right" if numeric else "left",
            no_wrap=numeric or heading == "kind",
            min_width=len(heading),
            overflow="fold",
        )
    for flag in flags.itertuples():
        probability = float(flag.probability)  # type: ignore[arg-type]
        cells = {
            "rank": str(flag.rank),
            "video": escape(str(flag.video)),
            "seconds": f"{flag.start_seconds:.1f}-{flag.stop_seconds:.1f}",
            "frames": f"{flag.start}-{flag.stop - 1}",  # type: ignore[operator]
            "score": f"{flag.score:.2f}",
            "error": "-" if pd.isna(probability) else f"{probability:.0%}",
            "fix": _fix_words(flag),
            "kind": str(flag.kind),
            "label": escape(str(flag.label)),
            "suggested": f"{escape(str(flag.suggested))} {flag.suggested_probability:.0%}",
        }
        table.add_row(*(cells[str(column.header)] for column in table.columns))
    return table


def _fix_words(flag: Any) -> str:
    """What is done to the labels of a flag's span; a boundary with the second that it goes to."""
    kind, *places = str(flag.fix).split()
    if kind != "boundary":
        return kind
    to = flag.start_seconds if int(places[1]) == flag.start else flag.stop_seconds
    return f"boundary to {to:.1f}"


def corrections_table(corrections: pd.DataFrame, *, rule: str, width: int) -> Table:
    """Corrected spans: what they were called, and the score that decides, before and after."""
    shown = pd.DataFrame(
        {
            "video": corrections.video,
            "frames": corrections.start.astype(str) + "-" + (corrections.stop - 1).astype(str),
            "label": corrections.label.replace("", "unlabelled"),
            "corrected": corrections.corrected.replace("", "unlabelled"),
            "score_before": corrections.score_before,
            "score_after": corrections.score_after,
            "now": [correction_words(c, rule=rule) for c in corrections.to_dict("records")],
        }
    )
    return frame_table(shown, width=width)


SPARED = ("margin_late", "aum_late", "margin", "aum", "csl_late", "final", "order", "csl")
"""Scores that a narrow terminal does not get, the first ones first."""


def frame_table(frame: pd.DataFrame, *, width: int) -> Table:
    """Any other table that a query gives, a column each; what is left out is told.

    Names and labels are broken over lines where there is no room, never cut; numbers never are.
    """
    roomy = _least_width(frame, gap=3) <= width
    left_out: list[str] = []
    for name in SPARED:
        if roomy or _least_width(frame.drop(columns=left_out), gap=2) <= width:
            break
        left_out += [name] if name in frame.columns else []
    shown = frame.drop(columns=left_out)
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1) if roomy else (0, 1, 0, 0))
    for name in shown.columns:
        numeric = pd.api.types.is_numeric_dtype(shown[name])
        heading = name.replace("_", "\n")
        justify: Literal["left", "right"] = "right" if numeric else "left"
        least = max(map(len, heading.split("\n")))
        table.add_column(
            heading, justify=justify, no_wrap=numeric, min_width=least, overflow="fold"
        )
    for row in shown.itertuples(index=False):
        table.add_row(*(cell(value) for value in row))
    if left_out:
        names = [name for name in frame.columns if name in left_out]
        table.caption = f"no room for {', '.join(names)}; --format csv has all"
        table.caption_justify = "left"
    return table


LEAST_WORDS = 12
"""Columns of a terminal that a name, or a label, has to be broken into."""


def _least_width(frame: pd.DataFrame, *, gap: int) -> int:
    """Columns of the terminal that a table takes, with numbers whole and words broken."""

    def width(name: str) -> int:
        heading = max(map(len, name.split("_")))
        longest = max((len(cell(value)) for value in frame[name].unique().tolist()), default=0)
        numeric = pd.api.types.is_numeric_dtype(frame[name])
        return max(heading, longest if numeric else min(longest, LEAST_WORDS))

    return sum(width(name) + gap for name in frame.columns) + 1
