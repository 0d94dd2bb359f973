"""Windows of videos, padded into one batch: shared by training and scoring."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from csl_dist.config import TrainConfig
from csl_dist.training.models import ModelSpec, Place, sees_context
from csl_dist.types import Span, Window, consecutive_spans

ReadFeatures = Callable[[Window], npt.NDArray[Any]]
"""Features (T, D) of a window, in float32 or float16."""
Item = TypeVar("Item")
Made = TypeVar("Made")

READ_AHEAD = 2
"""Batches that are read while one is trained on."""

OVERLAP_SHARE = 4
"""Neighbouring windows of a long video share at least one frame in so many."""
LEAST_STEPS = 32
"""Steps of a pass over the training videos, where there are as many windows: with fewer, an epoch
is too little training for a checkpoint to differ from the one before."""
MOST_BATCH_FRAMES = 8192
"""What a GPU takes at once; larger steps make nothing faster."""


def windows_of(video: str, num_frames: int, model: ModelSpec) -> list[Window]:
    """What a model sees at once of a video: all of it, or windows of `max_frames` that cover it.

    Windows of a model that sees context overlap, and are all equally long.
    """
    return [Window(video, span, num_frames) for span in _window_spans(num_frames, model)]


def _window_spans(num_frames: int, model: ModelSpec) -> list[Span]:
    longest = model.max_frames or num_frames
    if num_frames <= longest:
        return [Span(0, num_frames)]
    if not sees_context(model.name):
        return consecutive_spans(num_frames, longest)
    step = longest - longest // OVERLAP_SHARE
    num_windows = 1 + -(-(num_frames - longest) // step)
    starts = np.linspace(0, num_frames - longest, num_windows).round().astype(int)
    return [Span(int(start), int(start) + longest) for start in starts]


def plan_batches(lengths: Sequence[int], batch_frames: int) -> list[list[int]]:
    """Indices of windows, in the given order, cut where padding would exceed `batch_frames`."""
    batches: list[list[int]] = []
    longest = 0
    for index, length in enumerate(lengths):
        longest = max(longest, length)
        if batches and longest * (len(batches[-1]) + 1) <= batch_frames:
            batches[-1].append(index)
        else:
            batches.append([index])
            longest = length
    return batches


def most_frames(config: TrainConfig, lengths: Sequence[int]) -> int:
    """Most frames of a training batch; `auto`: windows of these lengths make tens of steps."""
    if config.batch_frames != "auto":
        return config.batch_frames
    return max(1, min(MOST_BATCH_FRAMES, sum(lengths) // (LEAST_STEPS * config.workers)))


@dataclass(frozen=True, slots=True)
class HostBatch:
    """Windows padded into one batch in the memory of the machine; float16 stays so for a GPU."""

    windows: Sequence[Window]
    x_BTD: Tensor
    padding_BT: Tensor
    """True after a window's end."""
    place: Place

    def moved(self, device: torch.device) -> tuple[Tensor, Tensor, Place]:
        """Features (B, T, D) in float32, padding (B, T) and places, on a device."""
        if device.type == "cpu":
            return self.x_BTD.float(), self.padding_BT, self.place

        def move(tensor: Tensor) -> Tensor:
            return tensor.to(device, non_blocking=True)

        return move(self.x_BTD).float(), move(self.padding_BT), Place(*map(move, self.place))


def host_batch(
    windows: Sequence[Window], read_features: ReadFeatures, device: torch.device
) -> HostBatch:
    """The batch of some windows; pinned for a GPU, so that its copy overlaps with work."""
    lengths_B = torch.tensor([len(window.span) for window in windows])
    longest = int(lengths_B.max())
    on_cpu = device.type == "cpu"
    features = [read_features(window) for window in windows]
    x_BTD = torch.from_numpy(_padded(features, longest, np.dtype(np.float32) if on_cpu else None))
    index_T = torch.arange(longest)
    starts_B = torch.tensor([window.span.start for window in windows])
    padding_BT = index_T >= lengths_B[:, None]
    place = Place(
        (starts_B[:, None] + index_T).float(),
        torch.tensor([window.num_frames for window in windows]).float(),
    )
    if on_cpu:
        return HostBatch(windows, x_BTD, padding_BT, place)
    pinned = Place(*(tensor.pin_memory() for tensor in place))
    return HostBatch(windows, x_BTD.pin_memory(), padding_BT.pin_memory(), pinned)


def padded_batch(
    windows: Sequence[Window], read_features: ReadFeatures, device: torch.device
) -> tuple[Tensor, Tensor, Place]:
    """Features (B, T, D), padding (B, T) that is True after a window's end, and places."""
    return host_batch(windows, read_features, device).moved(device)


def _padded(
    features: Sequence[npt.NDArray[Any]], longest: int, dtype: np.dtype[Any] | None
) -> npt.NDArray[Any]:
    """Features (B, T, D) with zeros after each one's end; a single one is not copied."""
    dtype = dtype or np.result_type(*features)
    if len(features) == 1:
        # Mapped features are read here, not where the model wants them.
        return np.ascontiguousarray(_widened(features[0], dtype), dtype=dtype)[None]
    x_BTD = np.zeros((len(features), longest, features[0].shape[1]), dtype=dtype)
    for row_TD, own_TD in zip(x_BTD, features, strict=True):
        row_TD[: len(own_TD)] = _widened(own_TD, dtype)
    return x_BTD


def _widened(values: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Float16 as float32 where that is wanted; NumPy takes ten times as long as torch for it."""
    if values.dtype == np.float16 and dtype == np.float32 and values.flags.writeable:
        return torch.from_numpy(values).float().numpy()
    return values


def read_ahead(
    make: Callable[[Item], Made], items: Iterable[Item], depth: int = READ_AHEAD
) -> Iterator[Made]:
    """What `make` gives for each item, in order, made in a thread while earlier ones are used."""
    with ThreadPoolExecutor(1) as thread:
        waiting: deque[Future[Made]] = deque()
        for item in items:
            waiting.append(thread.submit(make, item))
            if len(waiting) > depth:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
