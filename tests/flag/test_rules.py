import numpy as np
import pytest

from csl_dist.config import FlagConfig
from csl_dist.errors import DataError
from csl_dist.flag.rules import (
    KindJudge,
    close_gaps,
    describe,
    kind_judge,
    ranked,
    suggestion,
    suspicious_spans,
    thresholds,
)
from csl_dist.types import Annotation, ErrorKind, Flag, Span

CLASSES = ("a", "b", "c")


def annotation(labels: list[int]) -> Annotation:
    return Annotation(
        video="v", labels_T=np.array(labels), times_T=np.arange(len(labels)) / 10 + 1.0
    )


def threshold(config: FlagConfig, validation: np.ndarray, audit: np.ndarray) -> float:
    [tau] = thresholds(config, validation, {"v": audit}).values()
    return tau


def test_threshold_by_validation_is_its_quantile() -> None:
    validation = np.append(np.arange(101.0), np.nan)
    assert threshold(FlagConfig(rule="validation", quantile=0.9), validation, np.zeros(3)) == 90


def test_threshold_by_deviations_is_mean_plus_some_of_validation() -> None:
    config = FlagConfig(rule="validation_sd", deviations=2)
    assert threshold(config, np.array([1.0, 3.0, np.nan]), np.zeros(3)) == 4.0


def test_threshold_by_top_percent_is_taken_from_the_audit() -> None:
    config = FlagConfig(rule="top", percent=10)
    assert threshold(config, np.zeros(3), np.arange(101.0)) == 90


def test_rules_of_a_video_look_at_its_own_scores() -> None:
    audit = {"calm": np.arange(11.0), "wild": 10 * np.arange(11.0), "bare": np.full(2, np.nan)}
    robust = thresholds(FlagConfig(rule="robust", deviations=2), np.empty(0), audit)
    assert robust["calm"] == pytest.approx(5 + 2 * 1.4826 * 3)
    assert robust["wild"] == pytest.approx(10 * robust["calm"])
    assert robust["bare"] == np.inf
    top = thresholds(FlagConfig(rule="top_video", percent=10), np.empty(0), audit)
    assert (top["calm"], top["wild"], top["bare"]) == (9, 90, np.inf)


def test_threshold_without_labelled_validation_frames_is_that_of_top() -> None:
    for rule in ("validation", "validation_sd"):
        for validation in (np.empty(0), np.full(3, np.nan)):
            config = FlagConfig(rule=rule, percent=10)
            assert threshold(config, validation, np.arange(101.0)) == 90
    with pytest.raises(DataError, match="has a labelled frame"):
        threshold(FlagConfig(rule="validation"), np.empty(0), np.full(3, np.nan))


def test_spans_stay_within_a_label_and_above_the_threshold() -> None:
    labels = annotation([0] * 6 + [1] * 6)
    score = np.array([0, 0, 0, 5, 5, 5, 5, 5, 0, 0, 5, 0.0])
    config = FlagConfig(min_frames=2, close_gap=1)
    assert suspicious_spans(score, labels, 1.0, config) == [Span(3, 6), Span(6, 8)]


def test_unlabelled_and_nan_frames_are_never_flagged() -> None:
    labels = annotation([-1] * 4 + [1] * 4)
    score = np.array([np.nan] * 4 + [9.0, 9, 9, 9])
    spans = suspicious_spans(score, labels, 1.0, FlagConfig(min_frames=1))
    assert spans == [Span(4, 8)]


def test_gaps_are_closed_between_spans_only() -> None:
    mask = np.array([0, 1, 0, 0, 1, 0, 0, 0, 1, 0], dtype=bool)
    assert close_gaps(mask, 2).tolist() == [0, 1, 1, 1, 1, 0, 0, 0, 1, 0]


def test_suggestion_is_the_likeliest_class_but_the_label() -> None:
    probability = np.array([0.5, 0.3, 0.2])
    assert suggestion(probability, label=0) == (1, 0.3)
    assert suggestion(probability, label=1) == (0, 0.5)
    assert probability[0] == 0.5, "the argument is left alone"


def described(margin: float | None, judge: KindJudge | None) -> Flag:
    return describe(
        Span(2, 5),
        annotation([0] * 8),
        score_T=np.arange(8.0),
        appearance_T=None if margin is None else np.full(8, margin),
        judge=judge,
        probability_C=np.full(3, 1 / 3),
        classes=CLASSES,
    )


@pytest.mark.parametrize(
    ("margin", "kind"), [(0.6, ErrorKind.MISLABEL), (-0.5, ErrorKind.DISORDER)]
)
def test_kind_is_disorder_where_single_frames_look_right(margin: float, kind: str) -> None:
    flag = described(margin, KindJudge(slope=5.0, offset=0.0))
    assert flag.kind is kind
    assert flag.kind_confidence == pytest.approx(1 / (1 + np.exp(-5 * abs(margin))))
    assert (flag.label, flag.score) == ("a", 3.0)
    assert flag.start_seconds == pytest.approx(1.2)
    assert flag.stop_seconds == pytest.approx(1.5)


def test_kind_without_a_framewise_scorer_has_no_confidence() -> None:
    flag = described(None, None)
    assert (flag.kind, flag.kind_confidence) == (ErrorKind.MISLABEL, None)
    assert flag.why == "Labelled a, but the model sees b (33%)."


def test_judge_learns_where_wrong_and_right_spans_part() -> None:
    rng = np.random.default_rng(0)
    judge = kind_judge(rng.normal(0.5, 0.1, size=20), rng.normal(-0.5, 0.1, size=200))
    assert judge.mislabel_probability(0.5) > 0.8
    assert judge.mislabel_probability(-0.5) < 0.2
    assert judge.mislabel_probability(0.0) == pytest.approx(0.5, abs=0.1), "kinds weigh the same"


def test_ranked_flags_come_worst_first() -> None:
    def flag(score: float) -> Flag:
        return Flag(
            video="v",
            span=Span(1, 2),
            start_seconds=0,
            stop_seconds=1,
            score=score,
            kind=ErrorKind.MISLABEL,
            kind_confidence=None,
            label="a",
            suggested="b",
            suggested_probability=0.5,
            why="",
        )

    table = ranked([flag(1), flag(3), flag(2)])
    assert table.score.tolist() == [3, 2, 1]
    assert table["rank"].tolist() == [1, 2, 3]
    assert list(ranked([]).columns) == list(table.columns)
