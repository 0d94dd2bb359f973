"""Segments: maximal runs of one label, as an annotator drew them."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from csl_dist.types import UNLABELLED, IntArray, run_starts


class Segment(NamedTuple):
    """Frames [start, stop) of one label."""

    start: int
    stop: int
    label: int

    @property
    def num_frames(self) -> int:
        return self.stop - self.start


def segments_of(labels_T: IntArray) -> list[Segment]:
    """All segments in order, those without a label among them."""
    starts = run_starts(labels_T)
    stops = [*starts[1:].tolist(), len(labels_T)]
    return [*map(Segment, starts.tolist(), stops, labels_T[starts].tolist())]


def labels_of(segments: Iterable[Segment]) -> IntArray:
    """Labels (T,) of segments that follow each other without a gap."""
    parts = [np.full(segment.num_frames, segment.label) for segment in segments]
    return np.concatenate([np.empty(0, dtype=int), *parts])


def labelled_chains(segments: Sequence[Segment]) -> list[list[Segment]]:
    """Stretches of labelled segments between unlabelled ones; none is empty."""
    chains: list[list[Segment]] = [[]]
    for segment in segments:
        if segment.label == UNLABELLED:
            chains.append([])
        else:
            chains[-1].append(segment)
    return [chain for chain in chains if chain]


def neighbour_pairs(segments: Sequence[Segment]) -> list[int]:
    """Positions i for which segments i and i + 1 are both labelled."""
    return [
        i
        for i, (first, second) in enumerate(pairwise(segments))
        if first.label != UNLABELLED and second.label != UNLABELLED
    ]
