"""Windows of videos, padded into one batch: shared by training and scoring."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from csl_dist.config import TrainConfig
from csl_dist.training.models import ModelSpec, Place, sees_context
from csl_dist.types import Span, Window, consecutive_spans

ReadFeatures = Callable[[Window], npt.NDArray[np.float32]]

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


def padded_batch(
    windows: Sequence[Window], read_features: ReadFeatures, device: torch.device
) -> tuple[Tensor, Tensor, Place]:
    """Features (B, T, D), padding (B, T) that is True after a window's end, and places."""
    lengths_B = torch.tensor([len(window.span) for window in windows])
    longest = int(lengths_B.max())
    x_BTD = _padded([torch.from_numpy(read_features(window)) for window in windows], longest)
    index_T = torch.arange(longest)
    starts_B = torch.tensor([window.span.start for window in windows])
    place = Place(
        (starts_B[:, None] + index_T).float(),
        torch.tensor([window.num_frames for window in windows]).float(),
    )
    batch = x_BTD, index_T >= lengths_B[:, None], place
    return batch if device.type == "cpu" else _moved(*batch, device)


def _padded(features: list[Tensor], longest: int) -> Tensor:
    """Features (B, T, D) with zeros after each one's end; a single one is not copied."""
    if len(features) == 1:
        return features[0][None]
    x_BTD = torch.zeros(len(features), longest, features[0].shape[1])
    for row_TD, own_TD in zip(x_BTD, features, strict=True):
        row_TD[: len(own_TD)] = own_TD
    return x_BTD


def _moved(
    x_BTD: Tensor, padding_BT: Tensor, place: Place, device: torch.device
) -> tuple[Tensor, Tensor, Place]:
    """The batch on a device, through pinned memory, which lets the copy overlap with work."""

    def move(tensor: Tensor) -> Tensor:
        return tensor.pin_memory().to(device, non_blocking=True)

    return move(x_BTD), move(padding_BT), Place(*map(move, place))
