"""Texts in CSV files: a spreadsheet runs what begins like a formula, whoever wrote it."""

from typing import TypeVar

Value = TypeVar("Value")

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters of a text that spreadsheets run."""
QUOTE = "'"
"""What makes a text of it; spreadsheets do not show it."""


def as_text(value: Value) -> Value | str:
    """A value as a cell that no spreadsheet runs; numbers stay as they are."""
    is_formula = isinstance(value, str) and value.startswith(FORMULA)
    return f"{QUOTE}{value}" if is_formula else value


def from_text(cell: str) -> str:
    """What a cell that `as_text` made was before."""
    return cell[1:] if cell.startswith(QUOTE) and cell[1:].startswith(FORMULA) else cell
