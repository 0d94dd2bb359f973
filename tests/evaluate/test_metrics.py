import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from csl_dist.errors import DataError
from csl_dist.evaluate.metrics import (
    Truth,
    egoper_counts,
    flag_metrics,
    measured,
    ranking,
    truth_of_kind,
)
from csl_dist.types import ErrorKind, PlantedError, Span


def truth(*spans: Span, num_frames: int = 20) -> Truth:
    errors = [PlantedError(video="v", kind=ErrorKind.MISLABEL, span=span) for span in spans]
    return truth_of_kind(ErrorKind.MISLABEL, errors, {"v": num_frames})


def metrics(known: Truth, score: np.ndarray) -> dict[str, float]:
    return ranking(known, {"v": score}).metrics(np.ones(1))


@given(st.lists(st.integers(0, 4), min_size=20, max_size=20))
def test_auc_equals_the_share_of_pairs_in_order(values: list[int]) -> None:
    known = truth(Span(3, 8))
    score = np.array(values, dtype=float)
    wrong, right = score[known.masks["v"]], score[~known.masks["v"]]
    pairs = [(w > r) + 0.5 * (w == r) for w in wrong for r in right]
    assert metrics(known, score)["auc_micro"] == pytest.approx(np.mean(pairs))


@given(st.lists(st.integers(0, 4), min_size=20, max_size=20))
def test_average_precision_equals_scikit_learns_ties_included(values: list[int]) -> None:
    known = truth(Span(3, 8))
    score = np.array(values, dtype=float)
    expected = average_precision_score(known.masks["v"], score)
    assert metrics(known, score)["average_precision"] == pytest.approx(expected)


def test_precision_and_recall_of_a_budget_count_its_frames() -> None:
    score = np.arange(20.0)  # the top 10 % are frames 18 and 19
    found = metrics(truth(Span(19, 20), Span(0, 3)), score)
    assert (found["precision_top_10"], found["recall_top_10"]) == (0.5, 0.25)
    assert found["recall_top_20"] == 0.25


def test_score_that_tells_nothing_gains_nothing_from_ties() -> None:
    spans = [Span(i, i + 1) for i in range(0, 1000, 10)]
    found = metrics(truth(*spans, num_frames=1000), np.zeros(1000))
    assert found["auc_micro"] == 0.5
    assert found["precision_top_10"] == pytest.approx(0.1)
    assert found["recall_top_10"] == pytest.approx(0.1)
    assert found["eda_top_10"] == pytest.approx(0.1, abs=0.1)


def test_auc_leaves_unlabelled_frames_out() -> None:
    score = np.arange(20.0)
    score[:4] = np.nan
    found = metrics(truth(Span(0, 4), Span(18, 20)), score)
    assert found["auc_micro"] == 1.0
    assert found["eda_top_10"] == 1.0, "a span without a scored frame can't be found or missed"


def test_eda_counts_spans_with_a_frame_at_the_top() -> None:
    score = np.arange(20) / 100
    score[[4, 15]] = 5, 4
    found = metrics(truth(Span(3, 6), Span(8, 10), Span(14, 16)), score)
    assert found["eda_top_5"] == pytest.approx(1 / 3)
    assert found["eda_top_10"] == pytest.approx(2 / 3)
    assert found["eda_top_20"] == pytest.approx(2 / 3)


def naive_egoper(labels: list[int], wrong: list[bool], predicted: list[bool]) -> tuple[int, int]:
    """Segment by segment as told in REFERENCE: the frame is seen before the boundary is noticed."""
    correct = total = 0
    current, is_wrong, any_predicted = labels[0], wrong[0], False
    for label, w, p in zip(labels, wrong, predicted, strict=True):
        any_predicted = any_predicted or p
        if label != current:
            correct += any_predicted == is_wrong
            total += 1
            current, is_wrong, any_predicted = label, w, False
    return correct + (any_predicted == is_wrong), total + 1


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.floats(-3, 3, allow_subnormal=False)),
        min_size=2,
        max_size=25,
    )
)
def test_eda_egoper_equals_its_naive_form(frames: list[tuple[int, float]]) -> None:
    labels = np.array([label for label, _ in frames])
    score = np.array([value for _, value in frames])
    known = truth(Span(0, 1), num_frames=len(frames))
    correct, total = egoper_counts(known, {"v": score}, {"v": labels})
    for k, deviation in enumerate(np.linspace(-2, 2, 41)):
        predicted = score > score.mean() + deviation * score.std()
        expected = naive_egoper(labels.tolist(), known.masks["v"].tolist(), predicted.tolist())
        assert (correct[0, k], total[0]) == expected


def test_intervals_hold_the_value_and_come_out_the_same_again() -> None:
    rng = np.random.default_rng(0)
    errors = [
        PlantedError(video=f"v{i}", kind=ErrorKind.MISLABEL, span=Span(5, 15)) for i in range(8)
    ]
    known = truth_of_kind(ErrorKind.MISLABEL, errors, {f"v{i}": 50 for i in range(8)})
    scores = {v: rng.normal(size=50) + 1.5 * known.masks[v] for v in known.videos}
    labels = {v: np.zeros(50, dtype=int) for v in known.videos}
    found = measured(known, scores, labels)
    for value, low, high in found.values():
        assert low <= value <= high
    assert found["auc_micro"][1] < found["auc_micro"][2]
    assert measured(known, scores, labels) == found
    assert all(
        len(values) == 1 for values in measured(known, scores, labels, num_resamples=0).values()
    )


