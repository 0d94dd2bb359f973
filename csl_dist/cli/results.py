"""Commands that look at a run: `csl status`, `report`, `export`; and `relabel`."""

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from csl_dist.cli.app import OtherScores, Revision, Root, app, console, say
from csl_dist.errors import ConfigError
from csl_dist.words import counted

if TYPE_CHECKING:
    import pandas as pd


@app.command(rich_help_panel="Results")
def status(root: Root) -> None:
    """Show how far a run is."""
    from csl_dist.audit.reader import open_audit
    from csl_dist.audit.status import run_status
    from csl_dist.cli.tables.results import status_table
    from csl_dist.predict.pulse import read_pulse
    from csl_dist.storage.lock import holder_of
    from csl_dist.storage.paths import RunPaths
    from csl_dist.storage.url import Storage

    console.print(status_table(run_status(root)))
    paths = RunPaths(Storage(root))
    holder, pulse = holder_of(paths), read_pulse(paths)
    if holder is not None:
        say(f"at work: {holder.sentence()}")
    if pulse is not None:
        say(pulse.report())
    rests_on = open_audit(root).rests_on
    if rests_on is not None:
        say(rests_on)


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
        Path | None,
        typer.Option(help="Folder for the paper's figures, PNG and PDF.", metavar="DIR"),
    ] = None,
    scores: OtherScores = [],  # noqa: B006
    revision: Revision = None,
) -> None:
    """Write the HTML report, and figures for print if asked for."""
    from csl_dist.audit.reader import open_audit
    from csl_dist.evaluate.brought import named_folders, read_scores
    from csl_dist.report import write_report
    from csl_dist.types import Media

    folders = named_folders(scores)
    if folders and figures is None:
        raise ConfigError("--scores: other methods are drawn in figures; give --figures DIR too")
    audit = open_audit(root, revision=revision)
    say(f"report: {write_report(audit, most=top)}")
    has_pixels = any(v.media is not Media.FEATURES for v in audit.videos_by_id.values())
    if has_pixels and importlib.util.find_spec("av") is None:
        say("it has no pictures of frames; these need: pip install 'csl_dist[video]'")
    if figures is not None:
        from csl_dist.report.exhibits import Exhibits
        from csl_dist.report.figures import write_figures

        annotations = [audit.annotation(video) for video in Exhibits(audit).videos]
        brought = read_scores(folders, annotations)
        say(f"figures: {write_figures(audit, figures, brought)} in {figures}")


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
    from csl_dist.audit.reader import open_audit
    from csl_dist.audit.relabel import UnchangedLabelsError
    from csl_dist.audit.relabel import relabel as relabel_run
    from csl_dist.cli.tables.results import corrections_table, flag_table
    from csl_dist.report import write_report
    from csl_dist.storage.lock import RootLock
    from csl_dist.storage.paths import RunPaths
    from csl_dist.storage.url import Storage

    with RootLock(RunPaths(Storage(root)), "csl relabel"):
        try:
            made = relabel_run(root, labels)
        except UnchangedLabelsError:
            # An earlier command may have been killed between its audit and its report.
            write_report(open_audit(root))
            raise
    corrections, by_edits = made.corrections, made.after.settings.flag.by_edits
    console.print(corrections_table(corrections, by_edits=by_edits, width=console.width))
    lower = corrections.score_after < corrections.score_before
    say(
        f"corrected: {counted(len(lower), 'span')} in "
        f"{counted(corrections.video.nunique(), 'video')}; "
        f"{int(lower.sum())} are less suspicious now, {_outcome(corrections, by_edits=by_edits)}"
    )
    for exchange in made.settled_exchanges:
        say(f"{exchange.one} and {exchange.other} no longer seem to have each other's labels")
    for exchange in made.after.exchanges():
        say(exchange.sentence())
    say(
        f"flags: {len(made.before.flags())} before, {len(made.after.flags())} now; "
        f"{len(made.resolved)} resolved, {len(made.new)} new"
    )
    if len(made.still_suspicious):
        say("still suspicious in the corrected videos:")
        console.print(flag_table(made.still_suspicious, width=console.width))
    number, earlier = made.after.revision, made.before.revision
    say(f"audit {number}: {write_report(made.after)}; audit {earlier} stays: --revision {earlier}")


def _outcome(corrections: "pd.DataFrame", *, by_edits: bool) -> str:
    """How many corrected spans are no longer in doubt, of those that were."""
    below, flagged = corrections.below_threshold, corrections.was_flagged
    if not by_edits:
        return f"{int(below.sum())} are below the threshold"
    if not flagged.any():
        return "none was flagged before"
    return f"{int((below & flagged).sum())} of {int(flagged.sum())} flagged ones no longer flagged"


class ListByDefault(TyperGroup):
    """`csl audits ROOT` is `csl audits ls ROOT`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            args = ["ls", *args]
        return super().parse_args(ctx, args)


audits = typer.Typer(
    cls=ListByDefault, no_args_is_help=True, help="Audits of a run, each written once."
)
app.add_typer(audits, name="audits", rich_help_panel="Results")


@audits.command("ls")
def list_audits(root: Root) -> None:
    """List the audits of a run, and what changed from one to the next."""
    from csl_dist.audit.changes import audit_lines
    from csl_dist.cli.tables.results import audits_table

    lines = audit_lines(root)
    if not lines:
        say(f"{root} has no audit yet; run `csl audit` on its config")
        return
    console.print(audits_table(lines))


@audits.command("rm")
def remove_audit(
    root: Root,
    number: Annotated[int, typer.Argument(min=1, help="Number of the audit.", metavar="NUMBER")],
) -> None:
    """Remove an audit, and scores that no other has; its number is not used again."""
    from csl_dist.audit.revision import AuditStore
    from csl_dist.storage.lock import RootLock
    from csl_dist.storage.paths import RunPaths
    from csl_dist.storage.run_file import read_run_file
    from csl_dist.storage.url import Storage

    read_run_file(root)
    paths = RunPaths(Storage(root))
    with RootLock(paths, "csl audits rm"):
        AuditStore(paths).remove(number)
    say(f"removed: audit {number} of {root}")


@app.command(rich_help_panel="Results")
def diff(
    root: Root,
    first: Annotated[int, typer.Argument(min=1, metavar="FIRST")],
    second: Annotated[int, typer.Argument(min=1, metavar="SECOND")],
) -> None:
    """Show which flags came, went and moved from one audit to another."""
    from csl_dist.audit.changes import flag_changes
    from csl_dist.audit.reader import open_audit
    from csl_dist.cli.tables.results import flag_table, moved_table

    changes = flag_changes(open_audit(root, revision=first), open_audit(root, revision=second))
    for heading, flags in (("came", changes.came), ("went", changes.went)):
        if len(flags):
            say(f"{heading}: {len(flags)}")
            console.print(flag_table(flags, width=console.width))
    if len(changes.moved):
        say(f"moved: {len(changes.moved)}")
        console.print(moved_table(changes.moved, width=console.width))
    say(
        f"flags: {len(changes.came)} came, {len(changes.went)} went, {len(changes.moved)} moved, "
        f"{changes.num_same} stayed"
    )
