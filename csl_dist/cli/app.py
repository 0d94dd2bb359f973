"""The `csl` application: how it ends, and what its commands share.

A user's mistake ends in one sentence on stderr and exit code 2; an interrupted command says how to
go on and exits with 130. Heavy imports wait until a command needs them.
"""

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from csl_dist.errors import CslError

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

Revision = Annotated[int | None, typer.Option(help="Number of the audit; the newest if left out.")]

INTERRUPTED = 130
"""Exit code of a command that Ctrl-C ended; typer returns it too."""


def main(*command: str) -> None:
    """Runs the command line and exits; `command` goes before what the user typed."""
    arguments = [*command, *sys.argv[1:]]
    try:
        app(arguments)
        code = 0
    except CslError as error:
        complain("error", str(error))
        code = 2
    except Exception as error:
        if not _is_of_ray(error):
            raise
        # A lost part of a cluster, not a mistake in here: its pages of text help nobody.
        first = next(iter(str(error).strip().splitlines()), "no reason given")
        complain(
            "error",
            f"a part of Ray was lost ({type(error).__name__}: {first}); run again, what is done is "
            "kept; --verbose shows what Ray has to say",
        )
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


def _is_of_ray(error: BaseException) -> bool:
    """Whether an error says that Ray lost a process, a node or itself."""
    if "ray" not in sys.modules:
        return False
    from csl_dist.cluster.session import is_loss

    return is_loss(error)


def complain(kind: str, sentence: str) -> None:
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


def say(sentence: str) -> None:
    console.print(sentence, highlight=False, markup=False, soft_wrap=True)


def shown_path(path: str) -> str:
    """A local path from where the user is, if that is shorter."""
    if "://" in path:
        return path
    return min(path, os.path.relpath(path), key=len)


def _leave_ray() -> None:
    """Ends a local Ray, if one was started."""
    if "ray" in sys.modules:
        from csl_dist.cluster.session import disconnect

        disconnect()
