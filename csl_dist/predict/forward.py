"""Score videos with checkpoints: the plan and the forward pass, without Ray.

Groups and batches follow from the videos' lengths alone, never from the number of workers, so that
any cluster produces the same bytes.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch

from csl_dist.errors import CheckpointError, CslError, LeakageError
from csl_dist.predict.trajectories import Group
from csl_dist.storage.ledger import Unit
from csl_dist.training.batches import ReadFeatures, padded_batch, plan_batches, windows_of
from csl_dist.training.checkpoints import CheckpointInfo, State
from csl_dist.training.models import ModelSpec, Scorer, sees_context
from csl_dist.types import Annotation, fingerprint

LENGTH_RATIO = 1.2
"""Lengths of videos in one group differ by at most about this factor, which bounds padding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreUnit:
    """One checkpoint to be evaluated on one group of videos."""

    checkpoint: CheckpointInfo
    group: Group
    dtype: str

    @property
    def unit(self) -> Unit:
        """Its record: the name tells the place, the fingerprint all that went in."""
        name = f"{self.group.key}/{self.checkpoint.name}"
        return Unit(
            name,
            fingerprint(self.checkpoint.content_hash, self.group.fingerprint, self.dtype),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreSlice:
    """One checkpoint and the units that need it, so that it is loaded once."""

    scorer: str
    units: tuple[ScoreUnit, ...]
    batch_frames: int
    """Most frames in one forward pass."""

    @property
    def checkpoint(self) -> CheckpointInfo:
        return self.units[0].checkpoint

    @property
    def num_frames(self) -> int:
        return sum(unit.group.num_frames for unit in self.units)


def split_slices(slices: Sequence[ScoreSlice], at_least: int) -> list[ScoreSlice]:
    """Halves the largest slices until there are enough for all workers, or nothing to halve."""
    parts = list(slices)
    while len(parts) < at_least:
        divisible = [part for part in parts if len(part.units) > 1]
        if not divisible:
            break
        largest = max(divisible, key=lambda part: part.num_frames)
        parts.remove(largest)
        # Every other unit: groups are ordered by length, and halves shall be alike.
        parts += [replace(largest, units=largest.units[i::2]) for i in (0, 1)]
    return parts


def plan_groups(
    annotations: Sequence[Annotation], features: dict[str, str], *, fold: int, group_frames: int
) -> list[Group]:
    """Videos of like length together, up to `group_frames` frames a group.

    A video that is added or changed moves others only within its own class of lengths.
    """
    classes: dict[int, list[Annotation]] = {}
    for annotation in sorted(annotations, key=lambda a: a.video):
        classes.setdefault(length_class(annotation.num_frames), []).append(annotation)
    return [
        Group(
            fold=fold,
            videos=tuple(a.video for a in group),
            lengths=tuple(a.num_frames for a in group),
            fingerprint=fingerprint([(a.video, a.num_frames, features[a.video]) for a in group]),
        )
        for _, members in sorted(classes.items())
        for group in _filled(members, group_frames)
    ]


def length_class(num_frames: int) -> int:
    """Equal for lengths that differ by at most about a fifth."""
    return round(math.log(num_frames) / math.log(LENGTH_RATIO))


def _filled(members: list[Annotation], group_frames: int) -> Iterator[list[Annotation]]:
    """Cuts members into groups of at most so many frames, unless one alone has more."""
    group: list[Annotation] = []
    for annotation in members:
        if group and sum(a.num_frames for a in group) + annotation.num_frames > group_frames:
            yield sorted(group, key=lambda a: (a.num_frames, a.video))
            group = []
        group.append(annotation)
    yield sorted(group, key=lambda a: (a.num_frames, a.video))


def refuse_leakage(
    checkpoint: CheckpointInfo, videos: Sequence[str], allowed: Sequence[str]
) -> None:
    """Stops an audit of videos that the checkpoint was trained on."""
    leaked = sorted(set(videos) & set(checkpoint.train_ids) - set(allowed))
    if leaked:
        names = ", ".join(leaked[:10]) + (f" and {len(leaked) - 10} more" if leaked[10:] else "")
        raise LeakageError(
            f"{len(leaked)} of the videos to audit were used to train scorer "
            f"{checkpoint.scorer!r}: {names}; move them out of the audit, or name them in "
            "audit.allow_in_sample"
        )


@torch.inference_mode()
def group_log_probabilities(
    scorer: Scorer,
    group: Group,
    read_features: ReadFeatures,
    *,
    model: ModelSpec,
    batch_frames: int,
    device: torch.device,
) -> npt.NDArray[np.float32]:
    """Log-probabilities (N, C) of a group's videos, one after the other, in float32.

    Where windows of a long video overlap, the mean of their logits counts.
    """
    videos = zip(group.videos, group.lengths, strict=True)
    windows = [w for video, length in videos for w in windows_of(video, length, model)]
    first_frame = dict(zip(group.videos, np.cumsum([0, *group.lengths]), strict=False))
    logits_NC = torch.zeros(group.num_frames, model.num_classes)
    num_seen_N = torch.zeros(group.num_frames, 1)
    for batch in plan_batches([len(window.span) for window in windows], batch_frames):
        members = [windows[i] for i in batch]
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            logits_BTC = scorer(*padded_batch(members, read_features, device))
        for window, logits_TC in zip(members, logits_BTC.float().cpu(), strict=True):
            start = first_frame[window.video] + window.span.start
            frames = slice(start, start + len(window.span))
            logits_NC[frames] += logits_TC[: len(window.span)]
            num_seen_N[frames] += 1
    return (logits_NC / num_seen_N).log_softmax(dim=-1).numpy()


def within_memory(
    compute: Callable[[int], npt.NDArray[np.float32]], batch_frames: int
) -> tuple[npt.NDArray[np.float32], int]:
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


def load_weights(scorer: Scorer, weights: State, checkpoint: CheckpointInfo) -> None:
    """Fills a model with a checkpoint's weights, which must be the model's."""
    try:
        scorer.load_state_dict(weights)
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[-1].strip()
        raise CheckpointError(
            f"checkpoint {checkpoint.place} does not fit its model: {reason}"
        ) from error


def cpu_batch_frames(model: ModelSpec) -> int:
    """Frames of a forward pass on CPUs.

    Of larger batches, what one layer puts out leaves the caches before the next one reads it;
    smaller ones read the weights too often, of which models that see context have most.
    """
    return 1024 if sees_context(model.name) else 512


def require_finite(logp_NC: npt.NDArray[np.float32], checkpoint: CheckpointInfo) -> None:
    """Stops at a checkpoint whose output is not a number."""
    if not np.isfinite(logp_NC).all():
        raise CheckpointError(
            f"checkpoint {checkpoint.place} gives NaN or infinite log-probabilities; its training "
            "diverged: lower train.learning_rate"
        )
