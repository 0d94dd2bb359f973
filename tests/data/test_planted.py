from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from csl_dist.config import CorruptConfig
from csl_dist.data.placing import Amount
from csl_dist.data.planted import (
    AS_PEOPLE_DO,
    KINDS,
    Corruption,
    chosen_kinds,
    corrupted,
    disorder,
    insert,
    jitter,
    mislabel,
)
from csl_dist.errors import DataError
from csl_dist.evaluate.metrics import mask_of
from csl_dist.types import ErrorKind, runs_of

NUM_CLASSES = 5
AMOUNT = Amount(rate=0.2, lengths=(2, 6))

segment_lists = st.lists(
    st.tuples(st.integers(-1, NUM_CLASSES - 1), st.integers(1, 12)), min_size=1, max_size=9
)
seeds = st.integers(0, 2**32 - 1)
all_kinds = pytest.mark.parametrize("corrupt", KINDS.values(), ids=KINDS.keys())
Corrupt = Callable[..., Corruption]


def labels_of(segments: list[tuple[int, int]]) -> np.ndarray:
    return np.repeat([s[0] for s in segments], [s[1] for s in segments])


def make(corrupt: Corrupt, labels: np.ndarray, seed: int) -> Corruption | None:
    """The corruption, or None where the video has no room for it."""
    try:
        rng = np.random.default_rng(seed)
        return corrupt(labels, rng, num_classes=NUM_CLASSES, amount=AMOUNT)
    except DataError:
        return None


@all_kinds
@given(segments=segment_lists, seed=seeds)
def test_spans_are_exactly_where_labels_or_order_changed(
    corrupt: Corrupt, segments: list[tuple[int, int]], seed: int
) -> None:
    labels = labels_of(segments)
    made = make(corrupt, labels, seed)
    if made is None:
        return
    changed = (made.labels_T != labels) | (made.order_T != np.arange(len(labels)))
    assert np.array_equal(changed, mask_of(made.spans, len(labels)))
    assert sum(map(len, made.spans)) == changed.sum(), "spans do not overlap"


@all_kinds
@given(segments=segment_lists, seed=seeds)
def test_frames_are_kept_and_unlabelled_ones_stay(
    corrupt: Corrupt, segments: list[tuple[int, int]], seed: int
) -> None:
    labels = labels_of(segments)
    made = make(corrupt, labels, seed)
    if made is None:
        return
    assert np.array_equal(np.sort(made.order_T), np.arange(len(labels)))
    assert np.array_equal(made.labels_T == -1, labels == -1)
    assert made.labels_T.max() < NUM_CLASSES
    if not made.moves_frames:
        assert np.array_equal(made.order_T, np.arange(len(labels)))


@all_kinds
@given(segments=segment_lists, seed=st.integers(0, 1000))
def test_same_seed_gives_the_same_corruption(
    corrupt: Corrupt, segments: list[tuple[int, int]], seed: int
) -> None:
    labels = labels_of(segments)
    before = labels.copy()
    one, two = make(corrupt, labels, seed), make(corrupt, labels, seed)
    assert np.array_equal(labels, before), "the input is not written to"
    if one is not None and two is not None:
        assert one.labels_T.tobytes() == two.labels_T.tobytes()
        assert one.order_T.tobytes() == two.order_T.tobytes()
        assert one.spans == two.spans


@given(segments=segment_lists, seed=seeds)
def test_disorder_keeps_every_pair_of_frame_and_label(
    segments: list[tuple[int, int]], seed: int
) -> None:
    labels = labels_of(segments)
    made = make(disorder, labels, seed)
    if made is not None:
        assert np.array_equal(made.labels_T, labels[made.order_T])


@given(segments=segment_lists, seed=seeds)
def test_mislabelled_span_lies_in_one_segment(segments: list[tuple[int, int]], seed: int) -> None:
    labels = labels_of(segments)
    made = make(mislabel, labels, seed)
    if made is not None:
        for span in made.spans:
            assert len(set(labels[span.start : span.stop])) == 1


def test_mislabel_covers_about_the_rate() -> None:
    labels = np.repeat(np.arange(5), 400)
    amount = Amount(rate=0.3, lengths=(10, 40))
    made = mislabel(labels, np.random.default_rng(0), num_classes=5, amount=amount)
    assert 0.3 <= mask_of(made.spans, 2000).mean() < 0.33


