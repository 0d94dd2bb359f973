"""Commands that do the work: `csl demo`, `run`, and one for each stage."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from csl_dist.cli.app import ConfigPath, Overrides, Verbose, app, console, say
from csl_dist.config import RunConfig, load_config
from csl_dist.errors import DataError

if TYPE_CHECKING:
    from csl_dist.cluster.stage import Stage

DEMO_CONFIG = Path(__file__).parents[1] / "data" / "demo.yaml"


@app.command(rich_help_panel="Run")
def demo(
    root: Annotated[Path, typer.Option(help="Where the demo goes.")] = Path("runs/demo"),
    overrides: Overrides = [],  # noqa: B006
    verbose: Verbose = False,
) -> None:
    """Write the embedded dataset and run everything on it."""
    from csl_dist.data.demo import write_demo

    folder = root / "dataset"
    paths = [f"root={root}", f"dataset.path={folder}", f"dataset.truth={folder}/errors.csv"]
    config = load_config(DEMO_CONFIG, [*paths, *overrides])
    say(f"dataset: handwritten digits as mp4 files in {folder}")
    write_demo(folder)
    _run_all(config, verbose)


@app.command(rich_help_panel="Run")
def extract(config: ConfigPath, overrides: Overrides = [], verbose: Verbose = False) -> None:  # noqa: B006
    """Turn frames into features."""
    _extract(open_stage(load_config(config, overrides), verbose))


@app.command(rich_help_panel="Run")
def train(config: ConfigPath, overrides: Overrides = [], verbose: Verbose = False) -> None:  # noqa: B006
    """Train every scorer, keeping a checkpoint of every epoch."""
    from csl_dist.training.stage import train as train_stage

    train_stage(open_stage(load_config(config, overrides), verbose))


@app.command(rich_help_panel="Run")
def audit(
    config: ConfigPath,
    follow: Annotated[
        bool, typer.Option("--follow", help="Score checkpoints as a training publishes them.")
    ] = False,
    overrides: Overrides = [],  # noqa: B006
    verbose: Verbose = False,
) -> None:
    """Score the held-out videos with every checkpoint, and flag suspicious spans."""
    from csl_dist.predict.follow import score_and_follow
    from csl_dist.predict.stage import score

    stage = open_stage(load_config(config, overrides), verbose)
    if follow:
        score_and_follow(stage)
    else:
        score(stage)
    _find(stage)


@app.command(rich_help_panel="Run")
def evaluate(config: ConfigPath, overrides: Overrides = []) -> None:  # noqa: B006
    """Compare the scores with known errors."""
    stage = open_stage(load_config(config, overrides), False)
    if not stage.run.has_known_errors():
        raise DataError(
            f"{config} names no known errors; set dataset.truth to a CSV of them, plant some with "
            "`corrupt`, or read the flags with `csl report`"
        )
    _evaluate(stage)


@app.command(rich_help_panel="Run")
def run(config: ConfigPath, overrides: Overrides = [], verbose: Verbose = False) -> None:  # noqa: B006
    """Do all stages, each from where it stopped."""
    _run_all(load_config(config, overrides), verbose)


def open_stage(config: RunConfig, verbose: bool) -> "Stage":
    from csl_dist.cluster.stage import Stage
    from csl_dist.run import open_run, write_run_file

    opened = open_run(config)
    write_run_file(opened)
    return Stage(run=opened, console=console, verbose=verbose)


def _run_all(config: RunConfig, verbose: bool) -> None:
    from csl_dist.audit.reader import open_audit
    from csl_dist.predict.follow import train_and_score
    from csl_dist.report import write_report

    stage = open_stage(config, verbose)
    _extract(stage)
    train_and_score(stage)
    _find(stage)
    if stage.run.has_known_errors():
        _evaluate(stage)
    say(f"report: {write_report(open_audit(config.root))}")


def _extract(stage: "Stage") -> None:
    from csl_dist.features.adapt import adapt
    from csl_dist.features.stage import extract as extract_stage

    features = stage.run.config.features
    if stage.run.sources and features.weights == "random":
        stage.say(f"encoder: ResNet-18 with random weights, seed {features.seed}")
    extract_stage(stage)
    adapt(stage)


def _find(stage: "Stage") -> None:
    from csl_dist.flag.publish import publish_verdict
    from csl_dist.flag.rehearse import write_calibration
    from csl_dist.flag.stage import write_flags, write_video_outliers
    from csl_dist.score.stage import reduce

    reduce(stage)
    stage.say(f"flags: {write_flags(stage.run)} spans to review")
    stage.say(f"calibration: {write_calibration(stage.run).sentence()}")
    outliers = write_video_outliers(stage.run)
    if outliers:
        stage.say(f"videos far off as a whole (another one's labels?): {', '.join(outliers)}")
    publish_verdict(stage.run)


def _evaluate(stage: "Stage") -> None:
    from csl_dist.cli import tables
    from csl_dist.evaluate.stage import write_metrics

    metrics = write_metrics(stage.run)
    console.print(tables.metrics_table(metrics))
    console.print(tables.rivals_table(metrics))
    for kind in metrics["top_percent_minutes"]:
        say(tables.budget_sentence(metrics, kind))
    say(tables.flag_sentence(metrics))
