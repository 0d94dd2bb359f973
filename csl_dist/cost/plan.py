"""What a run would take: units, arithmetic, storage, hours and cost, before anything is run.

Arithmetic is counted (`flops`). How fast it goes was measured on such a GPU (`Rates`), or else is
an assumed share of its peak.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from csl_dist.config import CNN, AdaptConfig, RunConfig, TrainConfig
from csl_dist.cost.flops import TRAIN_FACTOR, encoder_flops, forward_flops
from csl_dist.cost.footage import Footage, unique_videos
from csl_dist.cost.machines import Machines
from csl_dist.cost.storage import audit_bytes, checkpoint_bytes, store_bytes
from csl_dist.features.encoders import output_width
from csl_dist.predict.plan import CHECKPOINTS_AT_ONCE
from csl_dist.predict.units import length_class
from csl_dist.strategies import selected_epochs
from csl_dist.training.batches import most_frames, plan_batches, windows_of
from csl_dist.training.models import ModelSpec
from csl_dist.training.scorers import model_spec
from csl_dist.words import counted

BEHIND = 4
"""Epochs by which prediction may be behind training, whose weights are still there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagePlan:
    """What one stage takes."""

    stage: str
    num_units: int
    flops: float
    num_bytes: float
    hours: float
    limit: str
    """What holds it back: decoding, or so many GPUs at work."""


def plan_run(config: RunConfig, footage: Footage, machines: Machines) -> list[StagePlan]:
    """One line per stage, in order."""
    stages = []
    if footage.has_pixels and config.features.adapt is not None:
        stages += [
            _sample(config, footage, machines),
            _adapt(config, config.features.adapt, footage, machines),
        ]
    if footage.has_pixels:
        stages.append(_extract(config, footage, machines))
    for name, spec in scorer_specs(config, footage).items():
        if config.scorers[name].train:
            stages.append(_train(name, spec, config, footage, machines))
        stages.append(_audit(name, spec, config, footage, machines))
    if CNN in config.scorers and config.features.adapt is not None:
        stages.append(_audit_cnn(config, config.features.adapt, footage, machines))
    return stages


def scorer_specs(config: RunConfig, footage: Footage) -> dict[str, ModelSpec]:
    """The models of a run by scorer, but for `cnn`, which is part of the encoder."""
    return {
        name: model_spec(
            config, name, num_features=footage.num_features, num_classes=footage.num_classes
        )
        for name in config.scorers
        if name != CNN
    }


def dollars_of(stages: Sequence[StagePlan], machines: Machines) -> float:
    """The cost of all GPUs for as long as the run takes."""
    return sum(stage.hours for stage in stages) * machines.num_gpus * machines.gpu.dollars


def _sample(config: RunConfig, footage: Footage, machines: Machines) -> StagePlan:
    """The frames that an encoder is adapted to, up to what the frozen stages put out."""
    frozen, _ = encoder_flops(config.features)
    num_rows = sum(footage.sample)
    # Between two frames of the sample, all others are decoded.
    return _from_pixels(
        "sample",
        machines,
        num_units=sum(math.ceil(n / config.features.chunk_frames) for n in footage.sample),
        num_decoded=sum(footage.train),
        flops=num_rows * frozen,
        num_bytes=store_bytes(
            unique_videos(footage),
            num_rows=num_rows,
            width=output_width(config.features),
            dtype=config.features.dtype,
            share=footage.shares.activations,
        ),
    )


def _adapt(
    config: RunConfig, adapt: AdaptConfig, footage: Footage, machines: Machines
) -> StagePlan:
    """Fine-tuning the last stages, which is also the training of the scorer `cnn`."""
    folds = footage.num_folds
    _, last = encoder_flops(config.features)
    share = 1 - 1 / folds if folds > 1 else 1.0
    flops = sum(footage.sample) * share * last * TRAIN_FACTOR * adapt.epochs * folds
    return _computed(
        "adapt",
        machines,
        rate="extract",
        most_busy=folds * config.train.workers,
        num_units=adapt.epochs * folds,
        flops=flops,
        num_bytes=checkpoint_bytes(cnn_spec(config, footage), adapt.epochs) * folds,
    )


def _extract(config: RunConfig, footage: Footage, machines: Machines) -> StagePlan:
    """Features of all frames, by the encoder as it is or by those of all folds."""
    lengths = unique_videos(footage)
    num_frames = sum(lengths)
    num_encoders = footage.num_folds if config.features.adapt is not None else 1
    frozen, last = encoder_flops(config.features)
    stored = store_bytes(
        lengths,
        num_rows=num_frames,
        width=footage.num_features,
        dtype=config.features.dtype,
        share=footage.shares.features,
    )
    return _from_pixels(
        "extract",
        machines,
        num_units=sum(math.ceil(t / config.features.chunk_frames) for t in lengths),
        num_decoded=num_frames,
        flops=num_frames * (frozen + last * num_encoders),
        num_bytes=stored * num_encoders,
    )


