"""The forward pass: log-probabilities of a group of videos under one checkpoint, without Ray.

Batches follow from the videos' lengths alone, never from the number of workers, so that any cluster
produces the same bytes.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from csl_dist.errors import CheckpointError, CslError
from csl_dist.predict.trajectories import Group
from csl_dist.training.batches import ReadFeatures, padded_batch, plan_batches, windows_of
from csl_dist.training.checkpoints import CheckpointInfo
from csl_dist.training.models import ModelSpec, Place, Scorer, sees_context

Computed = TypeVar("Computed")

CPU_BATCH_FRAMES = 2048
"""Frames of a forward pass on CPUs. Of larger batches, what one layer puts out leaves the caches
before the next one reads it; smaller ones read the weights too often."""


def group_log_probabilities(
    scorer: Scorer,
    group: Group,
    read_features: ReadFeatures,
    *,
    model: ModelSpec,
    batch_frames: int,
    device: torch.device,
) -> npt.NDArray[np.float32]:
    """Log-probabilities (N, C) of a group's videos, one after the other, in float32."""
    [logp_NC] = each_log_probabilities(
        [scorer], group, read_features, model=model, batch_frames=batch_frames, device=device
    )
    return logp_NC


@torch.inference_mode()
def each_log_probabilities(
    scorers: Sequence[Scorer],
    group: Group,
    read_features: ReadFeatures,
    *,
    model: ModelSpec,
    batch_frames: int,
    device: torch.device,
) -> list[npt.NDArray[np.float32]]:
    """The same under each of several checkpoints of a model; features are read once for all.

    Where windows of a long video overlap, the mean of their logits counts. A model that sees single
    frames gets them as batches come, whatever the windows of its training were.
    """
    if not sees_context(model.name):
        model = replace(model, max_frames=batch_frames)
    videos = zip(group.videos, group.lengths, strict=True)
    windows = [w for video, length in videos for w in windows_of(video, length, model)]
    first_frame = dict(zip(group.videos, np.cumsum([0, *group.lengths]), strict=False))
    logits_ENC = torch.zeros(len(scorers), group.num_frames, model.num_classes)
    num_seen_N = torch.zeros(group.num_frames, 1)
    for batch in plan_batches([len(window.span) for window in windows], batch_frames):
        members = [windows[i] for i in batch]
        inputs = padded_batch(members, read_features, device)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            logits_EBTC = [logits.float().cpu() for logits in _each_logits(scorers, *inputs)]
        for place, window in enumerate(members):
            start = first_frame[window.video] + window.span.start
            frames = slice(start, start + len(window.span))
            num_seen_N[frames] += 1
            for own_NC, logits_BTC in zip(logits_ENC, logits_EBTC, strict=True):
                own_NC[frames] += logits_BTC[place, : len(window.span)]
    return [_log_softmax(own_NC / num_seen_N).numpy() for own_NC in logits_ENC]


def _each_logits(
    scorers: Sequence[Scorer], x_BTD: Tensor, padding_BT: Tensor, place: Place
) -> Iterator[Tensor]:
    """Logits of a batch under each checkpoint; those of one training normalise features alike,
    which is done once for all."""
    normal_BTD, last = x_BTD, None
    for scorer in scorers:
        if last is None or not scorer.normalises_like(last):
            normal_BTD = scorer.normalised(x_BTD)
        last = scorer
        yield scorer.logits(normal_BTD, padding_BT, place)


def _log_softmax(logits_NC: Tensor) -> Tensor:
    """The same numbers as along the classes, of which there are too few to fill a vector of the
    CPU; along the frames it takes a quarter of the time."""
    return logits_NC.T.contiguous().log_softmax(dim=0).T.contiguous()


def within_memory(compute: Callable[[int], Computed], batch_frames: int) -> tuple[Computed, int]:
    """The result of `compute(batch_frames)`, with half as many while memory does not suffice.

    Also tells how many frames it was in the end.
    """
    while True:
        try:
            return compute(batch_frames), batch_frames
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            if batch_frames == 1:
                raise CslError(
                    "memory does not suffice for a single window of a video; lower the scorer's "
                    "max_frames, or use workers with more memory"
                ) from error
            batch_frames //= 2


def is_out_of_memory(error: Exception) -> bool:
    """torch tells of a GPU by a class of its own, of a CPU by a RuntimeError like any other."""
    kinds = (MemoryError, torch.OutOfMemoryError)
    return isinstance(error, kinds) or "can't allocate memory" in str(error)


def require_finite(logp_NC: npt.NDArray[np.float32], checkpoint: CheckpointInfo) -> None:
    """Stops at a checkpoint whose output is not a number."""
    if not np.isfinite(logp_NC).all():
        raise diverged(checkpoint)


def diverged(checkpoint: CheckpointInfo) -> CheckpointError:
    """Of a checkpoint whose weights, or what they give, are not numbers."""
    return CheckpointError(
        f"checkpoint {checkpoint.place} gives NaN or infinite log-probabilities; its training "
        "diverged: lower train.learning_rate"
    )
