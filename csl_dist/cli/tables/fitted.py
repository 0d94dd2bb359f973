"""Tables that fit a terminal: the least important columns are left out, text is folded.

Numbers are never cut; a name is broken after a space or `_`, inside a word only where nothing else
is left to do.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

MOST_LINES = 2
"""Lines that a text is folded into while there is a column left to leave out."""
LEAST_WIDTH = 8
"""Columns of the terminal below which no text is squeezed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    heading: str
    cells: list[str]
    is_numeric: bool = False

    @property
    def natural(self) -> int:
        """Columns of the terminal that it takes unfolded."""
        return max(map(cell_len, [*_words(self.heading), *self.cells]))

    @property
    def least(self) -> int:
        """Columns of the terminal without which a number or a word would be cut."""
        if self.is_numeric:
            return self.natural
        pieces = (piece for text in (self.heading, *self.cells) for piece in _words(text))
        return max(map(cell_len, pieces))

    @property
    def readable(self) -> int:
        """Columns of the terminal in which no cell takes more than MOST_LINES."""
        cells, widths = set(self.cells), range(self.least, self.natural)
        fits = (w for w in widths if all(_folded(c, w).count("\n") < MOST_LINES for c in cells))
        return next(fits, self.natural)


def fitted_table(columns: Sequence[Column], *, width: int, spared: Sequence[str] = ()) -> Table:
    """A table of no more than `width` columns; those `spared` are left out first, and told."""
    roomy = _total([column.natural for column in columns], gap=3) <= width
    shown = list(columns)
    for name in spared:
        if roomy or _total([column.readable for column in shown], gap=2) <= width:
            break
        shown = [column for column in shown if column.heading != name]
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1) if roomy else (0, 1, 0, 0))
    widths = [column.natural for column in shown] if roomy else _widths(shown, width)
    for column, own in zip(shown, widths, strict=True):
        table.add_column(
            Text(_folded(column.heading, own)),
            width=own,
            justify="right" if column.is_numeric else "left",
            overflow="fold",
        )
    folded = [
        [Text(_folded(cell, own)) for cell in column.cells]
        for column, own in zip(shown, widths, strict=True)
    ]
    for row in zip(*folded, strict=True):
        table.add_row(*row)
    left_out = [column.heading for column in columns if column not in shown]
    if left_out:
        table.caption = f"no room for {', '.join(left_out)}; a wider terminal shows all"
        table.caption_justify = "left"
    return table


def _widths(columns: Sequence[Column], width: int) -> list[int]:
    """What each column gets: what it is read well in, or less, or what is left besides."""
    widths = [column.readable for column in columns]
    least = [column.least for column in columns]
    texts = [place for place, column in enumerate(columns) if not column.is_numeric]
    for floors in (least, [LEAST_WIDTH] * len(columns)):
        while _total(widths, gap=2) > width:
            wider = [place for place in texts if widths[place] > floors[place]]
            if not wider:
                break
            widths[max(wider, key=lambda place: widths[place])] -= 1
    while texts and _total(widths, gap=2) < width:
        folded = max(texts, key=lambda place: columns[place].natural / widths[place])
        if widths[folded] >= columns[folded].natural:
            break
        widths[folded] += 1
    return widths


def _total(widths: Sequence[int], *, gap: int) -> int:
    return sum(widths) + gap * len(widths) + 1


def _words(text: str) -> list[str]:
    """A text in the pieces that it may be broken into; a `_` stays with what it ends."""
    return re.findall(r"[^\s_]*_+|[^\s_]+", text) or [""]


def _folded(text: str, width: int) -> str:
    """A text in lines of a width; a longer word has a line of its own."""
    lines = [""]
    for piece in re.findall(r"[^\s_]*_+\s*|[^\s_]+\s*", text):
        if lines[-1] and cell_len(lines[-1] + piece.rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)
