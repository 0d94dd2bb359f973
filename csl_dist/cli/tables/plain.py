"""What tables of all subjects are made with."""

from collections.abc import Collection
from typing import Any

import pandas as pd
from rich import box
from rich.table import Table


def headed_table(*headings: str, numbers: Collection[str] = (), title: str | None = None) -> Table:
    """A table without rows; columns of `numbers` are aligned to the right."""
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left")
    for heading in headings:
        table.add_column(heading, justify="right" if heading in numbers else "left")
    return table


def cell(value: Any) -> str:
    """A value as text; `-` for what is not known."""
    if isinstance(value, float):
        return "-" if pd.isna(value) else f"{value:.2f}"
    return str(value)
