"""Progress of a stage: a bar on a terminal, otherwise a line every few seconds."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

RATE_SECONDS = 60.0
"""Over which the time left is estimated."""
LINE_SECONDS = 10.0
"""Time between two lines without a terminal."""
BAR_WIDTH = 100
"""Columns of a terminal that a bar takes with its title, counts and times."""


class Bar(Protocol):
    """Where a stage reports its progress."""

    def advance(self, num_units: int = 1) -> None: ...

    def note(self, sentence: str) -> None:
        """A sentence after the bar, until the next note; on a terminal, where there is room."""
        ...


@contextmanager
def progress_bar(console: Console, title: str, *, total: int, done: int = 0) -> Iterator[Bar]:
    """Shows `done` of `total` units, and each step forward."""
    if console.is_terminal:
        columns = (
            TextColumn("{task.description:<24}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}", style="dim"),
        )
        with Progress(*columns, console=console, speed_estimate_period=RATE_SECONDS) as progress:
            task = progress.add_task(title, total=total, completed=done, note="")
            yield _TerminalBar(progress, task)
    else:
        lines = _Lines(console, title, total, done)
        yield lines
        lines.end()


class _TerminalBar:
    def __init__(self, progress: Progress, task: object):
        self._progress = progress
        self._task = task

    def advance(self, num_units: int = 1) -> None:
        self._progress.advance(self._task, num_units)  # type: ignore[arg-type]

    def note(self, sentence: str) -> None:
        fits = len(sentence) <= self._progress.console.width - BAR_WIDTH
        self._progress.update(self._task, note=sentence if fits else "")  # type: ignore[arg-type]


class _Lines:
    def __init__(self, console: Console, title: str, total: int, done: int):
        self._console = console
        self._title = title
        self._total = total
        self._done = done
        self._note = ""
        self._begun = self._last = time.monotonic()

    def advance(self, num_units: int = 1) -> None:
        self._done += num_units
        if time.monotonic() - self._last >= LINE_SECONDS:
            self._last = time.monotonic()
            line = f"{self._title}: {self._done} of {self._total}{self._note}"
            self._console.print(line, highlight=False, soft_wrap=True)

    def note(self, sentence: str) -> None:
        self._note = f", {sentence}"

    def end(self) -> None:
        seconds = time.monotonic() - self._begun
        line = f"{self._title}: {self._done} of {self._total} in {seconds:.1f} s"
        self._console.print(line, highlight=False)
