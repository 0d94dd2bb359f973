"""`csl` in processes that are forked off one that has imported everything.

Importing torch and Ray takes most of the seconds of a small command. A forked command is a process
of its own all the same: it can be killed, and leaves Ray behind when it ends.
"""

import atexit
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(["csl_dist.cli", "csl_dist.pipeline"])


@dataclass(frozen=True)
class RunningCommand:
    """`csl` in a process of its own."""

    arguments: tuple[str, ...]
    process: BaseProcess
    stdout: Path
    stderr: Path

    @classmethod
    def start(cls, *arguments: str | Path) -> "RunningCommand":
        folder = Path(tempfile.mkdtemp(prefix="csl-command-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        stdout, stderr = folder / "stdout", folder / "stderr"
        for path in (stdout, stderr):
            path.touch()  # it may be killed before it writes
        words = tuple(map(str, arguments))
        process = FORKED.Process(target=_run, args=(words, stdout, stderr, dict(os.environ)))
        process.start()
        return cls(words, process, stdout, stderr)

    def goes_on_for(self, seconds: float) -> bool:
        """Whether it still runs after so many seconds."""
        self.process.join(seconds)
        return self.process.is_alive()

    def send(self, number: int) -> None:
        """Sends it a signal."""
        assert self.process.pid is not None
        with suppress(ProcessLookupError):  # it may have ended by itself
            os.kill(self.process.pid, number)

    def wait(self) -> int:
        """The exit code; negative is the signal that ended it."""
        self.process.join()
        assert self.process.exitcode is not None
        return self.process.exitcode


def run_csl(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    """Runs `csl` to its end."""
    command = RunningCommand.start(*arguments)
    code = command.wait()
    return subprocess.CompletedProcess(
        arguments, code, command.stdout.read_text(), command.stderr.read_text()
    )


def _run(
    arguments: tuple[str, ...], stdout: Path, stderr: Path, environment: dict[str, str]
) -> None:
    from csl_dist.cli import main

    for number, path in ((1, stdout), (2, stderr)):
        with path.open("wb") as file:
            os.dup2(file.fileno(), number)
    os.environ.clear()
    os.environ.update(environment)
    # Ctrl-C works, though tests may run in the background of a shell, where it is ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["csl"]
    main(*arguments)
