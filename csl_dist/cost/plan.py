"""What a run would take: units, arithmetic, storage, hours and cost, before anything is run.

The arithmetic of a scorer is counted on a short sequence and extended to the length of a video. How
fast it goes was measured on such a GPU (`Rates`), or else is an assumed share of its peak.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from csl_dist.config import (
    CNN,
    AdaptConfig,
    FeaturesConfig,
    RunConfig,
    TrainConfig,
    num_swapped_copies,
)
from csl_dist.cost.rates import Rates
from csl_dist.cost.storage import (
    USUAL_SHARES,
    Shares,
    audit_bytes,
    checkpoint_bytes,
    store_bytes,
)
from csl_dist.data.dataset import Dataset
from csl_dist.data.planted import calibration_ids, share_of
from csl_dist.features.encoders import output_width
from csl_dist.features.families import family_of
from csl_dist.features.families.resnet import Resnet, split_network
from csl_dist.predict.plan import CHECKPOINTS_AT_ONCE
from csl_dist.predict.units import length_class
from csl_dist.strategies import selected_epochs
from csl_dist.training.batches import most_frames, plan_batches, windows_of
from csl_dist.training.models import ModelSpec, Place, Scorer, build_scorer
from csl_dist.training.scorers import model_spec
from csl_dist.types import Split

SUPPOSED_FPS = 25.0
TRAIN_SHARE, VALIDATION_SHARE = 50 / 80, 10 / 80
"""Of the paper's 80 videos, 50 train, and 10 validate."""
BEHIND = 4
"""Epochs by which prediction may be behind training, whose weights are still there."""
TRAIN_FACTOR = 3
"""Forward and backward pass over the forward pass alone."""
PROBE_FRAMES = 64
DECODED_PER_CPU = 120.0
"""Frames that a core decodes and fits in a second: `python benchmarks/decode.py --frames 500`."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """A kind of GPU: dense bf16 (T4, V100: fp16) peak, and what an hour of one costs."""

    peak_tflops: float
    dollars: float


GPUS = {
    "t4": Gpu(65, 0.75),  # g4dn.2xlarge
    "v100": Gpu(125, 3.06),  # p3.2xlarge
    "l4": Gpu(121, 0.98),  # g6.2xlarge
    "a10g": Gpu(70, 1.21),  # g5.2xlarge
    "a100": Gpu(312, 2.74),  # p4d.24xlarge, 21.96 for eight
    "h100": Gpu(989, 6.88),  # p5.48xlarge, 55.04 for eight
}
"""Peaks without sparsity, and dollars for an hour on demand in us-east-1 of a machine with about
eight CPUs a GPU, as of 2026; spot is about a third. NVIDIA's data sheets and AWS's price list were
not at hand: peaks agree with hmc-tech.com's comparisons (A100; L4 within 4 %) and with tables in
public training code (all six); prices with tables in public cost tools, which have P4d and P5 after
AWS's cut of June 2025 (usage.ai, LLM Cost Optimization on AWS, 2026, tells of it). Check a price
that matters, and give it as --price."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Footage:
    """How much there is to do: lengths in sampled frames of the videos of each use."""

    train: tuple[int, ...]
    held_out: tuple[int, ...]
    """Audited videos, and those that set the threshold."""
    copies: tuple[int, ...] = ()
    """Scored once more with steps swapped."""
    has_pixels: bool
    """Whether features are to be extracted; False where the user brought them."""
    num_classes: int
    num_features: int
    num_folds: int = 1
    sample: tuple[int, ...] = ()
    """Frames of each training video that an encoder is adapted to."""
    shares: Shares = USUAL_SHARES


def copied_ids(config: RunConfig, dataset: Dataset) -> list[str]:
    """Videos that are predicted once more with two steps swapped."""
    copied = dataset.in_split(Split.VAL) or dataset.in_split(Split.AUDIT)
    ids = [video.id for video in copied]
    return sorted(calibration_ids(ids, config.corrupt, num_swapped_copies(config)))


def supposed_footage(
    config: RunConfig, *, num_videos: int, minutes: float, num_classes: int, num_features: int
) -> Footage:
    """Footage of a dataset that is not read: videos of one length, split as in the paper."""
    fps = config.dataset.fps or SUPPOSED_FPS
    frames = (round(minutes * 60 * fps),)
    folds = config.dataset.folds or 1
    num_train = num_videos if folds > 1 else round(num_videos * TRAIN_SHARE)
    num_held_out = num_videos if folds > 1 else num_videos - num_train
    num_copied = num_held_out if folds > 1 else max(1, round(num_videos * VALIDATION_SHARE))
    adapt = config.features.adapt
    return Footage(
        train=frames * num_train,
        held_out=frames * num_held_out,
        copies=frames * round(num_copied * share_of(num_swapped_copies(config), num_copied)),
        has_pixels=config.dataset.source != "features",
        num_classes=num_classes,
        num_features=num_features,
        num_folds=folds,
        sample=sample_lengths(adapt, frames * num_train, fps) if adapt is not None else (),
    )


