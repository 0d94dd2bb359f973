"""Candidates and evidence of many edits at once, against those of one after the other."""

import numpy as np
import plain_edits
import pytest

from csl_dist.data.segments import segments_of
from csl_dist.flag.edits.candidates import candidate_edits
from csl_dist.flag.edits.edit import Edit
from csl_dist.flag.edits.emission import Emission, emission_of, late_view, normalised
from csl_dist.flag.edits.evidence import COLUMNS, evidence_rows
from csl_dist.flag.edits.findings import SHARED, is_swap, overlap_of_shorter, resolved
from csl_dist.flag.edits.statistics import (
    MOST_PAIRS,
    Statistics,
    counts_of,
    sequence_terms,
    statistics_of,
)
from csl_dist.types import EditKind, IntArray


def drawn_labels(seed: int, num_segments: int, num_classes: int) -> IntArray:
    """Steps of random lengths, some of a frame or two, and some frames without a label."""
    random = np.random.default_rng(seed)
    names = random.integers(-1 if seed % 2 else 0, num_classes, size=num_segments)
    lengths = random.choice([1, 2, 3, 4, 5, 17, 40, 90], size=num_segments)
    return np.repeat(names, lengths)


def drawn_emission(seed: int, num_frames: int, num_classes: int) -> Emission:
    random = np.random.default_rng(seed)
    parts = 3 * random.standard_normal((2, 5, num_frames, num_classes))
    families = [late_view([normalised(part).astype(np.float32)], 2) for part in parts]
    return emission_of(families, [1.0, 1.4])


def drawn_statistics(num_classes: int) -> Statistics:
    videos = [drawn_labels(100 + seed, 20, num_classes) for seed in range(4)]
    first, *others = [counts_of(v, num_classes=num_classes, fps=5.0) for v in videos]
    return statistics_of(sum(others, first))


@pytest.mark.parametrize("num_segments", [1, 2, 8, 9, 30, 140])
@pytest.mark.parametrize("seed", range(4))
def test_edits_and_evidence_are_the_same_to_the_last_bit(seed: int, num_segments: int) -> None:
    num_classes = 3 + 5 * (seed // 2)
    labels_T = drawn_labels(seed, num_segments, num_classes)
    emission = drawn_emission(seed, len(labels_T), num_classes)
    statistics, segments = drawn_statistics(num_classes), segments_of(labels_T)
    edits = candidate_edits(segments, emission, statistics, fps=4.7)
    assert edits == plain_edits.candidate_edits(segments, emission, statistics, fps=4.7)
    rows_NK = evidence_rows(edits, segments, emission, statistics, fps=4.7)
    plain_NK = plain_edits.evidence_rows(edits, segments, emission, statistics, fps=4.7)
    assert np.array_equal(rows_NK, plain_NK)


def test_terms_of_a_long_annotation_are_the_same_in_parts() -> None:
    statistics = drawn_statistics(6)
    sequences = [segments_of(drawn_labels(seed, 400, 6)) for seed in (2, 4, 6)]
    assert min(map(len, sequences)) ** 2 * len(sequences) > MOST_PAIRS
    terms_NK = sequence_terms(sequences, statistics, fps=5.0)
    for segments, terms_K in zip(sequences, terms_NK, strict=True):
        assert np.array_equal(terms_K, plain_edits.sequence_terms(segments, statistics, fps=5.0))


@pytest.mark.parametrize("seed", range(3))
def test_findings_are_those_of_edits_compared_two_by_two(seed: int) -> None:
    labels_T = drawn_labels(seed, 30, 4)
    segments, emission = segments_of(labels_T), drawn_emission(seed, len(labels_T), 4)
    edits = candidate_edits(segments, emission, drawn_statistics(4), fps=5.0)
    odds_N = np.random.default_rng(seed).standard_normal(len(edits)).round(1)
    kept: list[Edit] = []
    for edit in [edits[i] for i in np.argsort(-odds_N, kind="stable")]:
        is_within = edit.kind is EditKind.BOUNDARY and edit.num_frames / 5.0 <= 2.0
        rivals = [other for other in kept if is_swap(other) == is_swap(edit)]
        if not is_within and all(overlap_of_shorter(edit, other) <= SHARED for other in rivals):
            kept.append(edit)
    evidence_NK = np.zeros((len(edits), len(COLUMNS)))
    found = resolved(edits, evidence_NK, odds_N, fps=5.0, tolerance_seconds=2.0)
    assert [f.edit for f in found] == kept
