"""Train one scorer on one fold, epoch by epoch, without Ray.

An epoch depends only on the weights and optimiser state before it, the data, and (seed, epoch):
all randomness is seeded anew at its start. So a training that resumes goes on exactly as if it had
never stopped.
"""

import hashlib
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from csl_dist.config import FeaturesConfig, TrainConfig
from csl_dist.errors import ConfigError, DataError
from csl_dist.features.source import FeatureSource
from csl_dist.training.batches import (
    ReadFeatures,
    host_batch,
    most_frames,
    plan_batches,
    read_ahead,
    windows_of,
)
from csl_dist.training.checkpoints import CheckpointInfo, State
from csl_dist.training.models import Cnn, ModelSpec, Scorer, Transformer, build_scorer
from csl_dist.types import (
    UNLABELLED,
    Annotation,
    FloatArray,
    Window,
    array_fingerprint,
    consecutive_spans,
    fingerprint,
)

MOMENT_FRAMES = 8192
"""Frames that the normalisation is computed from at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingTask:
    """One scorer to train on one fold: all that decides the weights."""

    scorer: str
    fold: int
    model: ModelSpec
    config: TrainConfig
    classes: tuple[str, ...]
    encoder: str
    annotations: tuple[Annotation, ...]
    fingerprint: str
    """Of all that decides the weights after an epoch."""
    starts_from: FeaturesConfig | None = None
    """For `cnn`: the encoder whose last stages are fine-tuned."""
    encoder_train_ids: tuple[str, ...] = ()
    """Videos that an adapted encoder was trained on."""

    @property
    def name(self) -> str:
        return f"{self.scorer}/fold-{self.fold}"


def settings_fingerprint(model: ModelSpec, config: TrainConfig, classes: tuple[str, ...]) -> str:
    """Changes with whatever decides the weights of an epoch, but for the training videos."""
    return fingerprint(
        model,
        [config.learning_rate, config.weight_decay, config.clip_norm, config.batch_frames],
        [config.seed, config.workers, config.schedule, config.warmup_epochs],
        [config.steps, config.weighted],
        *_pretrained_content(model),
        # A schedule that falls towards the last epoch depends on which that is.
        config.epochs if config.schedule != "constant" else None,
        classes,
    )


def _pretrained_content(model: ModelSpec) -> list[str]:
    """Digest of the file that a model's weights start from, where there is one."""
    path = model.arguments.get("pretrained") if model.name == "transformer" else None
    if path is None:
        return []
    try:
        return [hashlib.sha256(Path(path).read_bytes()).hexdigest()]
    except OSError as error:
        raise ConfigError(f"pretrained: can't read {path}: {error.strerror}") from error


