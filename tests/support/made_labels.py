"""Small label sequences for lint's tests."""

from collections.abc import Sequence
from typing import Any

from csl_dist.lint.sequences import LabelSequence, Step

USUAL = ("prepare", "cut", "clean", "close")


def sequence(
    video: str, labels: Sequence[str], seconds: Sequence[float] | None = None, **about: Any
) -> LabelSequence:
    """Steps end to end, 10 s each unless told otherwise."""
    lengths = seconds or [10.0] * len(labels)
    steps, start = [], 0.0
    for label, length in zip(labels, lengths, strict=True):
        steps.append(Step(label=label, start_seconds=start, stop_seconds=start + length))
        start += length
    return LabelSequence(video=video, steps=tuple(steps), file=f"labels/{video}.txt", **about)


def usual_videos(count: int, labels: Sequence[str] = USUAL, **about: Any) -> list[LabelSequence]:
    """Videos with the same steps; durations differ a little, so that files differ."""
    return [
        sequence(
            f"v{i:02d}", labels, [10 + 0.1 * i + 0.01 * k for k in range(len(labels))], **about
        )
        for i in range(count)
    ]
