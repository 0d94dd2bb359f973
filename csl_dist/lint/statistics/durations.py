"""How long a step usually lasts, by class and by its place in the video; on a log scale.

A step is compared with the smallest set that has enough members: the same class at the same place
(first, last, between) of the same procedure, the class in the procedure, the class anywhere.
"""

from dataclasses import dataclass

import numpy as np

from csl_dist.lint.corpus import Corpus
from csl_dist.types import BoolArray, FloatArray, IntArray

MIN_MEMBERS = 12
"""Steps that a set needs before a duration is held against it."""
MIN_SPREAD = 0.2
"""Least spread of log durations: differences below a fifth are never odd."""
SHORTEST_SECONDS = 1e-3
"""Stands for steps without duration, which have no logarithm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DurationEvidence:
    """Columns over all segments."""

    distance: FloatArray
    """Robust distances from the median, absolute; 0 where there are too few to compare with."""
    usual_seconds: FloatArray
    """Median of the set that the segment is compared with; NaN where there are too few."""
    level: IntArray
    """Which of `duration_sets` that is; -1 where there are too few."""


def log_seconds(corpus: Corpus) -> FloatArray:
    return np.log(np.maximum(corpus.stop_N - corpus.start_N, SHORTEST_SECONDS))


def duration_evidence(corpus: Corpus) -> DurationEvidence:
    """Distance of each segment's duration from what is usual."""
    log_N, counted_N = log_seconds(corpus), corpus.counted_N()
    distance = np.zeros(corpus.num_segments, np.float32)
    usual = np.full(corpus.num_segments, np.nan, np.float32)
    level = np.full(corpus.num_segments, -1, np.int8)
    for number, keys in enumerate(duration_sets(corpus)):
        if (level >= 0).all():
            break
        median, spread, count = set_statistics(keys, log_N, counted_N)
        fits = (count >= MIN_MEMBERS) & (level < 0)
        distance[fits] = (np.abs(log_N - median) / np.maximum(spread, MIN_SPREAD))[fits]
        usual[fits] = np.exp(median[fits])
        level[fits] = number
    return DurationEvidence(distance=distance, usual_seconds=usual, level=level)


def duration_sets(corpus: Corpus) -> list[IntArray]:
    """Keys of the sets that a segment belongs to, smallest set first."""
    label = corpus.label_N.astype(np.int64)
    num_labels = len(corpus.labels)
    own = corpus.procedure_V[corpus.video_N()] * num_labels + label
    return [places(corpus) * num_labels * len(corpus.procedures) + own, own, label]


def places(corpus: Corpus) -> IntArray:
    """0 for the first segment of a video, 2 for the last, 1 between."""
    place = np.ones(corpus.num_segments, np.int64)
    filled = np.diff(corpus.offsets_V) > 0
    place[corpus.offsets_V[1:][filled] - 1] = 2
    place[corpus.offsets_V[:-1][filled]] = 0
    return place


def set_statistics(
    keys: IntArray, values: FloatArray, counted: BoolArray
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Median, 1.4826 x median absolute deviation and size of each member's set, of counted ones."""
    median, spread = np.zeros(len(keys), np.float32), np.zeros(len(keys), np.float32)
    count = np.zeros(len(keys), np.int64)
    order = np.argsort(keys, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(keys[order])) + 1):
        known = values[members[counted[members]]]
        if not len(known):
            continue
        middle = np.median(known)
        median[members] = middle
        spread[members] = 1.4826 * np.median(np.abs(known - middle))
        count[members] = len(known)
    return median, spread, count
