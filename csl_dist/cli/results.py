"""Commands that look at a run: `csl status`, `csl report`, `csl export`."""

from pathlib import Path
from typing import Annotated

import typer

from csl_dist.cli.app import Revision, Root, app, console, say


@app.command()
def status(root: Root) -> None:
    """Show how far a run is."""
    from csl_dist import tables
    from csl_dist.status import run_status

    console.print(tables.status_table(run_status(root)))


@app.command()
def export(
    root: Root,
    form: Annotated[str, typer.Option("--format", help="The tool or file format.")],
    out: Annotated[Path, typer.Option(help="File or folder to write.")],
    revision: Revision = None,
) -> None:
    """Write findings for label-studio, fiftyone, cvat, activitynet, csv, parquet, hdf5."""
    from csl_dist.export import export as export_findings
    from csl_dist.query import open_audit

    say(f"{form}: {export_findings(open_audit(root, revision=revision), form, out)}")


@app.command()
def report(root: Root) -> None:
    """Write the HTML report."""
    from csl_dist.report import write_report
    from csl_dist.run import open_run
    from csl_dist.run_file import read_run_config

    say(f"report: {write_report(open_run(read_run_config(root)))}")
