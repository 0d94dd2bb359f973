"""What a dataset holds."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from csl_dist.cli.tables.plain import headed_table

if TYPE_CHECKING:
    from csl_dist.data.check import SplitSummary


def dataset_table(lines: Sequence["SplitSummary"]) -> Table:
    numbers = ("videos", "hours", "frames")
    table = headed_table("split", *numbers, numbers=numbers)
    for line in lines:
        table.add_row(
            line.split, f"{line.num_videos:,}", f"{line.hours:.2f}", f"{line.num_frames:,}"
        )
    return table


def class_table(classes: Sequence[str], lines: Sequence["SplitSummary"]) -> Table:
    """Frames of each class in each split."""
    splits = [line.split for line in lines]
    table = headed_table("frames of class", *splits, numbers=splits)
    for i, name in enumerate(classes):
        table.add_row(name, *(f"{line.class_frames_C[i]:,}" for line in lines))
    return table
