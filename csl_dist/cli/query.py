"""Commands that ask a run what it found: `csl query ROOT top`, `flags`, `videos` and others."""

import shlex
import sys
from collections.abc import Callable
from dataclasses import asdict, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from csl_dist.cli.app import Revision, Root, app, complain, console, say
from csl_dist.errors import ConfigError

if TYPE_CHECKING:
    import pandas as pd

    from csl_dist.audit.reader import Audit


class What(StrEnum):
    """What can be asked for."""

    TOP = "top"
    FLAGS = "flags"
    BELOW = "below"
    CONVENTIONS = "conventions"
    VIDEOS = "videos"
    SCORES = "scores"
    TRAJECTORY = "trajectory"


class Form(StrEnum):
    """How a table is printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


FILTERS = ("--top", "--video", "--class", "--kind", "--min-score", "--from", "--to")
READ = {
    **dict.fromkeys((What.TOP, What.FLAGS, What.BELOW), FILTERS),
    What.CONVENTIONS: (),
    What.VIDEOS: ("--top",),
    What.SCORES: ("--top", "--video", "--class", "--min-score", "--from", "--to", "--scorer"),
    What.TRAJECTORY: ("--video", "--frame", "--scorer"),
}
"""Options that say more closely what is asked for; any other would be silently ignored."""

NOTHING = dict.fromkeys(What, "nothing that fits what was asked for") | {
    What.TOP: "no span is flagged that fits what was asked for",
    What.FLAGS: "no span is flagged that fits what was asked for",
    What.CONVENTIONS: "no convention: no disagreement is that of most videos, or of one person",
}
"""In place of an empty table."""


@app.command(rich_help_panel="Results")
def query(
    root: Root,
    what: Annotated[What, typer.Argument(help="What to read.", metavar="WHAT")],
    form: Annotated[Form, typer.Option("--format", help="How to print it.")] = Form.TABLE,
    top: Annotated[int | None, typer.Option(min=1, help="Only so many of the worst.")] = None,
    video: Annotated[str | None, typer.Option(help="Id of a video.")] = None,
    label: Annotated[str | None, typer.Option("--class", help="Annotated or suggested.")] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            help="mislabel (wrong name), disorder (order), insert (step too many), missing, "
            "boundary or ambiguous."
        ),
    ] = None,
    min_score: Annotated[
        float | None,
        typer.Option(
            help="Least score: a flag's is the log-odds of an error, 0 is even; a frame's is the "
            "one that decides on flags, suspicion by the rule edits, else in the column deciding."
        ),
    ] = None,
    from_seconds: Annotated[float | None, typer.Option("--from", help="Seconds.")] = None,
    to_seconds: Annotated[float | None, typer.Option("--to", help="Seconds.")] = None,
    frame: Annotated[
        str | None, typer.Option(help="For trajectory: a frame, or a range such as 120:140.")
    ] = None,
    scorer: Annotated[str | None, typer.Option(help="Another scorer's view.")] = None,
    revision: Revision = None,
) -> None:
    """Read what a run found: WHAT is top, flags, below, conventions, videos, scores, trajectory.

    `below` is what is likelier right than wrong, next to be looked at.
    """
    from csl_dist.audit.reader import open_audit

    given = {
        **{"--top": top, "--video": video, "--class": label, "--kind": kind},
        **{"--min-score": min_score, "--from": from_seconds, "--to": to_seconds},
        **{"--frame": frame, "--scorer": scorer},
    }
    _refuse_unread(what, [name for name, value in given.items() if value is not None])
    if from_seconds is not None and to_seconds is not None and from_seconds > to_seconds:
        raise ConfigError(f"--from {from_seconds:g} is after --to {to_seconds:g}")
    audit = open_audit(root, revision=revision)

    def flags(most: int | None, *, below: bool = False) -> "pd.DataFrame":
        return audit.flags(
            top=most,
            below=below,
            video=video,
            label=label,
            kind=kind,
            min_score=min_score,
            from_seconds=from_seconds,
            to_seconds=to_seconds,
        )

    def scores() -> "pd.DataFrame":
        wanted = _required(video, what)
        table = audit.scores(wanted, scorer=scorer)
        if min_score is not None:
            table = table[audit.deciding_score(wanted) >= min_score]
        if label is not None:
            table = table[table.label == audit.known_class(label)]
        if from_seconds is not None:
            table = table[table.seconds >= from_seconds]
        if to_seconds is not None:
            table = table[table.seconds < to_seconds]
        return table.head(top or len(table))

    answers: dict[What, Callable[[], pd.DataFrame]] = {
        What.TOP: lambda: flags(top or 20),
        What.FLAGS: lambda: flags(top),
        What.BELOW: lambda: flags(top or 20, below=True),
        What.CONVENTIONS: lambda: _conventions(audit),
        What.VIDEOS: lambda: audit.videos().head(top or len(audit.videos_by_id)),
        What.SCORES: scores,
        What.TRAJECTORY: lambda: _trajectory(audit, _required(video, what), frame, scorer),
    }
    found = answers[what]()
    # Where there is no answer yet, its own error says so.
    for sentence in audit.missing():
        complain("not finished", sentence)
    if audit.rests_on is not None:
        complain("early", audit.rests_on)
    if what is What.TOP and form is Form.TABLE:
        for exchange in audit.exchanges():
            say(exchange.sentence())
    if form is Form.TABLE and found.empty:
        console.print(NOTHING[what], highlight=False)
    else:
        _print(found, form)
        if what in (What.TOP, What.BELOW) and form is Form.TABLE:
            total = len(flags(None, below=what is What.BELOW))
            if len(found) < total:
                say(f"the first {len(found)} of {total}; --top {total} shows all")
    if what is What.VIDEOS and form is Form.TABLE:
        from csl_dist.report.words import VIDEO_NOTE

        console.print(VIDEO_NOTE, markup=False, highlight=False)
    if what is What.TOP and form is Form.TABLE:
        _print_outlook(audit, root)


def _refuse_unread(what: What, given: list[str]) -> None:
    for name in given:
        if name not in READ[what]:
            own = f"it takes {', '.join(READ[what])}" if READ[what] else "it takes none such"
            raise ConfigError(f"csl query {what} does not take {name}; {own}")


def _print_outlook(audit: "Audit", root: str) -> None:
    """What the flags promise, and what is not among them."""
    calibration = audit.calibration()
    if calibration is None or not audit.settings.flag.by_edits:
        return
    console.print(calibration.sentence(), markup=False, highlight=False)
    num_below = len(audit.flags(below=True))
    if num_below:
        told = f"below the line: {num_below} more; csl query {shlex.quote(root)} below"
        console.print(told, markup=False, highlight=False)
    for convention in audit.conventions():
        console.print(f"convention: {convention.sentence()}", markup=False, highlight=False)


def _conventions(audit: "Audit") -> "pd.DataFrame":
    import pandas as pd

    from csl_dist.flag.edits.conventions import Convention

    columns = [field.name for field in fields(Convention)]
    return pd.DataFrame([asdict(told) for told in audit.conventions()], columns=columns)


def _required(video: str | None, what: What) -> str:
    if video is None:
        raise ConfigError(f"csl query {what} needs --video; `csl query ROOT videos` lists them")
    return video


def _trajectory(
    audit: "Audit", video: str, frame: str | None, scorer: str | None
) -> "pd.DataFrame":
    """A row for each frame and checkpoint: the loss, and what the checkpoint takes it for."""
    import numpy as np
    import pandas as pd

    frames = _frames(frame)
    losses_EN = audit.trajectory(video, frames=frames, scorer=scorer)
    logp = audit.to_xarray(video, frames=frames, scorer=scorer)
    num_checkpoints, num_frames = losses_EN.shape
    likeliest_NE = logp.argmax("class").transpose("frame", "checkpoint").to_numpy()
    highest_NE = logp.max("class").transpose("frame", "checkpoint").to_numpy()
    return pd.DataFrame(
        {
            "frame": np.repeat(logp["frame"].to_numpy(), num_checkpoints),
            "seconds": np.repeat(logp["seconds"].to_numpy(), num_checkpoints),
            "checkpoint": np.tile(logp["checkpoint"].to_numpy(), num_frames),
            "label": np.repeat(logp["label"].to_numpy(), num_checkpoints),
            "loss": losses_EN.T.ravel(),
            "likeliest": np.array(audit.classes)[likeliest_NE].ravel(),
            "probability": np.exp(highest_NE).ravel(),
        }
    )


def _frames(text: str | None) -> slice | int | None:
    """`120`, or `120:140` as half-open range."""
    if text is None:
        return None
    first, colon, last = text.partition(":")
    try:
        if not colon:
            return int(first)
        return slice(int(first) if first else None, int(last) if last else None)
    except ValueError:
        raise ConfigError(f"--frame is {text!r}, expected a frame or a range as 120:140") from None


def _print(table: "pd.DataFrame", form: Form) -> None:
    if form is Form.TABLE:
        from csl_dist.cli.tables.results import flag_table, frame_table
        from csl_dist.report.words import VIDEO_WORDS

        drawn = flag_table if "rank" in table.columns else frame_table
        console.print(drawn(table.rename(columns=VIDEO_WORDS), width=console.width))
    elif form is Form.JSON:
        sys.stdout.write(table.to_json(orient="records", indent=2, double_precision=6) + "\n")
    else:
        from csl_dist.storage.tables import without_formulas

        without_formulas(table).to_csv(sys.stdout, index=False, float_format="%.6g")
