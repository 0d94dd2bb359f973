"""The `csl` command.

A user's mistake ends in one sentence on stderr and exit code 2; an interrupted command says how to
go on and exits with 130. Heavy imports wait until a command needs them.
"""

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
import yaml
from rich.console import Console
from rich.markup import escape

from csl_dist.config import RunConfig, load_config, parse_config
from csl_dist.errors import ConfigError, CslError, DataError
from csl_dist.records import Split

if TYPE_CHECKING:
    from csl_dist.remote.stage import Stage

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Find wrong labels in densely annotated video.",
)
console = Console()
stderr = Console(stderr=True)

ConfigPath = Annotated[Path, typer.Argument(help="YAML config of the run.", metavar="CONFIG")]
Overrides = Annotated[
    list[str],
    typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Override one config value."),
]
Verbose = Annotated[bool, typer.Option("--verbose", help="Show what Ray has to say.")]
Root = Annotated[str, typer.Argument(help="Run root: a path or URL.", metavar="ROOT")]

INTERRUPTED = 130
"""Exit code of a command that Ctrl-C ended; typer returns it too."""

DEMO_CONFIG = Path(__file__).parent / "demo.yaml"


def main(*command: str) -> None:
    """Runs the command line and exits; `command` goes before what the user typed."""
    arguments = [*command, *sys.argv[1:]]
    try:
        app(arguments)
        code = 0
    except CslError as error:
        _complain("error", str(error))
        code = 2
    except SystemExit as end:  # typer's own way to end, after wrong usage or Ctrl-C
        code = end.code if isinstance(end.code, int) else 1
    if code == INTERRUPTED:
        _say_how_to_resume(arguments)
        # A local Ray ends with this process. Shutting it down first, while its threads still
        # wait for work that will never come, can crash.
        os._exit(INTERRUPTED)
    _leave_ray()
    sys.exit(code)


def _complain(kind: str, sentence: str) -> None:
    """One line on stderr; what stands in brackets is text, not markup."""
    stderr.print(f"[red]{kind}:[/] {escape(sentence)}", highlight=False, soft_wrap=True)


