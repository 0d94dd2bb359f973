import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from csl_dist.errors import DataError
from csl_dist.evaluate import Truth, auc_micro, eda_top, mask_of, truth_of_kind
from csl_dist.records import ErrorKind, PlantedError, Span


def truth(*spans: Span, num_frames: int = 20) -> Truth:
    return Truth(videos=("v",), masks={"v": mask_of(spans, num_frames)}, spans={"v": spans})


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


def test_errors_of_a_video_that_is_not_audited_are_refused() -> None:
    errors = [PlantedError(video="ghost", kind=ErrorKind.MISLABEL, span=Span(0, 1))]
    with pytest.raises(DataError, match="not audited: ghost"):
        truth_of_kind(ErrorKind.MISLABEL, errors, {"v": 3})
