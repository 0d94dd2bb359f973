"""`csl lint`: what labels alone give away, without a model."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from csl_dist.cli.app import Overrides, app, console, say
from csl_dist.errors import ConfigError
from csl_dist.storage.output import output_file

if TYPE_CHECKING:
    from csl_dist.lint.run import LintResult


@app.command(rich_help_panel="Dataset")
def lint(
    where: Annotated[
        str,
        typer.Argument(
            help="A folder or file of labels, a config, or a run root.", metavar="PATH|CONFIG|ROOT"
        ),
    ],
    fps: Annotated[
        float | None, typer.Option(help="Label entries per second, where files do not say.")
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            metavar="REGEX",
            help="Person or group that is seen, by a pattern in the id: '^P[0-9]+'.",
        ),
    ] = None,
    procedure: Annotated[
        str | None,
        typer.Option(
            metavar="REGEX", help="What is performed, by a pattern in the id: '\\[a-z]+$'."
        ),
    ] = None,
    level: Annotated[
        float,
        typer.Option(help="Least probability of an error, for order, missing and inserted steps."),
    ] = 0.5,
    top: Annotated[
        int, typer.Option(help="Findings of each kind to print, worst first; 0 prints all.")
    ] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False,
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="Write findings as CSV.")] = None,
    segments: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write all evidence by segment, as CSV or .parquet."),
    ] = None,
    page: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write an HTML page that draws it.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 where anything is found.")
    ] = False,
    ignore: Annotated[
        list[str],
        typer.Option(metavar="KIND", help="A kind that is not told: duplicate. May be repeated."),
    ] = [],  # noqa: B006
    accepted: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Findings that are known to be right, a CSV of --csv; not told again.",
        ),
    ] = None,
    overrides: Overrides = [],  # noqa: B006
) -> None:
    """Look at labels alone: steps out of order, odd durations, names, files. No model, seconds."""
    from csl_dist.lint import output
    from csl_dist.lint.accepted import without_accepted, without_kinds
    from csl_dist.lint.api import lint as lint_labels
    from csl_dist.lint.reading import LintSettings
    from csl_dist.lint.sources import Options

    _require(0 < level < 1, f"--level is {level:g}, expected a probability between 0 and 1")
    _require(fps is None or 0 < fps < 1e6, f"--fps is {fps}, expected a number above 0")
    _require(top >= 0, f"--top is {top}, expected 0 or more")
    options = Options(fps=fps, group=group, procedure=procedure, overrides=tuple(overrides))
    written = {"findings": csv, "segments": segments, "page": page}
    files = {name: path for name, path in written.items() if path is not None}
    _require(
        len(set(files.values())) == len(files),
        f"{' and '.join(files)} can't be written to one file",
    )
    result = lint_labels(where, options=options, settings=LintSettings(probability=level))
    result = without_kinds(result, ignore)
    if accepted is not None:
        result = without_accepted(result, accepted)
    writers = {
        "findings": (output.write_findings, output.FINDINGS_BEGIN),
        "segments": (output.write_segments, output.segments_begin(segments)),
        "page": (output.write_page, output.PAGE_BEGINS),
    }
    read = [str(path) for path in (where, accepted) if path is not None and Path(path).is_file()]
    read += [about.file for about in result.segments.files if about.file]
    for name, path in files.items():
        write, begins = writers[name]
        write(result, output_file(path, read, begins=begins))
    if as_json:
        json.dump(output.as_json(result), sys.stdout, indent=2, ensure_ascii=False)
        sys.stdout.write("\n")
    else:
        _print(result, top, files)
    if strict and result.findings:
        raise typer.Exit(1)


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ConfigError(otherwise)


def _print(result: "LintResult", top: int, files: dict[str, Path]) -> None:
    from csl_dist.cli.tables.lint import (
        agreement_table,
        closing_line,
        kind_tables,
        nearly_line,
        notes,
    )

    for table in kind_tables(result, top=top, width=console.width):
        console.print(table)
    if result.agreement.pairs:
        console.print(agreement_table(result))
    for line in (*(f"note: {note}" for note in notes(result)), closing_line(result)):
        console.print(line, highlight=False, markup=False)
    nearly = nearly_line(result)
    if nearly is not None:
        say(nearly)
    for name, path in files.items():
        say(f"{name}: {path}")
    if result.findings and "page" not in files:
        say("next: --page lint.html draws each odd video beside the usual order of steps")
