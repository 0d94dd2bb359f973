"""Candidate edits, against trying every possibility."""

import itertools
from functools import reduce

import numpy as np
import pytest

from csl_dist.data.segments import labels_of, segments_of
from csl_dist.flag.edits.candidates import candidate_edits
from csl_dist.flag.edits.edit import DURATION_WEIGHT, EMISSION_WEIGHT
from csl_dist.flag.edits.emission import (
    FLOOR,
    TEMPERATURES,
    emission_of,
    late_view,
    normalised,
    temperature_likelihoods,
)
from csl_dist.flag.edits.evidence import (
    COLUMNS,
    LEAST_INSERTED_ORDER,
    MOST_WRITTEN_ORDER,
    evidence_rows,
)
from csl_dist.flag.edits.insertions import (
    LEAST_FRAMES,
    largest_ends,
    largest_intervals,
    largest_starts,
)
from csl_dist.flag.edits.statistics import counts_of, sequence_terms, statistics_of
from csl_dist.types import EditKind

TRUE = np.repeat([0, 1, 2, 3], [20, 25, 15, 20])


def made_emission(truth_T=TRUE, num_classes=5, noise=0.5, seed=0):
    rng = np.random.default_rng(seed)
    logits = 3.0 * np.eye(num_classes)[truth_T] + noise * rng.standard_normal((4, 80, num_classes))
    families = [late_view([normalised(part)], 2) for part in (logits, logits / 2)]
    return emission_of(families, [1.0, 1.0])


def made_statistics():
    orders = [[0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 4, 2, 3]]
    videos = [np.repeat(order, 20) for order in orders]
    counts = [counts_of(v, num_classes=5, fps=5.0) for v in videos]
    return statistics_of(counts[0] + counts[1] + counts[2])


def best(labels_T, kind):
    edits = candidate_edits(segments_of(labels_T), made_emission(), made_statistics(), fps=5.0)
    return max((e for e in edits if e.kind is kind), key=lambda e: e.quick_gain)


@pytest.mark.parametrize("num", [2, 3, 4, 9])
def test_largest_interval_is_that_of_trying_all(num):
    values = np.random.default_rng(num).standard_normal((num, 3))
    sums = np.concatenate([np.zeros((1, 3)), values.cumsum(axis=0)])
    gain_C, start_C, stop_C = largest_intervals(sums)
    for c in range(3):
        every = [
            values[a:b, c].sum()
            for a, b in itertools.combinations(range(num + 1), 2)
            if b - a >= LEAST_FRAMES
        ]
        assert gain_C[c] == pytest.approx(max(every, default=-np.inf))
        if every:
            assert values[start_C[c] : stop_C[c], c].sum() == pytest.approx(gain_C[c])


def test_largest_starts_and_ends_leave_a_frame():
    values = np.ones((6, 1))
    sums = np.concatenate([np.zeros((1, 1)), values.cumsum(axis=0)])
    assert [x.item() for x in largest_starts(sums)] == [5.0, 0, 5]
    assert [x.item() for x in largest_ends(sums)] == [5.0, 1, 6]


def test_a_renamed_segment_is_renamed_back():
    wrong_T = TRUE.copy()
    wrong_T[20:45] = 4
    edit = best(wrong_T, EditKind.RENAME)
    assert (edit.start, edit.stop, edit.label, edit.new_label) == (20, 45, 4, 1)
    assert (labels_of(edit.segments) == TRUE).all()


def test_a_step_within_another_is_deleted():
    wrong_T = TRUE.copy()
    wrong_T[28:36] = 3
    edit = best(wrong_T, EditKind.DELETE)
    assert (edit.start, edit.stop, edit.new_label) == (28, 36, 1)
    assert (labels_of(edit.segments) == TRUE).all()


def test_a_forgotten_step_is_inserted_where_it_is():
    wrong_T = TRUE.copy()
    wrong_T[45:60] = 1
    edit = best(wrong_T, EditKind.INSERT)
    assert edit.new_label == 2
    assert abs(edit.start - 45) <= 1
    assert edit.stop == 60


def test_a_step_that_both_neighbours_share_is_inserted_between_them():
    wrong_T = TRUE.copy()
    wrong_T[45:53], wrong_T[53:60] = 1, 3
    edit = best(wrong_T, EditKind.INSERT)
    assert (edit.start, edit.place, edit.stop) == (45, 53, 60)
    assert (edit.label, edit.last_label, edit.new_label) == (1, 3, 2)
    assert (labels_of(edit.segments) == TRUE).all()


def test_a_moved_boundary_goes_to_the_best_of_all_places():
    wrong_T = TRUE.copy()
    wrong_T[45:55] = 1
    emission, statistics = made_emission(), made_statistics()
    segments = segments_of(wrong_T)
    edit = best(wrong_T, EditKind.BOUNDARY)
    assert edit.place == 45

    def value(place):
        labels_T = wrong_T.copy()
        labels_T[20:place], labels_T[place:60] = 1, 2
        own = emission.logp_TC[np.arange(20, 60), labels_T[20:60]].sum()
        terms = sequence_terms([segments_of(labels_T)], statistics, fps=5.0)[0]
        return EMISSION_WEIGHT * own + DURATION_WEIGHT * terms[2]

    places = [place for place in range(21, 60) if place != 55]
    assert edit.place == max(places, key=value)
    assert edit.quick_gain == pytest.approx(value(45) - value(55))
    assert len(segments) == 4


