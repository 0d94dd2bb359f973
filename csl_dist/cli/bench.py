"""Benchmarks: `csl bench extract` and its like."""

import json
from typing import Annotated, Any

import typer

from csl_dist.cli.app import app, console
from csl_dist.errors import ConfigError

bench = typer.Typer(no_args_is_help=True, help="Measure the product beside something simple.")
app.add_typer(bench, name="bench", rich_help_panel="Stores and speed")

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Repeats = Annotated[int, typer.Option(min=1, help="Measurements; the median counts.")]


@bench.command()
def extract(
    minutes: Annotated[float, typer.Option(min=0.1, help="Length of the video.")] = 60.0,
    repeats: Repeats = 1,
    as_json: AsJson = False,
) -> None:
    """Extraction beside the bare network and a plain loop."""
    from csl_dist.bench.extract import bench_extract

    _print(bench_extract(minutes, repeats), as_json)


@bench.command()
def train(repeats: Repeats = 3, as_json: AsJson = False) -> None:
    """A training worker beside a plain loop."""
    from csl_dist.bench.train import bench_train

    _print(bench_train(repeats), as_json)


@bench.command()
def score(
    repeats: Repeats = 3,
    cases: Annotated[
        list[str], typer.Option("--case", help="Only these; may be given repeatedly.")
    ] = [],  # noqa: B006
    as_json: AsJson = False,
) -> None:
    """Scoring beside a plain loop and the bare matrix multiplication."""
    from csl_dist.bench.score import CASES, bench_score

    unknown = sorted(set(cases) - set(CASES))
    if unknown:
        raise ConfigError(f"--case: {unknown[0]!r} is not one of {', '.join(CASES)}")
    _print(bench_score(repeats, cases or tuple(CASES)), as_json)


@bench.command()
def query(as_json: AsJson = False) -> None:
    """One frame's trajectory beside h5py, and one video's CSL under new labels."""
    from csl_dist.bench.query import bench_query

    _print(bench_query(), as_json)


@bench.command()
def serve(as_json: AsJson = False) -> None:
    """One frame's trajectory over HTTP, alone and with 32 clients, beside the library's call."""
    from csl_dist.bench.serve import bench_serve

    _print(bench_serve(), as_json)


def _print(figures: dict[str, Any], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(figures))
        return
    for name, value in figures.items():
        if isinstance(value, dict):
            parts = (f"{key} {number:,}" for key, number in value.items())
            console.print(f"{name:<20}{'  '.join(parts)}", highlight=False)
        else:
            console.print(f"{name:<20}{value:>10}", highlight=False)
