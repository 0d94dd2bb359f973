"""Videos of like length, padded into one batch: shared by training and scoring."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from csl_dist.models import Place

ReadFeatures = Callable[[str], npt.NDArray[np.float32]]


def plan_batches(lengths_V: Sequence[int], batch_frames: int) -> list[list[int]]:
    """Indices of videos, in the given order, cut where padding would exceed `batch_frames`."""
    batches: list[list[int]] = []
    longest = 0
    for index, length in enumerate(lengths_V):
        longest = max(longest, length)
        if batches and longest * (len(batches[-1]) + 1) <= batch_frames:
            batches[-1].append(index)
        else:
            batches.append([index])
            longest = length
    return batches


def pad_features(features: Sequence[npt.NDArray[np.float32]]) -> tuple[Tensor, Tensor, Place]:
    """Features (B, T, D), padding (B, T) that is True after a video's end, and places."""
    lengths = torch.tensor([len(f) for f in features])
    num_frames = int(lengths.max())
    x_BTD = torch.zeros(len(features), num_frames, features[0].shape[1])
    for row, array in zip(x_BTD, features, strict=True):
        row[: len(array)] = torch.from_numpy(array)
    index_T = torch.arange(num_frames)
    padding_BT = index_T >= lengths[:, None]
    index_BT = index_T.float().expand(len(features), num_frames)
    return x_BTD, padding_BT, Place(index_BT, lengths.float())


def to_device(
    x_BTD: Tensor, padding_BT: Tensor, place: Place, device: torch.device
) -> tuple[Tensor, Tensor, Place]:
    """Moves a batch; through pinned memory where that lets the copy overlap."""

    def move(tensor: Tensor) -> Tensor:
        if device.type == "cuda":
            return tensor.pin_memory().to(device, non_blocking=True)
        return tensor.to(device)

    return move(x_BTD), move(padding_BT), Place(move(place.index_BT), move(place.length_B))
