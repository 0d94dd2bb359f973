"""The labels of one video as steps in seconds: all that lint reads.

Steps stand in the order of the file. They may overlap, and time that no step covers is unlabelled.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import groupby


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One segment as the annotator drew it: a class name over `[start_seconds, stop_seconds)`."""

    label: str
    start_seconds: float
    stop_seconds: float

    @property
    def seconds(self) -> float:
        return self.stop_seconds - self.start_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSequence:
    """What one label file says about one video."""

    video: str
    steps: tuple[Step, ...]
    file: str
    """Where the labels lie; findings about files name it."""
    seconds: float | None = None
    """Length of the video; None where only its labels are known."""
    group: str | None = None
    """Who is seen: a surgeon, a participant. Statistics of a video come from other groups."""
    annotator: str | None = None
    procedure: str | None = None
    """What is performed: a recipe, an operation. Each has its own statistics."""
    frame_seconds: float | None = None
    """Seconds from one label to the next, where labels are per frame."""
    end_seconds: float | None = None
    """Where the last label ends, step or no step; None where steps alone tell it."""


def steps_from_frames(
    names: Sequence[str], *, fps: float, unlabelled: Collection[str] = ()
) -> tuple[Step, ...]:
    """Maximal runs of one class name as steps; names in `unlabelled` leave time uncovered."""
    steps = []
    start = 0
    for name, run in groupby(names):
        stop = start + sum(1 for _ in run)
        if name not in unlabelled:
            steps.append(Step(label=name, start_seconds=start / fps, stop_seconds=stop / fps))
        start = stop
    return tuple(steps)
