"""What labels of other videos say: which step follows which, how long, how often, when.

Counts are taken per video and added up, so that a video can be judged by all but its own group's.
All logs are natural, durations in seconds; each term is larger for what is usual.
"""

import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from csl_dist.data.segments import Segment, labelled_chains, segments_of
from csl_dist.types import UNLABELLED, BoolArray, FloatArray, IntArray

CELL = 0.5
"""Added to every count of a bigram."""
BACKOFF = 2.0
"""Weight of the bigram where a trigram is estimated."""
MOST_COUNTED = 5
"""More segments of a class in a video count as this many."""
BINS = 10
"""Parts of a video in which a class's frames are counted."""
MOST_SQUARED = 16.0
"""Deviations of a duration, squared, beyond which it is no odder."""
MOST_PAIRS = 1 << 18
"""Pairs of segments that are held at once: 2 MB."""
TERMS = ("bigram", "trigram", "duration", "count", "precedence")


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Sums over videos; two Counts may be added or subtracted. Index C is start, C + 1 end."""

    bigram_CC: FloatArray
    trigram_CCC: FloatArray
    log_seconds_3C: FloatArray
    """Number, sum and sum of squares of the log durations."""
    count_CK: FloatArray
    """Videos with K segments of a class."""
    before_CC: FloatArray
    """Videos' shares of pairs in which the row's class comes before the column's."""
    position_CB: FloatArray
    """Videos' shares of a class's frames in each part of the video."""

    def __add__(self, other: "Counts") -> "Counts":
        return _combine(self, other, 1.0)

    def __sub__(self, other: "Counts") -> "Counts":
        return _combine(self, other, -1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """Log-probabilities estimated from Counts."""

    bigram_CC: FloatArray
    trigram_CCC: FloatArray
    log_seconds_mean_C: FloatArray
    log_seconds_deviation_C: FloatArray
    count_CK: FloatArray
    before_CC: FloatArray
    """Log of twice the probability that the row's class comes first: 0 where nothing is known."""
    number_C: FloatArray
    """Segments seen of each class."""
    position_CB: FloatArray
    """Log-density of a class over the parts of a video; 0 where it is as everywhere."""

    @property
    def num_classes(self) -> int:
        return len(self.count_CK)


def counts_of(labels_T: IntArray, *, num_classes: int, fps: float) -> Counts:
    """The counts of one video."""
    C, segments = num_classes, segments_of(labels_T)
    chains = labelled_chains(segments)
    bigram_CC = np.zeros((C + 2, C + 2))
    trigram_CCC = np.zeros((C + 2, C + 2, C + 2))
    for chain in chains:
        names = [C, C, *(s.label for s in chain), C + 1]
        for a, b in pairwise(names[1:]):
            bigram_CC[a, b] += 1
        for a, b, c in zip(names, names[1:], names[2:], strict=False):
            trigram_CCC[a, b, c] += 1
    labelled = [s for chain in chains for s in chain]
    names_S = np.array([s.label for s in labelled], dtype=int)
    log_S = np.log([s.num_frames / fps for s in labelled])
    log_seconds_3C: FloatArray = np.stack(
        [np.bincount(names_S, weights=log_S**power, minlength=C) for power in (0.0, 1.0, 2.0)]
    )
    count_C = np.bincount(names_S, minlength=C)
    count_CK = np.eye(MOST_COUNTED + 1)[np.minimum(count_C, MOST_COUNTED)]
    bin_T = np.arange(len(labels_T)) * BINS // max(len(labels_T), 1)
    position_CB = np.zeros((C, BINS))
    known_T = labels_T >= 0
    np.add.at(position_CB, (labels_T[known_T], bin_T[known_T]), 1.0)
    position_CB /= np.maximum(position_CB.sum(axis=1, keepdims=True), 1.0)
    return Counts(
        bigram_CC=bigram_CC,
        trigram_CCC=trigram_CCC,
        log_seconds_3C=log_seconds_3C,
        count_CK=count_CK,
        before_CC=_before(names_S, C),
        position_CB=position_CB,
    )


def statistics_of(counts: Counts) -> Statistics:
    """Smoothed log-probabilities; no class follows itself."""
    C = len(counts.count_CK)
    allowed_CC = np.ones((C + 2, C + 2), dtype=bool)
    np.fill_diagonal(allowed_CC, False)
    allowed_CC[:, C] = allowed_CC[C + 1] = False
    smoothed_CC = np.where(allowed_CC, counts.bigram_CC + CELL, 0.0)
    probability_CC = smoothed_CC / np.maximum(smoothed_CC.sum(axis=1, keepdims=True), CELL)
    after_CC = counts.trigram_CCC.sum(axis=2, keepdims=True)
    trigram_CCC = (counts.trigram_CCC + BACKOFF * probability_CC) / (after_CC + BACKOFF)
    number_C, sum_C, square_C = counts.log_seconds_3C
    overall = sum_C.sum() / max(number_C.sum(), 1.0)
    mean_C = np.where(number_C > 0, sum_C / np.maximum(number_C, 1), overall)
    squares_C = np.maximum(square_C - number_C * mean_C**2, 0.0)
    deviation_C = np.maximum(np.sqrt((squares_C + 1.5) / (number_C + 3)), 0.25)
    count_CK = counts.count_CK + CELL
    before_CC = (counts.before_CC + CELL) / (counts.before_CC + counts.before_CC.T + 2 * CELL)
    position_CB = counts.position_CB + 1 / BINS
    position_CB = position_CB / position_CB.sum(axis=1, keepdims=True) * BINS
    with np.errstate(divide="ignore"):
        return Statistics(
            bigram_CC=np.log(probability_CC),
            trigram_CCC=np.log(trigram_CCC),
            log_seconds_mean_C=mean_C,
            log_seconds_deviation_C=deviation_C,
            count_CK=np.log(count_CK / count_CK.sum(axis=1, keepdims=True)),
            before_CC=np.log(2 * before_CC),
            number_C=number_C,
            position_CB=np.log(position_CB),
        )


def usual_log_seconds(statistics: Statistics) -> float:
    """Mean log duration of all segments seen."""
    number_C = np.maximum(statistics.number_C, 1e-9)
    return float((statistics.log_seconds_mean_C * number_C).sum() / number_C.sum())


def duration_terms(
    statistics: Statistics, labels: IntArray | int, seconds: FloatArray | float
) -> FloatArray:
    """D(n): how usual durations are for classes; at most a constant of the class."""
    deviation = statistics.log_seconds_deviation_C[labels]
    z = (np.log(seconds) - statistics.log_seconds_mean_C[labels]) / deviation
    term: FloatArray = -np.minimum(z**2, MOST_SQUARED) / 2 - np.log(deviation)
    return term


def sequence_terms(
    sequences: Sequence[Sequence[Segment]], statistics: Statistics, *, fps: float
) -> FloatArray:
    """How usual whole annotations are: (N, K), a sum for each of TERMS; higher is more usual.

    Those with chains of the same lengths are computed together. What one gets is the same to the
    last bit, whichever others are asked for beside it.
    """
    terms_NK = np.zeros((len(sequences), len(TERMS)))
    alike: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for i, segments in enumerate(sequences):
        alike[_chain_lengths(segments)].append(i)
    for lengths, rows in alike.items():
        at_once = max(1, MOST_PAIRS // max(1, sum(lengths) ** 2))
        for first in range(0, len(rows), at_once):
            some = rows[first : first + at_once]
            values = itertools.chain.from_iterable(
                itertools.chain.from_iterable(sequences[i] for i in some)
            )
            segments_N3 = np.fromiter(values, dtype=int).reshape(-1, 3)
            labelled_N3 = segments_N3[segments_N3[:, 2] != UNLABELLED]
            segments_NS3 = labelled_N3.reshape(len(some), sum(lengths), 3)
            terms_NK[some] = _alike_terms(segments_NS3, lengths, statistics, fps)
    return terms_NK


def _chain_lengths(segments: Sequence[Segment]) -> tuple[int, ...]:
    """How many segments each of `labelled_chains` has."""
    if segments and all(label != UNLABELLED for _, _, label in segments):
        return (len(segments),)
    return tuple(len(chain) for chain in labelled_chains(segments))


def _alike_terms(
    segments_NS3: IntArray, lengths: tuple[int, ...], statistics: Statistics, fps: float
) -> FloatArray:
    """Terms (N, K) of labelled segments, whose chains have the lengths given."""
    num, C = len(segments_NS3), statistics.num_classes
    # Sums are over rows that lie in memory one after the other: only so are they, to the last bit,
    # what the sum of a single row is.
    names_NS = np.ascontiguousarray(segments_NS3[..., 2])
    bigram_N, trigram_N = np.zeros(num), np.zeros(num)
    first = 0
    for length in lengths:
        chain_NS = np.full((num, length + 3), C)
        chain_NS[:, 2:-1] = names_NS[:, first : first + length]
        chain_NS[:, -1] = C + 1
        before_NS, a_NS, b_NS = chain_NS[:, :-2], chain_NS[:, 1:-1], chain_NS[:, 2:]
        bigram_N += statistics.bigram_CC[a_NS, b_NS].sum(axis=1)
        trigram_N += statistics.trigram_CCC[before_NS, a_NS, b_NS].sum(axis=1)
        first += length
    frames_NS = segments_NS3[..., 1] - segments_NS3[..., 0]
    duration_N = duration_terms(statistics, names_NS, frames_NS / fps).sum(axis=1)
    place_NS = names_NS + C * np.arange(num)[:, None]
    count_NC = np.bincount(place_NS.ravel(), minlength=num * C).reshape(num, C)
    count_NC = np.minimum(count_NC, MOST_COUNTED)
    count_N = statistics.count_CK[np.arange(C), count_NC].sum(axis=1)
    before_NSS = statistics.before_CC[names_NS[:, :, None], names_NS[:, None]]
    in_order_NSS = np.where(_upper(names_NS.shape[1]), before_NSS, 0.0)
    precedence_N = in_order_NSS.reshape(num, -1).sum(axis=1)
    return np.stack([bigram_N, trigram_N, duration_N, count_N, precedence_N], axis=1)


@lru_cache(64)
def _upper(size: int) -> BoolArray:
    """Which entries of a square lie above its diagonal."""
    return np.triu(np.ones((size, size), dtype=bool), k=1)


def merged(segments: Sequence[Segment]) -> list[Segment]:
    """Neighbours of one label as one segment; empty segments are left out."""
    result: list[Segment] = []
    for segment in segments:
        if segment.stop <= segment.start:
            continue
        if result and result[-1].label == segment.label:
            segment = Segment(result.pop().start, segment.stop, segment.label)
        result.append(segment)
    return result


def _before(names_S: IntArray, num_classes: int) -> FloatArray:
    """Share of pairs of segments (C, C) in which the row's class comes before the column's."""
    is_name_SC = np.eye(num_classes)[names_S]
    pairs_CC = (is_name_SC.cumsum(axis=0) - is_name_SC).T @ is_name_SC
    total_CC = pairs_CC + pairs_CC.T
    share_CC: FloatArray = pairs_CC / np.maximum(total_CC, 1.0)
    np.fill_diagonal(share_CC, 0.0)
    return share_CC


def _combine(a: Counts, b: Counts, sign: float) -> Counts:
    return Counts(
        bigram_CC=a.bigram_CC + sign * b.bigram_CC,
        trigram_CCC=a.trigram_CCC + sign * b.trigram_CCC,
        log_seconds_3C=a.log_seconds_3C + sign * b.log_seconds_3C,
        count_CK=a.count_CK + sign * b.count_CK,
        before_CC=a.before_CC + sign * b.before_CC,
        position_CB=a.position_CB + sign * b.position_CB,
    )
