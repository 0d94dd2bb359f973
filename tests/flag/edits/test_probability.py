"""Log-odds, probabilities and findings."""

import numpy as np
import pytest

from csl_dist.data.mistakes import PlantedKind, PlantedSpan
from csl_dist.flag.edits.edit import Edit
from csl_dist.flag.edits.evidence import COLUMNS
from csl_dist.flag.edits.findings import (
    NO_EDIT,
    alternative_words,
    describe,
    frame_log_odds,
    is_right_fix,
    overlap,
    resolved,
)
from csl_dist.flag.edits.lists import ListName
from csl_dist.flag.edits.probability import (
    ALIGNED,
    DATASET_DEVIATION,
    SHIPPED,
    expected_right,
    fit_curve,
    fit_edit_model,
    logit,
    marginal,
    move_by_reviews,
    move_to_share,
    sigmoid,
)
from csl_dist.types import EditKind

SETTINGS = {"fps": 5.0, "tolerance_seconds": 2.0}


def made_edit(start, stop, kind=EditKind.RENAME, new_label=1, place=None):
    return Edit(
        kind=kind,
        start=start,
        stop=stop,
        label=0,
        last_label=0,
        new_label=new_label,
        place=start if place is None else place,
        segments=(),
        changed_share=1.0,
        quick_gain=0.0,
    )


def made_evidence(num, seed=0):
    rng = np.random.default_rng(seed)
    evidence_NK = rng.standard_normal((num, len(COLUMNS)))
    right_N = rng.random(num) < 1 / (1 + np.exp(3 - 3 * evidence_NK[:, 0]))
    return evidence_NK, right_N


def test_fitted_weights_find_what_matters_and_are_never_negative():
    evidence_NK, right_N = made_evidence(3000)
    evidence_NK[:, COLUMNS.index("count")] -= right_N
    model = fit_edit_model(evidence_NK, right_N, SHIPPED[EditKind.RENAME], draw=0.003)
    assert (model.weights_K >= 0).all()
    assert model.weights_K.argmax() == COLUMNS.index("emission")
    odds_N = model.log_odds(evidence_NK)
    assert (1 / (1 + np.exp(-odds_N))).mean() == pytest.approx(right_N.mean(), abs=0.01)


def test_with_few_right_ones_the_shipped_weights_stay():
    evidence_NK, _ = made_evidence(500)
    few_N = np.arange(500) < 3
    shipped = SHIPPED[EditKind.DELETE]
    model = fit_edit_model(evidence_NK, few_N, shipped, draw=0.003)
    share, level = ALIGNED
    assert (model.weights_K == shipped.weights_K).all()
    assert (model.log_odds(evidence_NK) >= level).mean() == pytest.approx(share, abs=0.005)


def made_audit(num_errors, seed):
    rng = np.random.default_rng(seed)
    odds_N = np.concatenate([rng.normal(-6, 2, 1000), rng.normal(-0.5, 1.5, num_errors)])
    return odds_N, np.arange(len(odds_N)) >= 1000


def test_calibration_holds_at_rates_between_those_that_it_was_fitted_on():
    known = [made_audit(n, seed) for seed in range(8) for n in (0, 10, 20, 40, 80)]
    calibration = fit_curve(known)
    for num_errors in (15, 30, 60):
        audits = [made_audit(num_errors, seed) for seed in range(100, 120)]
        promised, true = [], []
        for odds_N, right_N in audits:
            top = np.argsort(-odds_N)[:20]
            probability_N = calibration.probability(odds_N, excess=calibration.excess(odds_N))
            promised.append(probability_N[top].mean())
            true.append(right_N[top].mean())
        assert np.mean(promised) == pytest.approx(np.mean(true), abs=0.1)


def test_an_expected_share_moves_the_mean():
    z_N = logit(np.array([0.9, 0.5, 0.1, 0.05]))
    moved_N = marginal(z_N + move_to_share(z_N, 0.1), DATASET_DEVIATION)
    assert moved_N.mean() == pytest.approx(0.1, abs=1e-4)


@pytest.mark.parametrize("num_reviewed", [1, 5, 20, 40])
@pytest.mark.parametrize(("z", "is_right"), [(4.5, False), (-4.5, True), (0.0, False)])
def test_reviews_move_all_to_the_likeliest_place(z: float, is_right: bool, num_reviewed: int):
    z_R, right_R = np.full(num_reviewed, z), np.full(num_reviewed, is_right)
    move, deviation = move_by_reviews(z_R, right_R)

    def likelihood(x: float) -> float:
        agree = np.log(sigmoid((z + x) * (1 if is_right else -1)))
        return float(num_reviewed * agree - x**2 / (2 * DATASET_DEVIATION**2))

    tried = np.linspace(-8, 8, 1601)
    assert move == pytest.approx(max(tried, key=likelihood), abs=0.01)
    assert 0 < deviation < DATASET_DEVIATION


