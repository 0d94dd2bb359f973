"""The command that audits again under corrected labels: `csl relabel`."""

from pathlib import Path
from typing import Annotated

import typer

from csl_dist.cli.app import Root, app, console, say


@app.command(rich_help_panel="Results")
def relabel(
    root: Root,
    labels: Annotated[
        Path,
        typer.Argument(
            help="Corrected labels, in the layout of the dataset; of some videos, or of all.",
            metavar="LABELS",
        ),
    ],
) -> None:
    """Audit again under corrected labels, without a model; earlier audits stay."""
    from csl_dist.audit.relabel import relabel as relabel_run
    from csl_dist.cli import query_tables as answers
    from csl_dist.report import write_report

    made = relabel_run(root, labels)
    console.print(answers.corrections_table(made.corrections))
    lower = made.corrections.score_after < made.corrections.score_before
    below = made.corrections.below_threshold
    say(
        f"corrected: {len(lower)} spans in {len(made.after.verdict.changed)} videos; "
        f"{int(lower.sum())} are less suspicious now, {int(below.sum())} are below the threshold"
    )
    say(
        f"flags: {len(made.before.flags())} before, {len(made.after.flags())} now; "
        f"{len(made.resolved)} resolved, {len(made.new)} new"
    )
    if len(made.still_suspicious):
        say("still suspicious in the corrected videos:")
        console.print(answers.flag_table(made.still_suspicious))
    number, earlier = made.after.revision, made.before.revision
    say(f"audit {number}: {write_report(made.after)}; audit {earlier} stays: --revision {earlier}")
