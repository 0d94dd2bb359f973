"""What a run takes: planned, measured, or left to do."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from csl_dist.cli.tables.plain import headed_table
from csl_dist.cost.words import size_words, time_words

if TYPE_CHECKING:
    from csl_dist.cost.forecast import Forecast
    from csl_dist.cost.plan import StagePlan
    from csl_dist.cost.rates import Rates


def forecast_table(made: "Forecast") -> Table:
    """What is left of a run, and about how long each stage takes."""
    table = headed_table("to do", "how much")
    table.add_column("about", justify="right", no_wrap=True)
    for stage in made.stages:
        last = stage is made.stages[-1]
        table.add_row(stage.stage, stage.work, time_words(stage.seconds), end_section=last)
    disk = f"{size_words(made.num_bytes)} to write"
    if made.free_bytes is not None:
        disk += f", {size_words(made.free_bytes)} free"
    table.add_row("all", f"{made.machine}; {disk}", time_words(made.seconds))
    return table


def plan_table(stages: Sequence["StagePlan"]) -> Table:
    """What each stage of a planned run takes, and all of them."""
    numbers = ("units", "PFLOP", "GB", "hours")
    table = headed_table("stage", *numbers, "limited by", numbers=numbers)
    for stage in stages:
        table.add_row(
            stage.stage,
            f"{stage.num_units:,}",
            f"{stage.flops / 1e15:,.1f}",
            f"{stage.num_bytes / 1e9:,.1f}",
            f"{stage.hours:,.2f}",
            stage.limit,
            end_section=stage is stages[-1],
        )
    table.add_row(
        "all",
        f"{sum(stage.num_units for stage in stages):,}",
        f"{sum(stage.flops for stage in stages) / 1e15:,.1f}",
        f"{sum(stage.num_bytes for stage in stages) / 1e9:,.1f}",
        f"{sum(stage.hours for stage in stages):,.2f}",
    )
    return table


def rates_table(rates: "Rates") -> Table:
    """What was measured."""
    numbers = ("TFLOP/s", "frames a pass")
    table = headed_table("stage", *numbers, numbers=numbers, title=rates.device)
    for name, rate in rates.stages.items():
        table.add_row(name, f"{rate.flops_per_second / 1e12:.3g}", f"{rate.num_frames:,}")
    if rates.decoded_per_cpu is not None:
        table.caption = f"decoding: {rates.decoded_per_cpu:,.0f} frames/s a core"
        table.caption_justify = "left"
    return table
