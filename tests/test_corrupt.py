import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from csl_dist.corrupt import disorder, mislabel
from csl_dist.errors import DataError
from csl_dist.evaluate import mask_of

NUM_CLASSES = 5

segment_lists = st.lists(
    st.tuples(st.integers(0, NUM_CLASSES - 1), st.integers(1, 12)), min_size=2, max_size=8
)


def labels_of(segments: list[tuple[int, int]]) -> np.ndarray:
    return np.repeat([s[0] for s in segments], [s[1] for s in segments])


@given(segment_lists, st.integers(0, 2**32 - 1))
def test_mislabel_changes_labels_exactly_inside_its_spans(
    segments: list[tuple[int, int]], seed: int
) -> None:
    labels = labels_of(segments)
    made = mislabel(labels, np.random.default_rng(seed), num_classes=NUM_CLASSES, lengths=(2, 6))
    assert np.array_equal(made.labels_T != labels, mask_of(made.spans, len(labels)))
    assert np.array_equal(made.order_T, np.arange(len(labels)))
    assert made.labels_T.max() < NUM_CLASSES


@given(segment_lists, st.integers(0, 2**32 - 1))
def test_disorder_swaps_frames_and_labels_together(
    segments: list[tuple[int, int]], seed: int
) -> None:
    labels = labels_of(segments)
    if len(set(labels)) == 1:
        with pytest.raises(DataError):
            disorder(labels, np.random.default_rng(seed))
        return
    made = disorder(labels, np.random.default_rng(seed))
    mask = mask_of(made.spans, len(labels))
    assert np.array_equal(made.order_T != np.arange(len(labels)), mask)
    assert np.array_equal(made.labels_T, labels[made.order_T])
    assert np.array_equal(np.sort(made.order_T), np.arange(len(labels)))


@given(segment_lists, st.integers(0, 1000))
def test_same_seed_gives_the_same_corruption(segments: list[tuple[int, int]], seed: int) -> None:
    labels = labels_of(segments)
    one, two = (
        mislabel(labels, np.random.default_rng(seed), num_classes=NUM_CLASSES, lengths=(1, 9))
        for _ in range(2)
    )
    assert np.array_equal(one.labels_T, two.labels_T)
    assert one.spans == two.spans


def test_unlabelled_segments_are_left_alone() -> None:
    labels = np.array([-1] * 5 + [2] * 5 + [-1] * 5)
    made = mislabel(labels, np.random.default_rng(0), num_classes=3, lengths=(3, 3))
    assert np.array_equal(made.labels_T == -1, labels == -1)
    with pytest.raises(DataError, match="no two neighbouring labelled segments"):
        disorder(labels, np.random.default_rng(0))


def test_more_spans_than_segments_is_refused() -> None:
    with pytest.raises(DataError, match="3 spans to mislabel, but only 2 segments"):
        mislabel(
            np.array([0, 0, 1]),
            np.random.default_rng(0),
            num_classes=2,
            num_spans=3,
            lengths=(1, 1),
        )