def test_a_swap_gains_what_the_grammar_says():
    wrong_T = np.repeat([0, 2, 1, 3], [20, 15, 25, 20])
    statistics, segments = made_statistics(), segments_of(wrong_T)
    emission = made_emission(wrong_T)
    edits = candidate_edits(segments, emission, statistics, fps=5.0)
    rows = evidence_rows(edits, segments, emission, statistics, fps=5.0)
    swaps = [i for i, e in enumerate(edits) if e.kind is EditKind.SWAP]
    gains = rows[swaps, COLUMNS.index("bigram")]
    G = statistics.bigram_CC
    expected = G[0, 1] + G[1, 2] + G[2, 3] - G[0, 2] - G[2, 1] - G[1, 3]
    assert gains.argmax() == 1
    assert gains.max() == pytest.approx(min(expected, 8.0))


def test_evidence_of_emission_is_the_mean_gain():
    wrong_T = TRUE.copy()
    wrong_T[20:45] = 4
    emission, statistics = made_emission(), made_statistics()
    segments = segments_of(wrong_T)
    edits = candidate_edits(segments, emission, statistics, fps=5.0)
    rows = evidence_rows(edits, segments, emission, statistics, fps=5.0)
    for edit, row in zip(edits, rows, strict=True):
        if edit.kind is not EditKind.SWAP:
            span = slice(edit.start, edit.stop)
            own_T = emission.logp_TC[np.arange(edit.start, edit.stop), wrong_T[span]]
            gain_T = emission.logp_TC[span, edit.new_label] - own_T
            assert row[COLUMNS.index("emission")] == pytest.approx(gain_T.mean())
            low = np.sort(gain_T)[: max(1, len(gain_T) // 3)].mean()
            assert row[COLUMNS.index("emission_low")] == pytest.approx(low)
    assert np.isfinite(rows).all()


def test_where_labelling_stopped_an_order_that_never_occurs_hardly_speaks_against_a_step():
    stopped_T = np.where(np.arange(len(TRUE)) < 20, TRUE, 0)  # 0, then all the rest is 0 as well
    segments, statistics = segments_of(stopped_T), made_statistics()
    edits = candidate_edits(segments, made_emission(), statistics, fps=5.0)
    rows = evidence_rows(edits, segments, made_emission(), statistics, fps=5.0)
    order = COLUMNS.index("bigram")
    [odd] = [i for i, e in enumerate(edits) if e.kind is EditKind.INSERT and e.stop < len(TRUE)]
    before, after = sequence_terms([segments, edits[odd].segments], statistics, fps=5.0)
    assert after[0] - before[0] < -2
    assert rows[odd, order] == LEAST_INSERTED_ORDER
    assert min(rows[i, order] for i, e in enumerate(edits) if e.kind is EditKind.RENAME) < -1.5


def test_what_somebody_wrote_loses_little_by_an_order_that_is_never_seen():
    written_T = np.repeat([0, 3, 1, 2, 3], [10, 10, 25, 15, 20])  # 3 between 0 and 1: never seen
    counts = [counts_of(np.repeat([0, 1, 2, 3], 20), num_classes=5, fps=5.0) for _ in range(200)]
    statistics = statistics_of(reduce(lambda a, b: a + b, counts))
    segments = segments_of(written_T)
    edits = candidate_edits(segments, made_emission(), statistics, fps=5.0)
    rows = evidence_rows(edits, segments, made_emission(), statistics, fps=5.0)
    [odd] = [i for i, e in enumerate(edits) if e.kind is EditKind.DELETE and e.start == 10]
    before, after = sequence_terms([segments, edits[odd].segments], statistics, fps=5.0)
    assert after[0] - before[0] > 8
    assert rows[odd, COLUMNS.index("bigram")] == MOST_WRITTEN_ORDER


def test_unlabelled_frames_have_no_candidates():
    labels_T = TRUE.copy()
    labels_T[:20] = -1
    edits = candidate_edits(segments_of(labels_T), made_emission(), made_statistics(), fps=5.0)
    assert min(edit.start for edit in edits) >= 20


def test_emission_is_a_bounded_probability():
    emission = made_emission(noise=5.0)
    assert emission.logp_TC.min() >= FLOOR
    assert np.exp(emission.logp_TC).sum(axis=1) == pytest.approx(1, abs=0.06)
    assert emission.sum_TC[80] == pytest.approx(emission.logp_TC.sum(axis=0))


def test_temperature_above_one_for_what_is_overconfident():
    rng = np.random.default_rng(0)
    labels_N = rng.integers(3, size=2000)
    seen_N = np.where(rng.random(2000) < 0.7, labels_N, rng.integers(3, size=2000))
    logp_NC = normalised(6.0 * np.eye(3)[seen_N])
    best, of_seen = (temperature_likelihoods(logp_NC, y_N).argmax() for y_N in (labels_N, seen_N))
    assert TEMPERATURES[best] >= 2.0
    assert TEMPERATURES[of_seen] < 1.0
