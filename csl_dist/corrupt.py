"""Planted label errors with their ground truth.

A corruption never changes a frame: it renames labels or moves frames together with their labels,
and says exactly where. The same generator state gives the same corruption.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from csl_dist.errors import DataError
from csl_dist.records import ErrorKind, IntArray, Span, runs_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Corruption:
    """A corrupted video: frame t shows what the original showed at `order_T[t]`."""

    kind: ErrorKind
    order_T: IntArray
    labels_T: IntArray
    spans: tuple[Span, ...]
    """Where the labels are now wrong, in frames of the corrupted video."""


def mislabel(
    labels_T: IntArray,
    rng: np.random.Generator,
    *,
    num_classes: int,
    num_spans: int = 1,
    lengths: tuple[int, int],
) -> Corruption:
    """Renames spans, each within one segment, to another class; lengths are inclusive bounds."""
    segments = [span for span in runs_of(labels_T) if labels_T[span.start] >= 0]
    order = rng.permutation(len(segments))[:num_spans]
    if len(order) < num_spans:
        raise DataError(f"{num_spans} spans to mislabel, but only {len(segments)} segments")
    corrupted_T = labels_T.copy()
    spans = []
    for segment in (segments[i] for i in sorted(order)):
        length = min(len(segment), int(rng.integers(lengths[0], lengths[1] + 1)))
        start = int(rng.integers(segment.start, segment.stop - length + 1))
        others = np.setdiff1d(np.arange(num_classes), labels_T[segment.start])
        corrupted_T[start : start + length] = rng.choice(others)
        spans.append(Span(start, start + length))
    return Corruption(
        kind=ErrorKind.MISLABEL,
        order_T=np.arange(len(labels_T)),
        labels_T=corrupted_T,
        spans=tuple(spans),
    )


def disorder(labels_T: IntArray, rng: np.random.Generator) -> Corruption:
    """Swaps two neighbouring segments, frames and labels together; both are then out of order."""
    segments = runs_of(labels_T)
    pairs = [
        (first, second)
        for first, second in pairwise(segments)
        if labels_T[first.start] >= 0 and labels_T[second.start] >= 0
    ]
    if not pairs:
        raise DataError("no two neighbouring labelled segments to swap")
    first, second = pairs[int(rng.integers(len(pairs)))]
    order_T = np.arange(len(labels_T))
    order_T[first.start : second.stop] = np.r_[second.start : second.stop, first.start : first.stop]
    return Corruption(
        kind=ErrorKind.DISORDER,
        order_T=order_T,
        labels_T=labels_T[order_T],
        spans=(Span(first.start, second.stop),),
    )
