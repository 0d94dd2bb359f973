"""Statistics of labels, against sums written out."""

import numpy as np
import pytest

from csl_dist.data.segments import labels_of, segments_of
from csl_dist.flag.edits.statistics import (
    TERMS,
    counts_of,
    duration_terms,
    merged,
    sequence_terms,
    statistics_of,
)

VIDEOS = [
    np.repeat([0, 1, 2], [10, 20, 30]),
    np.repeat([0, 2, 1, 2], [10, 5, 20, 30]),
    np.repeat([-1, 0, 1, -1, 2], [3, 10, 20, 4, 30]),
]


def counts():
    return [counts_of(labels_T, num_classes=3, fps=5.0) for labels_T in VIDEOS]


def test_bigrams_are_counted_with_start_and_end_and_smoothed():
    total = counts()[0] + counts()[1]
    statistics = statistics_of(total)
    # From 0: once to 1, once to 2; possible are 1, 2 and the end.
    expected = np.log((1 + 0.5) / (2 + 3 * 0.5))
    assert statistics.bigram_CC[0, 1] == pytest.approx(expected)
    assert statistics.bigram_CC[0, 0] == -np.inf


def test_what_is_subtracted_leaves_the_others():
    a, b, c = counts()
    left = statistics_of(a + b + c - b)
    assert np.array_equal(left.bigram_CC, statistics_of(a + c).bigram_CC)
    assert np.allclose(left.log_seconds_deviation_C, statistics_of(a + c).log_seconds_deviation_C)


def test_duration_term_follows_the_formula():
    statistics = statistics_of(counts()[0] + counts()[1])
    logs = np.log([30 / 5, 5 / 5, 30 / 5])
    mean = logs.mean()
    deviation = max(0.25, np.sqrt((((logs - mean) ** 2).sum() + 1.5) / (3 + 3)))
    z = (np.log(4.0) - mean) / deviation
    expected = -min(z**2, 16) / 2 - np.log(deviation)
    assert duration_terms(statistics, 2, 4.0) == pytest.approx(expected)


def test_sequence_terms_add_up_over_the_annotation():
    statistics = statistics_of(counts()[0] + counts()[1])
    [terms_K] = sequence_terms([segments_of(VIDEOS[0])], statistics, fps=5.0)
    terms = dict(zip(TERMS, terms_K, strict=True))
    G = statistics.bigram_CC
    assert terms["bigram"] == pytest.approx(G[3, 0] + G[0, 1] + G[1, 2] + G[2, 4])
    before = statistics.before_CC
    assert terms["precedence"] == pytest.approx(before[0, 1] + before[0, 2] + before[1, 2])


def test_an_unlabelled_stretch_ends_a_chain():
    statistics = statistics_of(counts()[2])
    assert statistics.bigram_CC[1, 4] > statistics.bigram_CC[1, 2]


def test_merged_segments_have_no_neighbour_of_their_label():
    segments = merged([*segments_of(np.array([0, 0, 1])), *segments_of(np.array([1]))])
    assert [s.label for s in segments] == [0, 1]


def test_labels_and_segments_are_the_same():
    assert (labels_of(segments_of(VIDEOS[2])) == VIDEOS[2]).all()