def video_fingerprints(annotations: Sequence[Annotation], source: FeatureSource) -> dict[str, str]:
    """What training sees of each video: its labels and its features."""
    return {
        a.video: fingerprint(array_fingerprint(a.labels_T), source.fingerprint(a.video))
        for a in annotations
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochResult:
    """The state after an epoch, to be saved before the next begins."""

    info: CheckpointInfo
    weights: State
    resume_state: State


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerContext:
    """Which of the data-parallel workers this is, where it computes, and how it wraps its model."""

    rank: int = 0
    world: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    wrap: Callable[[nn.Module], nn.Module] = lambda model: model


def train_epochs(
    task: TrainingTask,
    read_features: ReadFeatures,
    *,
    context: WorkerContext = WorkerContext(),  # noqa: B008
    start: tuple[int, State, State] | None = None,
) -> Iterator[EpochResult]:
    """Yields after every epoch; `start` is (epoch, weights, resume state) of the last one done."""
    if start is not None and start[0] >= task.config.epochs:
        return
    weights_C = class_weights(class_counts(task.annotations, len(task.classes)))
    if not task.config.weighted:
        weights_C = np.ones_like(weights_C)
    scorer = _fresh_scorer(task, read_features) if start is None else build_scorer(task.model)
    if start is not None:
        scorer.load_state_dict(start[1])
    scorer.to(context.device)
    model = context.wrap(scorer)
    optimizer = torch.optim.AdamW(
        scorer.parameters(),
        lr=task.config.learning_rate,
        weight_decay=task.config.weight_decay,
    )
    if start is not None:
        _load_optimizer(optimizer, start[2])
    first_epoch = start[0] + 1 if start is not None else 1
    trained_on = {a.video for a in task.annotations} | set(task.encoder_train_ids)
    for epoch in range(first_epoch, task.config.epochs + 1):
        metrics = _train_epoch(task, model, optimizer, read_features, weights_C, context, epoch)
        info = CheckpointInfo(
            scorer=task.scorer,
            fold=task.fold,
            epoch=epoch,
            model=task.model,
            classes=task.classes,
            class_weights=tuple(weights_C.tolist()),
            train_ids=tuple(sorted(trained_on)),
            encoder=task.encoder,
            training=task.fingerprint,
            metrics=metrics,
        )
        yield EpochResult(
            info=info, weights=_weights_of(scorer), resume_state=_optimizer_state(optimizer)
        )


def _fresh_scorer(task: TrainingTask, read_features: ReadFeatures) -> Scorer:
    """The scorer before its first epoch: seeded, normalised by the training videos alone."""
    torch.manual_seed(task.config.seed)
    scorer = build_scorer(task.model)
    if isinstance(scorer.model, Cnn) and task.starts_from is not None:
        scorer.model.start_from(task.starts_from)
    if isinstance(scorer.model, Transformer):
        scorer.model.start_from_pretrained()
    if scorer.is_normalised:
        scorer.set_normalisation(
            *feature_moments(
                read_features(Window(a.video, span, a.num_frames))
                for a in task.annotations
                for span in consecutive_spans(a.num_frames, MOMENT_FRAMES)
            )
        )
    return scorer


def _train_epoch(
    task: TrainingTask,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    read_features: ReadFeatures,
    weights_C: FloatArray,
    context: WorkerContext,
    epoch: int,
) -> dict[str, float]:
    """One pass over the training videos; what is to be told of this worker's steps."""
    seed = np.random.SeedSequence([task.config.seed, epoch, context.rank]).generate_state(1)
    torch.manual_seed(int(seed[0]))
    model.train()
    weight = torch.from_numpy(weights_C).float().to(context.device)
    labels = {a.video: torch.from_numpy(a.labels_T).long() for a in task.annotations}
    batches = _own_share(epoch_batches(task, epoch), context)
    losses, num_frames, begun = [], 0, time.perf_counter()
    prepare = partial(host_batch, read_features=read_features, device=context.device)
    for step, batch in enumerate(read_ahead(prepare, batches)):
        rate = learning_rate(task.config, epoch - 1 + step / len(batches))
        for group in optimizer.param_groups:
            group["lr"] = rate
        x, padding, place = batch.moved(context.device)
        targets_BT = _padded_labels(batch.windows, labels, x.shape[1]).to(context.device)
        with torch.autocast(
            context.device.type, torch.bfloat16, enabled=context.device.type == "cuda"
        ):
            logits = model(x, padding, place)
        loss = weighted_loss(logits.float(), targets_BT, weight)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), task.config.clip_norm)
        optimizer.step()
        losses.append(loss.detach())
        num_frames += sum(len(window.span) for window in batch.windows)
    mean_loss = float(torch.stack(losses).mean())
    seconds = time.perf_counter() - begun
    return {
        "train_loss": mean_loss,
        "learning_rate": rate,
        "seconds": round(seconds, 3),
        "frames_per_second": round(num_frames / seconds, 1),
    }


def weighted_loss(logits: Tensor, targets_BT: Tensor, weights_C: Tensor) -> Tensor:
    """Class-weighted cross-entropy of the labelled frames; the mean over stages, where several."""
    stages_SNC = logits.reshape(-1, targets_BT.numel(), logits.shape[-1])
    targets_N = targets_BT.flatten()
    losses = [
        cross_entropy(stage_NC, targets_N, weight=weights_C, ignore_index=UNLABELLED)
        for stage_NC in stages_SNC
    ]
    return torch.stack(losses).mean()


def learning_rate(config: TrainConfig, epochs_done: float) -> float:
    """The rate after so many epochs: rising over the warm-up, then as the schedule says."""
    rate = config.learning_rate
    if epochs_done < config.warmup_epochs:
        # The first step is not lost on a rate of zero.
        return rate * max(epochs_done, 0.01) / config.warmup_epochs
    if config.schedule == "cosine":
        left = config.epochs - config.warmup_epochs
        rate *= (1 + math.cos(math.pi * (epochs_done - config.warmup_epochs) / left)) / 2
    return rate


