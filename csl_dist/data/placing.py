"""Where planted spans lie: how much of a video they cover, and places for them."""

from dataclasses import dataclass

import numpy as np

from csl_dist.errors import DataError
from csl_dist.types import BoolArray, IntArray, Span, runs_of

MAX_FAILURES = 100
"""Tries in a row at placing a span before a video counts as full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """How much of a video is corrupted."""

    rate: float = 0.1
    """Share of its labelled frames that wrong spans cover, in the mean; at least one span."""
    lengths: tuple[int, int] = (10, 100)
    """Shortest and longest span in frames, both included."""
    fps: float = 1.0
    """Frames per second, for errors that are told in seconds."""


def free_spans(
    labels_T: IntArray, rng: np.random.Generator, amount: Amount, *, margin: int, gap: int = 0
) -> list[Span]:
    """Separate spans, each inside a labelled segment by a margin, until they cover the rate.

    `gap` is how many labelled frames there are between two of them, at least.
    """
    segments = [s for s in runs_of(labels_T) if labels_T[s.start] >= 0 and len(s) > 2 * margin]
    if not segments:
        raise DataError("no labelled segment is long enough")
    free_T: BoolArray = labels_T >= 0
    wanted = amount.rate * int(free_T.sum())
    weights = np.array([len(segment) for segment in segments], dtype=float)
    spans: list[Span] = []
    covered = failures = 0
    while failures < MAX_FAILURES and (not spans or covered < wanted):
        segment = segments[int(rng.choice(len(segments), p=weights / weights.sum()))]
        room = len(segment) - 2 * margin
        length = min(room, int(rng.integers(amount.lengths[0], amount.lengths[1] + 1)))
        start = segment.start + margin + int(rng.integers(room - length + 1))
        if free_T[max(start - gap, 0) : start + length + gap].all():
            free_T[start : start + length] = False
            spans.append(Span(start, start + length))
            covered += length
            failures = 0
        else:
            failures += 1
    return sorted(spans, key=lambda span: span.start)