def _say_how_to_resume(arguments: list[str]) -> None:
    resume = shlex.join(["csl", *arguments])
    stderr.print()
    stderr.print(
        f"interrupted; what is done is kept, go on with: {resume}",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
    sys.stdout.flush()
    sys.stderr.flush()


@app.command()
def demo(
    root: Annotated[Path, typer.Option(help="Where the demo goes.")] = Path("runs/demo"),
    overrides: Overrides = [],  # noqa: B006
    verbose: Verbose = False,
) -> None:
    """Write the embedded dataset and run everything on it."""
    from csl_dist.datasets.demo import write_demo

    folder = root / "dataset"
    paths = [f"root={root}", f"dataset.path={folder}", f"dataset.truth={folder}/errors.csv"]
    config = load_config(DEMO_CONFIG, [*paths, *overrides])
    _say(f"dataset: handwritten digits as mp4 files in {folder}")
    write_demo(folder)
    _run_all(config, verbose)


@app.command()
def init(
    layout: Annotated[str, typer.Argument(help="Its layout, or `auto`.", metavar="LAYOUT")],
    path: Annotated[Path, typer.Argument(help="Folder of the dataset.", metavar="PATH")],
    out: Annotated[Path, typer.Option(help="Config file to write.")] = Path("csl.yaml"),
) -> None:
    """Look at a dataset on disk and write a config for it."""
    from csl_dist.datasets import read_dataset
    from csl_dist.init import config_text, draft_config

    if out.exists():
        raise ConfigError(f"{out} exists already; remove it, or give another --out")
    path = path.absolute()
    draft = draft_config(layout, path, out.absolute())
    text = config_text(draft, name=path.stem or "mine")
    dataset = read_dataset(parse_config(yaml.safe_load(text), where=str(out)).dataset)
    try:
        out.write_text(text)
    except OSError as error:
        raise ConfigError(f"can't write {out}: {error.strerror}") from error
    for problem in dataset.problems:
        _complain("problem", problem)
    _say(
        f"{out}: {draft.layout} layout, {len(dataset.videos)} videos, "
        f"{len(dataset.classes)} classes; next: csl check {out}"
    )


@app.command()
def check(config: ConfigPath, overrides: Overrides = []) -> None:  # noqa: B006
    """Read every label, probe every video, and print what is there and what is wrong."""
    from csl_dist import tables
    from csl_dist.check import all_problems, look_at_videos, orientation, summaries
    from csl_dist.datasets import read_dataset
    from csl_dist.remote.progress import progress_bar

    loaded = load_config(config, overrides)
    dataset = read_dataset(loaded.dataset)
    facts = []
    with progress_bar(console, "check: videos", total=len(dataset.videos)) as bar:
        for found in look_at_videos(dataset, loaded.dataset):
            facts.append(found)
            bar.advance()
    lines = summaries(dataset, facts)
    console.print(tables.dataset_table(lines), tables.class_table(dataset.classes, lines))
    turned = orientation(facts)
    if turned is not None:
        _say(turned)
    if not dataset.in_split(Split.VAL) and loaded.flag.rule == "validation":
        _say(
            "threshold: there are no validation videos to set it, so the worst "
            f"{loaded.flag.percent:g} % of the audited frames will be flagged"
        )
    problems = all_problems(dataset, facts, loaded)
    for problem in problems:
        _complain("problem", problem)
    if problems:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        raise DataError(f"{config}: {count} found; mend what is wrong, then check again")
    console.print("no problems found")


@app.command()
def extract(config: ConfigPath, overrides: Overrides = [], verbose: Verbose = False) -> None:  # noqa: B006
    """Turn frames into features."""
    from csl_dist.remote.extraction import extract as extract_stage

    extract_stage(_stage(load_config(config, overrides), verbose))


@app.command()
def train(config: ConfigPath, overrides: Overrides = [], verbose: Verbose = False) -> None:  # noqa: B006
    """Train every scorer, keeping a checkpoint of every epoch."""
    from csl_dist.remote.training import train as train_stage

    train_stage(_stage(load_config(config, overrides), verbose))


@app.command()
def audit(config: ConfigPath, overrides: Overrides = [], verbose: Verbose = False) -> None:  # noqa: B006
    """Score the held-out videos with every checkpoint, and flag suspicious spans."""
    _audit(_stage(load_config(config, overrides), verbose))


@app.command()
def evaluate(config: ConfigPath, overrides: Overrides = []) -> None:  # noqa: B006
    """Compare the scores with known errors."""
    stage = _stage(load_config(config, overrides), False)
    if not stage.run.has_known_errors():
        raise DataError(
            f"{config} names no known errors; set dataset.truth to a CSV of them, plant some with "
            "`corrupt`, or read the flags with `csl report`"
        )
    _evaluate(stage)


@app.command()
def run(config: ConfigPath, overrides: Overrides = [], verbose: Verbose = False) -> None:  # noqa: B006
    """Do all stages, each from where it stopped."""
    _run_all(load_config(config, overrides), verbose)


@app.command()
def status(root: Root) -> None:
    """Show how far a run is."""
    from csl_dist import tables
    from csl_dist.status import run_status

    console.print(tables.status_table(run_status(root)))


@app.command()
def report(root: Root) -> None:
    """Write the HTML report."""
    from csl_dist.report import write_report
    from csl_dist.run import open_run, read_run_config

    _say(f"report: {write_report(open_run(read_run_config(root)))}")


def _say(sentence: str) -> None:
    console.print(sentence, highlight=False, markup=False, soft_wrap=True)


def _stage(config: RunConfig, verbose: bool) -> "Stage":
    from csl_dist.remote.stage import Stage
    from csl_dist.run import open_run, write_run_file

    opened = open_run(config)
    write_run_file(opened)
    return Stage(run=opened, console=console, verbose=verbose)


def _run_all(config: RunConfig, verbose: bool) -> None:
    from csl_dist.remote.extraction import extract as extract_stage
    from csl_dist.remote.training import train as train_stage
    from csl_dist.report import write_report

    stage = _stage(config, verbose)
    if stage.run.sources and config.features.weights == "random":
        stage.say(f"encoder: ResNet-18 with random weights, seed {config.features.seed}")
    extract_stage(stage)
    train_stage(stage)
    _audit(stage)
    if stage.run.has_known_errors():
        _evaluate(stage)
    _say(f"report: {write_report(stage.run)}")


def _audit(stage: "Stage") -> None:
    from csl_dist.findings import write_flags
    from csl_dist.remote.reduction import reduce
    from csl_dist.remote.scoring import score

    score(stage)
    reduce(stage)
    stage.say(f"flags: {write_flags(stage.run)} spans to review")


def _evaluate(stage: "Stage") -> None:
    from csl_dist import tables
    from csl_dist.findings import write_metrics

    console.print(tables.metrics_table(write_metrics(stage.run)))


def _leave_ray() -> None:
    """Ends a local Ray, if one was started."""
    if "ray" in sys.modules:
        from csl_dist.remote.session import disconnect

        disconnect()
