"""Commands that do the work: `csl demo`, `run`, and one for each stage."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from csl_dist.cli.app import (
    ConfigPath,
    OtherScores,
    Overrides,
    Verbose,
    app,
    busy,
    console,
    load_config,
    load_writable,
    say,
    say_run,
    shown_path,
)
from csl_dist.errors import StorageError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from csl_dist.cluster.stage import Stage
    from csl_dist.config import RunConfig
    from csl_dist.training.inputs import Inputs

DEMO_CONFIG = Path(__file__).parents[1] / "data" / "demo.yaml"
LOOKING = "looking at the data, measuring this machine"


@app.command(rich_help_panel="Run")
def demo(
    root: Annotated[Path, typer.Option(help="Where the demo goes.")] = Path("runs/demo"),
    overrides: Overrides = [],  # noqa: B006
    verbose: Verbose = False,
) -> None:
    """Write the embedded dataset and run everything on it."""
    folder = root / "dataset"
    paths = [f"root={root}", f"dataset.path={folder}", f"dataset.truth={folder}/errors.csv"]
    config = load_writable(DEMO_CONFIG, [*paths, *overrides])
    from csl_dist.data.demo import write_demo

    say(f"dataset: handwritten digits as mp4 files in {folder}")
    write_demo(folder)
    _run_all(config, "demo", verbose)


@app.command(rich_help_panel="Run")
def extract(config: ConfigPath, overrides: Overrides = [], verbose: Verbose = False) -> None:  # noqa: B006
    """Turn frames into features."""
    loaded = load_writable(config, overrides)
    from csl_dist import pipeline

    with _opened(loaded, "extract", verbose) as stage:
        pipeline.extract(stage)


@app.command(rich_help_panel="Run")
def train(config: ConfigPath, overrides: Overrides = [], verbose: Verbose = False) -> None:  # noqa: B006
    """Train every scorer, keeping a checkpoint of every epoch."""
    loaded = load_writable(config, overrides)
    from csl_dist import pipeline

    with _opened(loaded, "train", verbose) as stage:
        pipeline.train(stage)


@app.command(rich_help_panel="Run")
def audit(
    config: ConfigPath,
    follow: Annotated[
        bool, typer.Option("--follow", help="Take checkpoints as a training publishes them.")
    ] = False,
    overrides: Overrides = [],  # noqa: B006
    verbose: Verbose = False,
) -> None:
    """Run every checkpoint over the held-out videos, and flag suspicious spans."""
    loaded = load_writable(config, overrides)
    from csl_dist import pipeline

    with _opened(loaded, "audit", verbose) as stage:
        pipeline.audit(stage, follow=follow)
        # The report is that of the newest audit, which this one is.
        say(f"report: {pipeline.report(stage)}")


@app.command(rich_help_panel="Run")
def evaluate(
    config: ConfigPath,
    scores: OtherScores = [],  # noqa: B006
    overrides: Overrides = [],  # noqa: B006
) -> None:
    """Compare the scores with known errors."""
    loaded = load_writable(config, overrides)
    from csl_dist import pipeline
    from csl_dist.evaluate.brought import named_folders

    folders = named_folders(scores)
    with _opened(loaded, "evaluate", False) as stage:
        metrics = pipeline.evaluate(stage, folders)
    _print_metrics(metrics)


@app.command(rich_help_panel="Run")
def run(
    config: ConfigPath,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what will be done and how long it takes; stop.")
    ] = False,
    overrides: Overrides = [],  # noqa: B006
    verbose: Verbose = False,
) -> None:
    """Do all stages, each from where it stopped."""
    if dry_run:
        with busy(LOOKING):
            from csl_dist.training.inputs import open_inputs

            _say_ahead(open_inputs(load_config(config, overrides)))
        say_run(config, overrides)
        return
    _run_all(load_writable(config, overrides), "run", verbose)


def _opened(config: "RunConfig", command: str, verbose: bool) -> "AbstractContextManager[Stage]":
    from csl_dist import pipeline

    return pipeline.open_stage(config, f"csl {command}", console=console, verbose=verbose)


def _run_all(config: "RunConfig", command: str, verbose: bool) -> None:
    with busy(LOOKING):
        from csl_dist import pipeline
        from csl_dist.training.inputs import open_inputs

        with pipeline.damage_forgotten(config, f"csl {command}"):
            inputs = open_inputs(config)
            _say_ahead(inputs)
    with pipeline.open_stage(
        config, f"csl {command}", inputs=inputs, console=console, verbose=verbose
    ) as stage:
        metrics = pipeline.run(stage)
        if metrics is not None:
            _print_metrics(metrics)
        say(f"report: {pipeline.report(stage)}")
    say(f"next: csl serve {shlex.quote(shown_path(config.root))}")


def _say_ahead(inputs: "Inputs") -> None:
    """Says what is left to do and how long it takes; refuses what the disk has no room for."""
    from csl_dist.cli.tables.cost import forecast_table
    from csl_dist.cluster.local import is_local
    from csl_dist.cost.forecast import forecast, shares_left
    from csl_dist.cost.recipes import this_machine

    left = shares_left(inputs)
    if not any(left.values()):
        say("all that takes time is done already")
        return
    config = inputs.run.config
    made = forecast(config, inputs.run.dataset, this_machine(), left=left)
    refusal = made.refusal(config.root)
    if is_local():
        console.print(forecast_table(made))
        advice = made.advice()
        if advice is not None:
            say(advice)
    else:
        say("time: not known beforehand on a cluster; `csl plan` estimates it")
    if refusal is not None:
        raise StorageError(refusal)


def _print_metrics(metrics: dict[str, Any]) -> None:
    from csl_dist.cli.tables.metrics import (
        budget_sentence,
        flag_sentence,
        metrics_table,
        rivals_table,
    )

    console.print(metrics_table(metrics))
    console.print(rivals_table(metrics))
    for kind in metrics["top_percent_minutes"]:
        say(budget_sentence(metrics, kind))
    say(flag_sentence(metrics))
