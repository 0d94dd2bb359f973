"""Pulse: what a running audit says of itself every few seconds, for readers on other machines."""

import time
from collections import deque
from dataclasses import asdict, dataclass

from csl_dist.errors import DamagedError
from csl_dist.storage.paths import RunPaths
from csl_dist.words import counted

RATE_SECONDS = 60.0
"""Over which a rate is taken."""
STALE_SECONDS = 60.0
"""An audit that has said nothing for longer may have been killed, or has a very long unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """How prediction stands."""

    units_done: int
    units_total: int
    units_in_flight: int
    frame_rate: float
    """Frames x checkpoints per second, in the last minute."""
    seconds_left: float | None
    """None where nothing is done yet that would tell."""
    lost_workers: int
    skipped_checkpoints: int
    at: float
    """Seconds since 1970 when this was said."""

    def sentence(self) -> str:
        left = "" if self.seconds_left is None else f", {duration(self.seconds_left)} left"
        failures = [
            counted(count, what)
            for count, what in (
                (self.lost_workers, "lost worker"),
                (self.skipped_checkpoints, "skipped checkpoint"),
            )
            if count
        ]
        return ", ".join(
            [
                f"{self.units_in_flight} units in flight",
                f"{self.frame_rate:,.0f} frames x checkpoints/s{left}",
                *failures,
            ]
        )

    def report(self) -> str:
        """The sentence for somebody who looks later, and perhaps after the audit was killed."""
        age = time.time() - self.at
        said = f"predicting: {self.units_done:,} of {self.units_total:,} units, {self.sentence()}"
        if age <= STALE_SECONDS:
            return said
        return f"{said}; that was {duration(age)} ago, and nothing since: has it been killed?"


class RecentRate:
    """How fast work goes, of the last minute: what came before may have been waiting."""

    def __init__(self, now: float):
        self._marks = deque([(now, 0, 0)])
        """Seconds, and units and frames done until then."""

    def note(self, now: float, num_units: int, num_frames: int) -> None:
        """More is done; the last mark before the minute stays, to measure from."""
        _, units, frames = self._marks[-1]
        self._marks.append((now, units + num_units, frames + num_frames))
        while len(self._marks) > 2 and self._marks[1][0] < now - RATE_SECONDS:
            self._marks.popleft()

    def per_second(self) -> tuple[float, float]:
        """Units and frames."""
        (start, *before), (stop, *after) = self._marks[0], self._marks[-1]
        seconds = max(stop - start, 1e-6)
        return (after[0] - before[0]) / seconds, (after[1] - before[1]) / seconds


def duration(seconds: float) -> str:
    """Seconds as people say them: `40 s`, `12 min`, `3.5 h`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def put_pulse(paths: RunPaths, pulse: Pulse) -> None:
    paths.root.put_json(RunPaths.PULSE, asdict(pulse))


def read_pulse(paths: RunPaths) -> Pulse | None:
    """The last sign of life; None where there is none to be read."""
    if not paths.root.exists(RunPaths.PULSE):
        return None
    try:
        return paths.root.read_json(RunPaths.PULSE, lambda content: Pulse(**content))
    except DamagedError:
        return None


def end_pulse(paths: RunPaths) -> None:
    paths.root.delete(RunPaths.PULSE)
