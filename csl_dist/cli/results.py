"""Commands that look at a run: `csl status`, `csl report`, `csl export`."""

from pathlib import Path
from typing import Annotated

import typer

from csl_dist.cli.app import Revision, Root, app, console, say


@app.command(rich_help_panel="Results")
def status(root: Root) -> None:
    """Show how far a run is."""
    from csl_dist.audit.status import run_status
    from csl_dist.cli import tables
    from csl_dist.predict.pulse import read_pulse
    from csl_dist.storage.paths import RunLayout
    from csl_dist.storage.url import Storage

    console.print(tables.status_table(run_status(root)))
    pulse = read_pulse(RunLayout(Storage(root)))
    if pulse is not None:
        say(pulse.report())


@app.command(rich_help_panel="Results")
def export(
    root: Root,
    form: Annotated[
        str, typer.Option("--format", help="Tool or file format; an unknown name lists all.")
    ],
    out: Annotated[Path, typer.Option(help="File or folder to write.")],
    revision: Revision = None,
) -> None:
    """Write flags for another tool, such as label-studio or cvat, or as a table, such as csv."""
    from csl_dist.audit.reader import open_audit
    from csl_dist.export import export as export_findings

    say(f"{form}: {export_findings(open_audit(root, revision=revision), form, out)}")


@app.command(rich_help_panel="Results")
def report(
    root: Root,
    top: Annotated[int, typer.Option(help="Videos shown in full, worst first.")] = 40,
    figures: Annotated[
        Path | None, typer.Option(help="Folder for figures as PNG and PDF.", metavar="DIR")
    ] = None,
    revision: Revision = None,
) -> None:
    """Write the HTML report, and figures for print if asked for."""
    from csl_dist.audit.reader import open_audit
    from csl_dist.report import write_report

    audit = open_audit(root, revision=revision)
    say(f"report: {write_report(audit, most=top)}")
    if figures is not None:
        from csl_dist.report.figures import write_figures

        say(f"figures: {write_figures(audit, figures)} in {figures}")