@pytest.mark.parametrize(("num_frames", "rate"), [(100_000, 0.1), (5_000, 0.6)])
def test_mislabel_reaches_its_rate_in_long_videos_and_dense_ones(
    num_frames: int, rate: float
) -> None:
    labels = np.repeat(np.arange(10), num_frames // 10)
    amount = Amount(rate=rate, lengths=(10, 100))
    made = mislabel(labels, np.random.default_rng(0), num_classes=10, amount=amount)
    assert mask_of(made.spans, num_frames).mean() >= rate


def test_insert_takes_a_class_that_the_video_does_not_have() -> None:
    labels = np.array([0] * 20 + [1] * 20)
    made = insert(labels, np.random.default_rng(0), num_classes=4, amount=AMOUNT)
    assert set(made.labels_T[made.labels_T != labels]) <= {2, 3}
    assert made.labels_T[0] == 0
    assert made.labels_T[19] == 0, "a step stands inside another, not at its edge"


def test_jitter_keeps_the_order_of_segments() -> None:
    labels = np.repeat([0, 1, 2, 3], 20)
    made = jitter(labels, np.random.default_rng(3), num_classes=4, amount=AMOUNT)
    assert [made.labels_T[run.start] for run in runs_of(made.labels_T)] == [0, 1, 2, 3]
    assert made.spans


@all_kinds
def test_video_without_room_is_refused(corrupt: Corrupt) -> None:
    if corrupt is jitter:
        return  # no boundary, nothing to move
    with pytest.raises(DataError):
        corrupt(np.full(9, -1), np.random.default_rng(0), num_classes=3, amount=AMOUNT)


def test_kinds_are_spread_over_disjoint_shares() -> None:
    videos, shares = [f"v{i}" for i in range(4000)], {"mislabel": 0.5, "disorder": 0.25}
    chosen = chosen_kinds(videos, shares, seed=0)
    kinds = list(chosen.values())
    counts = kinds.count(ErrorKind.MISLABEL), kinds.count(ErrorKind.DISORDER)
    assert counts == (pytest.approx(2000, rel=0.05), pytest.approx(1000, rel=0.05))
    assert chosen == chosen_kinds(videos[::-1], shares, seed=0)
    assert chosen != chosen_kinds(videos, shares, seed=1)
    few = chosen_kinds(videos[:9], shares, seed=0)
    assert few == {video: chosen[video] for video in few}, "others change nothing"
    turned = dict(reversed(shares.items()))
    assert chosen == chosen_kinds(videos, turned, seed=0), "nor does the order in the config"
    every = chosen_kinds(videos, {"mislabel": 0.7, "disorder": 0.3}, seed=0)
    assert len(every) == len(videos)
    with pytest.raises(DataError, match="add up to 1.2"):
        chosen_kinds(videos, {"mislabel": 0.6, "disorder": 0.6}, seed=0)


def test_corruption_of_a_video_depends_on_its_id_and_seed_alone() -> None:
    labels = np.repeat(np.arange(4), 50)
    config = CorruptConfig(seed=3, lengths=(3, 9))

    def made(video: str, config: CorruptConfig) -> bytes:
        kind = ErrorKind.MISLABEL
        return corrupted(labels, kind, video, config, num_classes=4, fps=5.0).labels_T.tobytes()

    assert made("a", config) == made("a", config)
    assert made("a", config) != made("b", config)
    assert made("a", config) != made("a", CorruptConfig(seed=4, lengths=(3, 9)))


def test_video_that_can_not_be_corrupted_is_named() -> None:
    with pytest.raises(DataError, match="no disorder can be planted in video 'v'"):
        corrupted(
            np.zeros(9, int), ErrorKind.DISORDER, "v", CorruptConfig(), num_classes=2, fps=5.0
        )


@pytest.mark.parametrize("kind", AS_PEOPLE_DO)
def test_errors_as_people_make_them_change_labels_where_they_say(kind: ErrorKind) -> None:
    labels_T = np.repeat([0, 1, 2, 0, 3, 1], 60)
    config = CorruptConfig(lengths=(10, 40))
    corruption = corrupted(labels_T, kind, "v", config, num_classes=4, fps=5.0)
    inside_T = np.zeros(len(labels_T), dtype=bool)
    for span in corruption.spans:
        inside_T[span.start : span.stop] = True
    assert corruption.kind is kind
    assert corruption.spans
    assert (corruption.labels_T != labels_T).any()
    assert (corruption.labels_T == labels_T)[~inside_T].all()
    assert not corruption.moves_frames
