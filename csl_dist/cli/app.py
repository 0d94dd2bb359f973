"""The `csl` application: how it ends, and what its commands share.

A user's mistake ends in one sentence on stderr and exit code 2; an interrupted command says how to
go on and exits with 130, one that is told to end (SIGTERM, SIGHUP) says the same and exits with 128
and the signal's number. Heavy imports wait until a command needs them.
"""

import errno
import os
import shlex
import signal
import sys
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape

from csl_dist import __version__
from csl_dist.errors import CslError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from csl_dist.config import RunConfig

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
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

OtherScores = Annotated[
    list[str],
    typer.Option(
        "--scores",
        metavar="NAME=DIR",
        help="Another method's frame scores, one npy or CSV a video; may be given several times.",
    ),
]
Revision = Annotated[int | None, typer.Option(help="Number of the audit; the newest if left out.")]

EXTRAS = {
    "run": ("cleanlab", "ray", "safetensors", "scipy", "sklearn", "torch", "torchvision"),
    "serve": ("alembic", "fastapi", "prometheus_client", "sqlalchemy", "starlette", "uvicorn"),
    "postgres": ("psycopg",),
    "video": ("PIL", "av"),
    "formats": ("h5py", "pyarrow", "xarray"),
    "figures": ("matplotlib",),
}
"""Packages that not every install has, by the extra that brings them."""

INTERRUPTED = 130
"""Exit code of a command that Ctrl-C ended; typer returns it too."""


def _print_version(wanted: bool) -> None:
    if wanted:
        console.print(f"csl_dist {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def csl(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print and end."),
    ] = False,
) -> None:
    """Find wrong labels in densely annotated video."""


def main(*command: str) -> None:
    """Runs the command line and exits; `command` goes before what the user typed."""
    arguments = [*command, *sys.argv[1:]]
    ended_by = _end_as_ctrl_c_does()
    try:
        app(arguments)
        code = 0
    except CslError as error:
        complain("error", str(error))
        code = 2
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        complain("error", f"{str(error.filename)[:80]!r}… is longer than any file's name can be")
        code = 2
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        extras = [extra for extra, names in EXTRAS.items() if package in names]
        if not extras:
            raise
        wanted = "serve" if arguments[:1] == ["serve"] else extras[0]
        complain("error", f"this needs {package}; install it: pip install 'csl_dist[{wanted}]'")
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
        _expect_end()
        # A local Ray ends with this process. Shutting it down first, while its threads still
        # wait for work that will never come, can crash.
        os._exit(128 + ended_by[0] if ended_by else INTERRUPTED)
    _leave_ray()
    sys.exit(code)


def _end_as_ctrl_c_does() -> list[int]:
    """Has what systemd, docker, Ray jobs and a closed terminal send end a command as Ctrl-C does.

    Returns a list that has the signal's number once there was one.
    """
    received: list[int] = []

    def end(number: int, _: FrameType | None) -> None:
        received.append(number)
        raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # nohup has one ignored
            signal.signal(number, end)
    return received


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


def say_run(config: Path, overrides: "Sequence[str]") -> None:
    """Names the run of a config as what comes next."""
    given = [part for override in overrides for part in ("--set", override)]
    say(f"next: {shlex.join(['csl', 'run', str(config), *given])}")


@contextmanager
def busy(words: str) -> "Iterator[None]":
    """Says what goes on while there is nothing else to show; on a terminal, as long as it does."""
    if console.is_terminal:
        with console.status(words):
            yield
    else:
        say(words)
        yield


def say(sentence: str) -> None:
    console.print(sentence, highlight=False, markup=False, soft_wrap=True)


def load_config(path: Path, overrides: list[str]) -> "RunConfig":
    """The config of a run; what reads it is imported when a command needs it."""
    from csl_dist.config import load_config

    return load_config(path, overrides)


def load_writable(path: Path, overrides: list[str]) -> "RunConfig":
    """The config of a run that is written to; where its root can't be, nothing else is begun."""
    from csl_dist.storage.url import Storage

    config = load_config(path, overrides)
    Storage(config.root).refuse_unwritable()
    return config


def shown_path(path: str) -> str:
    """A local path from where the user is, if that is shorter."""
    if "://" in path:
        return path
    return min(path, os.path.relpath(path), key=len)


def _expect_end() -> None:
    """Nobody has to be told that the command was ended."""
    if sys.modules.get("ray") is not None:
        from csl_dist.cluster.end_notice import END_NOTICE

        END_NOTICE.cancel()


def _leave_ray() -> None:
    """Ends a local Ray, if one was started."""
    if sys.modules.get("ray") is not None:
        from csl_dist.cluster.session import disconnect

        disconnect()
