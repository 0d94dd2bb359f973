"""Commands that look at a run: `csl status`, `csl report`."""

from csl_dist.cli.app import Root, app, console, say


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
    from csl_dist.run import open_run
    from csl_dist.run_file import read_run_config

    say(f"report: {write_report(open_run(read_run_config(root)))}")