def test_counting_a_video_twice_equals_having_it_twice() -> None:
    rng = np.random.default_rng(1)
    names = ("a", "b", "b again")
    errors = [PlantedError(video=v, kind=ErrorKind.MISLABEL, span=Span(2, 5)) for v in names]
    scores = {"a": rng.normal(size=20), "b": rng.normal(size=20)}
    scores["b again"] = scores["b"]
    two = truth_of_kind(ErrorKind.MISLABEL, errors[:2], dict.fromkeys(names[:2], 20))
    three = truth_of_kind(ErrorKind.MISLABEL, errors, dict.fromkeys(names, 20))
    weighted = ranking(two, scores).metrics(np.array([1.0, 2.0]))
    repeated = ranking(three, scores).metrics(np.ones(3))
    for name in ("auc_micro", "average_precision", "recall_top_20"):
        assert weighted[name] == pytest.approx(repeated[name])


def test_truth_of_a_kind_leaves_videos_with_other_kinds_out() -> None:
    errors = [
        PlantedError(video="m", kind=ErrorKind.MISLABEL, span=Span(0, 2), true_label="a"),
        PlantedError(video="d", kind=ErrorKind.DISORDER, span=Span(1, 3)),
    ]
    frames = {"m": 4, "d": 4, "clean": 4}
    found = truth_of_kind(ErrorKind.MISLABEL, errors, frames)
    assert found.videos == ("m", "clean")
    assert found.masks["m"].tolist() == [True, True, False, False]
    assert not found.masks["clean"].any()


def test_frames_of_another_kind_in_the_same_video_do_not_count() -> None:
    errors = [
        PlantedError(video="v", kind=ErrorKind.MISLABEL, span=Span(0, 2)),
        PlantedError(video="v", kind=ErrorKind.DISORDER, span=Span(4, 6)),
    ]
    score = np.array([5.0, 5, 1, 1, 9, 9, 1])
    for kind in (ErrorKind.MISLABEL, ErrorKind.DISORDER):
        assert metrics(truth_of_kind(kind, errors, {"v": 7}), score)["auc_micro"] == 1.0


def test_video_that_is_all_wrong_or_all_right_has_no_auc() -> None:
    all_wrong, all_right = (
        metrics(truth(Span(0, 20)), np.arange(20.0)),
        metrics(truth(), np.arange(20.0)),
    )
    assert "auc_micro" not in all_wrong
    assert all_wrong["precision_top_10"] == 1.0
    assert not all_right


def test_one_frame_video_and_video_without_any_score() -> None:
    assert metrics(truth(Span(0, 1), num_frames=1), np.zeros(1))["eda_top_1"] == 1.0
    assert not metrics(truth(Span(0, 3)), np.full(20, np.nan))


def flags(*rows: tuple[str, int, int, str, str]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["video", "start", "stop", "kind", "suggested"])


def test_flag_metrics_take_the_flag_that_covers_most_of_an_error() -> None:
    errors = [
        PlantedError(video="a", kind=ErrorKind.MISLABEL, span=Span(10, 20), true_label="cut"),
        PlantedError(video="a", kind=ErrorKind.JITTER, span=Span(40, 50)),
        PlantedError(video="b", kind=ErrorKind.DISORDER, span=Span(0, 9)),
        PlantedError(video="b", kind=ErrorKind.EXECUTION, span=Span(20, 30)),
    ]
    table = flags(
        ("a", 8, 12, "disorder", "stir"),
        ("a", 12, 20, "mislabel", "cut"),
        ("b", 0, 5, "mislabel", "pour"),
        ("b", 10, 12, "mislabel", "pour"),
        ("b", 25, 28, "mislabel", "pour"),
    )
    assert flag_metrics(errors, table) == {
        "precision": 0.8,
        "recall": 0.75,
        "kind_accuracy": 0.5,
        "suggestion_accuracy": 1.0,
    }


def test_flag_metrics_without_flags_have_a_recall_only() -> None:
    error = PlantedError(video="a", kind=ErrorKind.MISLABEL, span=Span(1, 2), true_label="cut")
    assert flag_metrics([error], flags()) == {"recall": 0.0}


def test_known_error_beyond_the_video_is_refused() -> None:
    with pytest.raises(DataError, match="at frames 15 to 25, but the video has 20 sampled frames"):
        truth(Span(15, 25))


def test_errors_of_a_video_that_is_not_audited_are_refused() -> None:
    errors = [PlantedError(video="ghost", kind=ErrorKind.MISLABEL, span=Span(0, 1))]
    with pytest.raises(DataError, match="in video 'ghost', which is not audited"):
        truth_of_kind(ErrorKind.MISLABEL, errors, {"v": 3})
