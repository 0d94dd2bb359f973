import time
from itertools import pairwise

import numpy as np
import pytest
import torch

from csl_dist.config import TrainConfig
from csl_dist.training.batches import (
    host_batch,
    most_frames,
    padded_batch,
    plan_batches,
    read_ahead,
    windows_of,
)
from csl_dist.training.models import ModelSpec
from csl_dist.types import Span, Window


def spec(name: str, max_frames: int | None) -> ModelSpec:
    return ModelSpec(name=name, arguments={}, num_features=4, num_classes=3, max_frames=max_frames)


@pytest.mark.parametrize("num_frames", [1, 99, 100, 101, 175, 176, 1000, 1234])
def test_windows_of_a_context_model_cover_the_video_and_overlap_by_a_quarter(
    num_frames: int,
) -> None:
    windows = windows_of("v", num_frames, spec("transformer", 100))
    spans = [window.span for window in windows]
    assert (spans[0].start, spans[-1].stop) == (0, num_frames)
    assert {len(span) for span in spans} == {min(num_frames, 100)}
    assert all(window.num_frames == num_frames for window in windows)
    overlaps = [a.stop - b.start for a, b in pairwise(spans)]
    assert all(25 <= overlap < 100 for overlap in overlaps)


def test_windows_of_a_framewise_model_do_not_overlap() -> None:
    spans = [window.span for window in windows_of("v", 250, spec("framewise", 100))]
    assert spans == [Span(0, 100), Span(100, 200), Span(200, 250)]


def test_without_a_limit_the_video_is_one_window() -> None:
    assert windows_of("v", 10**6, spec("transformer", None)) == [Window("v", Span(0, 10**6), 10**6)]


def test_batch_keeps_places_in_the_whole_video_and_marks_padding() -> None:
    features = np.arange(40, dtype=np.float32).reshape(10, 4)

    def read(window: Window) -> np.ndarray:
        return features[window.span.start : window.span.stop]

    windows = [Window("v", Span(2, 5), 10), Window("v", Span(0, 2), 10)]
    x, padding, place = padded_batch(windows, read, torch.device("cpu"))
    assert x.shape == (2, 3, 4)
    assert np.array_equal(x[0].numpy(), features[2:5])
    assert padding.tolist() == [[False] * 3, [False, False, True]]
    assert x[1, 2].tolist() == [0.0] * 4
    assert place.index_BT[0].tolist() == [2, 3, 4]
    assert place.length_B.tolist() == [10, 10]


def test_batches_stay_below_the_limit_with_padding() -> None:
    lengths = [5, 7, 7, 20, 3, 3]
    batches = plan_batches(lengths, 21)
    assert [i for batch in batches for i in batch] == list(range(6))
    for batch in batches:
        assert len(batch) == 1 or max(lengths[i] for i in batch) * len(batch) <= 21


@pytest.mark.parametrize(
    ("lengths", "least", "most"),
    [
        ([500] * 12, 12, 12),  # fewer videos than steps: one a step
        ([500] * 70, 32, 40),
        ([60] * 1000, 32, 40),
        ([20_000] * 50, 50, 50),  # one of these is more than a batch
    ],
)
def test_auto_batches_make_tens_of_steps(lengths: list[int], least: int, most: int) -> None:
    batches = plan_batches(lengths, most_frames(TrainConfig(), lengths))
    assert least <= len(batches) <= most


def test_auto_batches_of_much_footage_are_as_large_as_a_gpu_takes() -> None:
    assert most_frames(TrainConfig(), [4000] * 10_000) == 8192


def test_auto_batches_of_two_workers_make_as_many_steps_for_each() -> None:
    lengths = [60] * 1000
    one, two = (most_frames(TrainConfig(workers=n), lengths) for n in (1, 2))
    assert two == one // 2


def test_items_are_made_ahead_in_order_and_errors_come_in_their_place() -> None:
    made: list[int] = []

    def make(item: int) -> int:
        if item == 3:
            raise ValueError("broken")
        made.append(item)
        return item * 10

    items = read_ahead(make, range(5), depth=2)
    assert next(items) == 0
    assert next(items) == 10
    while len(made) < 3:  # the thread may be late, but does not wait to be asked
        time.sleep(0.001)
    assert next(items) == 20
    with pytest.raises(ValueError, match="broken"):
        next(items)


def test_half_precision_stays_so_until_the_model_and_means_the_same() -> None:
    half_TD = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float16)
    windows = [Window("a", Span(0, 5), 5), Window("a", Span(1, 3), 5)]

    def read(window: Window) -> np.ndarray:
        return half_TD[window.span.start : window.span.stop]

    for chosen in (windows, windows[:1]):
        x, padding, _ = host_batch(chosen, read, torch.device("cpu")).moved(torch.device("cpu"))
        assert x.dtype == torch.float32
        assert np.array_equal(x[0].numpy(), half_TD.astype(np.float32))
        assert x[padding].eq(0).all()
