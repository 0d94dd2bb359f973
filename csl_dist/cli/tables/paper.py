"""The paper's tables, as wide as the terminal."""

import textwrap
from itertools import zip_longest

import pandas as pd
from rich import box
from rich.markup import escape
from rich.table import Table

PAPER_ROWS = ("figures", "error", "method", "training noise")
"""Columns of the paper's tables that say what a row is; the others hold figures."""


def paper_table(title: str, frame: pd.DataFrame, *, width: int) -> Table:
    """One of the paper's tables; headings are broken, or it is turned round, to fit a terminal."""
    shown = frame.map(_plain).rename(columns=_plain)
    if _table_width(shown) > width:
        shown = _narrowed(shown)
    if _table_width(shown, break_words=True) > width:
        words = [name for name in frame.columns if name in PAPER_ROWS]
        headings = frame[words].agg(" ".join, axis=1)
        turned = frame.drop(columns=words).T.set_axis(headings, axis=1).reset_index(names="")
        shown = _narrowed(turned.map(_plain))
    table = Table(
        title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), min_width=72
    )
    for name in shown.columns:
        is_word = name in ("", *PAPER_ROWS)
        table.add_column(name, justify="left" if is_word else "right", no_wrap=not is_word)
    rows = shown.to_numpy().tolist()
    in_groups = "error" in shown and shown["error"].nunique() < len(rows)
    for row, after in zip_longest(rows, rows[1:]):
        ends = in_groups and after is not None and after[0] != row[0]
        table.add_row(*map(escape, row), end_section=ends)
    return table


def _plain(text: str) -> str:
    return text.replace("_", " ").replace(" ± ", "±")


def _table_width(frame: pd.DataFrame, *, break_words: bool = False) -> int:
    """Columns of the terminal that a table takes; what says what a row is may be broken."""

    def width(name: str) -> int:
        texts = [*name.splitlines(), *frame[name]]
        is_broken = break_words and name in PAPER_ROWS
        pieces = (text.split() if is_broken else [text] for text in texts)
        return max(len(piece) for own in pieces for piece in own)

    return sum(width(name) + 2 for name in frame.columns) + 1


def _narrowed(frame: pd.DataFrame) -> pd.DataFrame:
    """The table with headings broken so that they are no wider than they must be."""

    def broken(name: str) -> str:
        if name in ("", *PAPER_ROWS):
            return name
        return textwrap.fill(name, max(map(len, [*name.split(), *frame[name]])))

    return frame.rename(columns=broken)
