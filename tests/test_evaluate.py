import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from csl_dist.errors import DataError
from csl_dist.evaluate import Truth, auc_micro, eda_top, truth_of_kind
from csl_dist.records import ErrorKind, PlantedError, Span


def truth(*spans: Span, num_frames: int = 20) -> Truth:
    errors = [PlantedError(video="v", kind=ErrorKind.MISLABEL, span=span) for span in spans]
    return truth_of_kind(ErrorKind.MISLABEL, errors, {"v": num_frames})


@given(st.lists(st.integers(0, 4), min_size=20, max_size=20))
def test_auc_equals_the_share_of_pairs_in_order(values: list[int]) -> None:
    known = truth(Span(3, 8))
    score = np.array(values, dtype=float)
    wrong, right = score[known.masks["v"]], score[~known.masks["v"]]
    pairs = [(w > r) + 0.5 * (w == r) for w in wrong for r in right]
    assert auc_micro(known, {"v": score}) == pytest.approx(np.mean(pairs))


def test_auc_leaves_unlabelled_frames_out() -> None:
    score = np.arange(20.0)
    score[:4] = np.nan
    known = truth(Span(0, 4), Span(18, 20))
    assert auc_micro(known, {"v": score}) == 1.0


def test_eda_counts_spans_with_a_frame_at_the_top() -> None:
    score = np.zeros(20)
    score[[4, 15]] = 5, 4
    known = truth(Span(3, 6), Span(8, 10), Span(14, 18))
    assert eda_top(known, {"v": score}, 5) == pytest.approx(1 / 3)
    assert eda_top(known, {"v": score}, 10) == pytest.approx(2 / 3)
    assert eda_top(known, {"v": score}, 100) == 1


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
        assert auc_micro(truth_of_kind(kind, errors, {"v": 7}), {"v": score}) == 1.0


def test_video_that_is_all_wrong_or_all_right_has_no_auc() -> None:
    assert auc_micro(truth(Span(0, 20)), {"v": np.arange(20.0)}) is None
    assert auc_micro(truth(), {"v": np.arange(20.0)}) is None
    assert eda_top(truth(), {"v": np.arange(20.0)}, 10) is None


def test_known_error_beyond_the_video_is_refused() -> None:
    with pytest.raises(DataError, match="at frames 15 to 25, but the video has 20 sampled frames"):
        truth(Span(15, 25))


def test_errors_of_a_video_that_is_not_audited_are_refused() -> None:
    errors = [PlantedError(video="ghost", kind=ErrorKind.MISLABEL, span=Span(0, 1))]
    with pytest.raises(DataError, match="in video 'ghost', which is not audited"):
        truth_of_kind(ErrorKind.MISLABEL, errors, {"v": 3})