def epoch_batches(task: TrainingTask, epoch: int) -> list[list[Window]]:
    """The batches of an epoch, all workers' together: one pass, or as many steps as are asked."""
    rng = np.random.default_rng([task.config.seed, epoch])
    batches = _pass_batches(task, rng)
    if task.config.steps is None:
        return batches
    num_batches = task.config.steps * task.config.workers
    while len(batches) < num_batches:
        batches += _pass_batches(task, rng)
    return batches[:num_batches]


def _pass_batches(task: TrainingTask, rng: np.random.Generator) -> list[list[Window]]:
    """Every window of the training videos once: like lengths together, in random order."""
    windows = [w for a in task.annotations for w in windows_of(a.video, a.num_frames, task.model)]
    lengths = np.array([len(window.span) for window in windows])
    # Lengths are blurred by a tenth before sorting, so that batches differ between epochs.
    order = np.argsort(lengths * rng.uniform(0.9, 1.1, size=len(lengths)), kind="stable")
    most = most_frames(task.config, lengths.tolist())
    batches = plan_batches(lengths[order].tolist(), most)
    return [[windows[order[i]] for i in batches[b]] for b in rng.permutation(len(batches))]


def _own_share(batches: list[list[Window]], context: WorkerContext) -> list[list[Window]]:
    """Every world-th batch; where they do not divide, the first again, so that all keep step."""
    short = -len(batches) % context.world
    return (batches + batches[:short])[context.rank :: context.world]


def _padded_labels(windows: Sequence[Window], labels: dict[str, Tensor], num_frames: int) -> Tensor:
    targets_BT = torch.full((len(windows), num_frames), UNLABELLED, dtype=torch.long)
    for row, window in zip(targets_BT, windows, strict=True):
        span = window.span
        row[: len(span)] = labels[window.video][span.start : span.stop]
    return targets_BT


def class_counts(annotations: Iterable[Annotation], num_classes: int) -> FloatArray:
    """Labelled frames (C,) of each class."""
    counts = np.zeros(num_classes)
    for annotation in annotations:
        labelled = annotation.labels_T[annotation.labels_T != UNLABELLED]
        counts += np.bincount(labelled, minlength=num_classes)
    return counts


def class_weights(counts_C: FloatArray) -> FloatArray:
    """Loss weights (C,), inverse to frequency; 1 for each class where all are equally frequent.

    A class that training never sees gets the weight of the rarest that it does see.
    """
    seen = counts_C > 0
    if not seen.any():
        raise DataError("the training videos have no labelled frame")
    weights = np.zeros(len(counts_C))
    weights[seen] = counts_C.sum() / (seen.sum() * counts_C[seen])
    weights[~seen] = weights.max()
    return weights


def feature_moments(arrays: Iterable[np.ndarray[Any, Any]]) -> tuple[Tensor, Tensor]:
    """Mean and deviation (D,) over all frames, one video in memory at a time."""
    count = 0
    total = square = np.zeros(1)
    for array in arrays:
        values = array.astype(np.float64)
        count += len(values)
        total = total + values.sum(axis=0)
        square = square + (values**2).sum(axis=0)
    mean = total / count
    # A feature that never varies would be divided by zero.
    std = np.sqrt(np.maximum(square / count - mean**2, 1e-12))
    return torch.from_numpy(mean).float(), torch.from_numpy(std).float()


def _weights_of(scorer: Scorer) -> State:
    return {
        name: tensor.detach().cpu().contiguous() for name, tensor in scorer.state_dict().items()
    }


def _optimizer_state(optimizer: torch.optim.Optimizer) -> State:
    """AdamW's state as flat tensors, `<parameter>.<name>`."""
    state = optimizer.state_dict()["state"]
    return {
        f"{parameter}.{name}": tensor.detach().cpu().contiguous()
        for parameter, values in state.items()
        for name, tensor in values.items()
    }


def _load_optimizer(optimizer: torch.optim.Optimizer, flat: State) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in flat.items():
        parameter, name = key.split(".", 1)
        state.setdefault(int(parameter), {})[name] = tensor
    optimizer.load_state_dict(
        {"state": state, "param_groups": optimizer.state_dict()["param_groups"]}
    )