def _audit_cnn(
    config: RunConfig, adapt: AdaptConfig, footage: Footage, machines: Machines
) -> StagePlan:
    """The adapted encoder's own scorer, which decodes videos for many checkpoints at once."""
    lengths = footage.held_out + footage.copies
    frozen, last = encoder_flops(config.features)
    passes = math.ceil(adapt.epochs / CHECKPOINTS_AT_ONCE)
    return _from_pixels(
        f"audit {CNN}",
        machines,
        num_units=num_units(config, footage, adapt.epochs),
        num_decoded=sum(lengths) * passes,
        # An actor decodes for itself, while it computes.
        num_decoders=machines.num_gpus,
        flops=sum(lengths) * (frozen * passes + last * adapt.epochs),
        num_bytes=_audit_bytes(config, footage, adapt.epochs),
    )


def _from_pixels(
    stage: str,
    machines: Machines,
    *,
    num_units: int,
    num_decoded: int,
    num_decoders: int | None = None,
    flops: float,
    num_bytes: float,
) -> StagePlan:
    """A stage that decodes on CPUs and encodes on GPUs, or does both on cores."""
    encode = flops / machines.flops_per_second("extract") / machines.num_gpus
    num_decoders = num_decoders or machines.num_cpus
    decode = num_decoded / machines.decoded_per_cpu / num_decoders
    if machines.on_cores:
        seconds, limit = encode + decode, machines.named(machines.num_gpus)
    elif decode > encode:
        seconds, limit = decode, f"decoding on {counted(num_decoders, 'CPU')}"
    else:
        seconds, limit = encode, machines.named(machines.num_gpus)
    return StagePlan(
        stage=stage,
        num_units=num_units,
        flops=flops,
        num_bytes=num_bytes,
        hours=seconds / 3600,
        limit=limit,
    )


def _computed(
    stage: str,
    machines: Machines,
    *,
    rate: str,
    most_busy: int,
    num_units: int,
    flops: float,
    num_bytes: float,
) -> StagePlan:
    """A stage that only computes, as fast as the stage that was measured for it, `rate`."""
    busy = min(machines.num_gpus, most_busy)
    return StagePlan(
        stage=stage,
        num_units=num_units,
        flops=flops,
        num_bytes=num_bytes,
        hours=flops / machines.flops_per_second(rate) / busy / 3600,
        limit=machines.named(busy),
    )


def _train(
    name: str, spec: ModelSpec, config: RunConfig, footage: Footage, machines: Machines
) -> StagePlan:
    stage, epochs, folds = f"train {name}", config.train.epochs, footage.num_folds
    # Each fold trains on all videos but its own share.
    share = 1 - 1 / folds if folds > 1 else 1.0
    one_epoch = forward_flops(spec, footage.train) * share * passes(config.train, spec, footage)
    flops = one_epoch * TRAIN_FACTOR * epochs * folds
    return _computed(
        stage,
        machines,
        rate=stage,
        most_busy=folds * config.train.workers,
        num_units=epochs * folds,
        flops=flops,
        num_bytes=checkpoint_bytes(spec, _epochs_kept(config)) * folds,
    )


def _epochs_kept(config: RunConfig) -> int:
    """Epochs whose weights lie on the disk at one time."""
    epochs = range(1, config.train.epochs + 1)
    match config.checkpoints.keep:
        case "all":
            return len(epochs)
        case "selected":
            return min(len(epochs), len(selected_epochs(epochs, config.score.checkpoints)) + BEHIND)
        case "last":
            return min(len(epochs), BEHIND)


def passes(config: TrainConfig, spec: ModelSpec, footage: Footage) -> float:
    """How often an epoch goes over the training videos; 1 unless `train.steps` says otherwise."""
    if config.steps is None:
        return 1.0
    lengths = sorted(len(w.span) for n in footage.train for w in windows_of("", n, spec))
    num_batches = len(plan_batches(lengths, most_frames(config, lengths)))
    return config.steps * config.workers / num_batches


def _audit_bytes(config: RunConfig, footage: Footage, num_epochs: int) -> float:
    return audit_bytes(
        footage.held_out + footage.copies,
        num_classes=footage.num_classes,
        num_epochs=num_epochs,
        dtype=config.predict.dtype,
    )


def num_units(config: RunConfig, footage: Footage, num_epochs: int) -> int:
    """Units of prediction; copies are grouped apart."""
    most = config.predict.group_frames
    return num_epochs * sum(num_groups(part, most) for part in (footage.held_out, footage.copies))


def cnn_spec(config: RunConfig, footage: Footage) -> ModelSpec:
    return model_spec(
        config,
        CNN,
        num_features=output_width(config.features),
        num_classes=footage.num_classes,
    )


def _audit(
    name: str, spec: ModelSpec, config: RunConfig, footage: Footage, machines: Machines
) -> StagePlan:
    stage, epochs, folds = f"audit {name}", config.train.epochs, footage.num_folds
    lengths = footage.held_out + footage.copies
    flops = forward_flops(spec, lengths) * epochs
    return _computed(
        stage,
        machines,
        rate=stage,
        most_busy=epochs * folds,
        num_units=num_units(config, footage, epochs),
        flops=flops,
        num_bytes=_audit_bytes(config, footage, epochs),
    )


def num_groups(lengths: Sequence[int], group_frames: int) -> int:
    """Groups of videos, in the order of their ids, that units score together."""
    count = 0
    room: dict[int, int] = {}
    for length in lengths:
        kind = length_class(length)
        if room.get(kind, 0) < length:
            count += 1
            room[kind] = group_frames
        room[kind] -= length
    return count