def sample_lengths(adapt: AdaptConfig, lengths: Sequence[int], fps: float) -> tuple[int, ...]:
    """Frames of videos of these lengths that an encoder is adapted to."""
    share = min(1.0, (adapt.fps or fps) / fps)
    return tuple(min(adapt.max_frames, max(1, round(length * share))) for length in lengths)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machines:
    """What there is to do it with."""

    num_gpus: int
    """Or cores, where rates were measured on one."""
    gpu: Gpu
    utilisation: float
    """Share of the peak that is reached, where that was not measured."""
    cpus_per_gpu: int
    rates: Rates | None = None

    @property
    def on_cores(self) -> bool:
        """Whether there are no GPUs, so that cores do everything."""
        return self.rates is not None and not self.rates.on_gpu

    @property
    def num_cpus(self) -> int:
        """Cores that decode."""
        return self.num_gpus * (1 if self.on_cores else self.cpus_per_gpu)

    @property
    def decoded_per_cpu(self) -> float:
        measured = self.rates.decoded_per_cpu if self.rates is not None else None
        return measured or DECODED_PER_CPU

    def flops_per_second(self, stage: str) -> float:
        """Of one GPU."""
        if self.rates is not None:
            return self.rates.flops_per_second(stage)
        return self.gpu.peak_tflops * 1e12 * self.utilisation

    def named(self, num_busy: int) -> str:
        return f"{num_busy} {'core' if self.on_cores else 'GPU'}{'s' * (num_busy > 1)}"


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
    busy = min(machines.num_gpus, folds * config.train.workers)
    return StagePlan(
        stage="adapt",
        num_units=adapt.epochs * folds,
        flops=flops,
        num_bytes=checkpoint_bytes(cnn_spec(config, footage), adapt.epochs) * folds,
        hours=flops / machines.flops_per_second("extract") / busy / 3600,
        limit=machines.named(busy),
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
        seconds, limit = decode, f"decoding on {num_decoders} CPU{'s' * (num_decoders > 1)}"
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


def encoder_flops(config: FeaturesConfig) -> tuple[float, float]:
    """Of one frame, in the frozen stages of all encoders and in those that are adapted."""
    if config.adapt is None:
        return sum(_network_flops(one) for one in config.sets()), 0.0
    with torch.device("meta"):
        resnet = Resnet(replace(config, weights="random")).whole_network()
    frozen, last = split_network(resnet, config.adapt.trainable_stages)
    first, x = _flops(frozen, torch.zeros(1, 3, config.size, config.size, device="meta"))
    return first, _flops(last, x)[0]


def _network_flops(config: FeaturesConfig) -> float:
    # Of the user's own code nobody knows whether it works without numbers.
    device = "cpu" if ":" in config.encoder else "meta"
    with torch.device(device):
        network = family_of(replace(config, weights="random")).network()
    return _flops(network, torch.zeros(1, 3, config.size, config.size, device=device))[0]


def _flops(network: nn.Module, x: Tensor) -> tuple[float, Tensor]:
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        output = network.eval()(x)
    return float(counter.get_total_flops()), output


def unique_videos(footage: Footage) -> tuple[int, ...]:
    """Lengths of the videos, each once: with folds, all are both trained on and held out."""
    return footage.held_out if footage.num_folds > 1 else footage.train + footage.held_out


def _train(
    name: str, spec: ModelSpec, config: RunConfig, footage: Footage, machines: Machines
) -> StagePlan:
    stage, epochs, folds = f"train {name}", config.train.epochs, footage.num_folds
    # Each fold trains on all videos but its own share.
    share = 1 - 1 / folds if folds > 1 else 1.0
    one_epoch = forward_flops(spec, footage.train) * share * passes(config.train, spec, footage)
    flops = one_epoch * TRAIN_FACTOR * epochs * folds
    busy = min(machines.num_gpus, folds * config.train.workers)
    return StagePlan(
        stage=stage,
        num_units=epochs * folds,
        flops=flops,
        num_bytes=checkpoint_bytes(spec, _epochs_kept(config)) * folds,
        hours=flops / machines.flops_per_second(stage) / busy / 3600,
        limit=machines.named(busy),
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
    busy = min(machines.num_gpus, epochs * folds)
    return StagePlan(
        stage=stage,
        num_units=num_units(config, footage, epochs),
        flops=flops,
        num_bytes=_audit_bytes(config, footage, epochs),
        hours=flops / machines.flops_per_second(stage) / busy / 3600,
        limit=machines.named(busy),
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


def forward_flops(spec: ModelSpec, lengths: Sequence[int]) -> float:
    """Floating-point operations of a forward pass over videos of these lengths, in windows.

    Two counts on short sequences give the part that grows with the frames and the part that grows
    with their square, which attention has.
    """
    scorer = build_scorer(spec).eval()
    short = _counted_flops(scorer, spec.num_features, PROBE_FRAMES)
    double = _counted_flops(scorer, spec.num_features, 2 * PROBE_FRAMES)
    square = max(0.0, (double - 2 * short) / (2 * PROBE_FRAMES**2))
    linear = short / PROBE_FRAMES - square * PROBE_FRAMES

    def of_video(length: int) -> float:
        windows = [len(window.span) for window in windows_of("", length, spec)]
        return sum(linear * frames + square * frames**2 for frames in windows)

    return sum(of_video(length) * count for length, count in Counter(lengths).items())


@torch.inference_mode()
def _counted_flops(scorer: Scorer, num_features: int, num_frames: int) -> float:
    index_BT = torch.arange(num_frames, dtype=torch.float32)[None]
    # The counter knows the matrix products of plain attention, not the CPU's fused kernel.
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        scorer(
            torch.zeros(1, num_frames, num_features),
            torch.zeros(1, num_frames, dtype=torch.bool),
            Place(index_BT, torch.tensor([float(num_frames)])),
        )
    return float(counter.get_total_flops())