def test_curve_without_counts_is_the_same_however_many_findings_are_high():
    known = [made_audit(n, seed) for seed in range(8) for n in (10, 40)]
    curve = fit_curve(known, counts=False)
    few_N, many_N = made_audit(0, 100)[0], made_audit(80, 100)[0]
    assert curve.excess(few_N) == curve.excess(many_N) == 0
    odds_N = np.concatenate([odds_N for odds_N, _ in known])
    right_N = np.concatenate([right_N for _, right_N in known])
    near_N = (odds_N > -1) & (odds_N < 0)
    promised = sigmoid(curve.log_odds(odds_N[near_N], excess=0.0)).mean()
    assert promised == pytest.approx(right_N[near_N].mean(), abs=0.1)


def test_expected_right_has_bounds_around_the_mean():
    mean, low, high = expected_right([(np.full(20, 0.7), 1.0)])
    assert mean == pytest.approx(14)
    assert 0 <= low < mean < high <= 20


def test_lists_that_are_off_apart_make_a_narrower_interval_than_one_list():
    together = expected_right([(np.full(20, 0.7), 1.0)])
    apart = expected_right([(np.full(10, 0.7), 1.0), (np.full(10, 0.7), 1.0)])
    assert together[0] == pytest.approx(apart[0])
    assert together[1] < apart[1] < apart[2] < together[2]


def test_of_two_findings_that_overlap_the_surer_stays():
    edits = [made_edit(0, 20), made_edit(5, 25), made_edit(24, 50)]
    evidence_NK = np.zeros((3, len(COLUMNS)))
    kept = resolved(edits, evidence_NK, np.array([1.0, 2.0, 0.0]), **SETTINGS)
    assert [(f.edit.start, f.log_odds) for f in kept] == [(5, 2.0), (24, 0.0)]


@pytest.mark.parametrize(("odds", "rival"), [(2.5, 3), (1.9, None)])
def test_what_else_it_could_be_is_the_next_surest_edit_of_the_place(odds, rival):
    edits = [made_edit(0, 20), made_edit(5, 25), made_edit(40, 50), made_edit(0, 20, new_label=3)]
    odds_N = np.array([3.0, 1.0, 2.5, odds])
    first, second = resolved(edits, np.zeros((4, len(COLUMNS))), odds_N, **SETTINGS)
    assert first.rival is (None if rival is None else edits[rival])
    assert second.rival is None


def test_a_boundary_within_tolerance_is_no_finding_and_a_swap_stays_beside_the_rest():
    edits = [
        made_edit(0, 8, EditKind.BOUNDARY),
        made_edit(20, 40, EditKind.SWAP),
        made_edit(20, 40),
    ]
    evidence_NK = np.zeros((3, len(COLUMNS)))
    kept = resolved(edits, evidence_NK, np.array([3.0, 2.0, 1.0]), **SETTINGS)
    assert [f.list_name for f in kept] == [ListName.ORDER, ListName.STEPS]


def test_frames_take_the_largest_log_odds_over_them():
    odds_T = frame_log_odds([made_edit(0, 3), made_edit(2, 5)], np.array([1.0, 2.0]), 6)
    assert odds_T.tolist() == [1, 1, 2, 2, 2, NO_EDIT]


def test_overlap_is_shared_over_all_frames():
    error = PlantedSpan(kind=PlantedKind.RENAME, start=10, stop=20, label=1)
    assert overlap(made_edit(15, 25), error) == pytest.approx(5 / 15)
    assert is_right_fix(made_edit(9, 20), error)
    assert not is_right_fix(made_edit(9, 20, new_label=2), error)
    assert overlap(made_edit(10, 20, EditKind.SWAP), error) == 0


def test_a_sentence_names_the_fix():
    evidence_NK = np.zeros((1, len(COLUMNS)))
    evidence_NK[0, COLUMNS.index("bigram")] = 2.0
    [finding] = resolved([made_edit(10, 20)], evidence_NK, np.zeros(1), **SETTINGS)
    sentence = describe(finding, ["cut", "peel"], fps=5.0)
    assert sentence.startswith("Labelled cut from 2.0 to 4.0 s, but peel fits better")
    assert "7 times as usual" in sentence


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (EditKind.RENAME, "peel from 2.0 to 4.0 s"),
        (EditKind.DELETE, "part of peel from 2.0 to 4.0 s"),
        (EditKind.INSERT, "a missing peel from 2.0 to 4.0 s"),
        (EditKind.BOUNDARY, "a boundary that belongs at 2.0 s"),
        (EditKind.SWAP, "cut and peel in the wrong order from 2.0 to 4.0 s"),
    ],
)
def test_what_else_it_could_be_is_told_in_a_few_words(kind, words):
    edit = made_edit(10, 20, kind, place=10)
    assert alternative_words(edit, ["cut", "peel"], fps=5.0) == words
