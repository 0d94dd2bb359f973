"""What a run would take: units, arithmetic, storage, hours and cost, before anything is run.

The arithmetic of a scorer is counted on a short sequence and extended to the length of a video; how
much of a GPU's peak is reached, and what an hour costs, are assumptions that the user can replace.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from csl_dist.batches import windows_of
from csl_dist.config import RunConfig
from csl_dist.models import ModelSpec, Place, Scorer, build_scorer
from csl_dist.score import length_class

SUPPOSED_FPS = 25.0
TRAIN_SHARE = 50 / 80
"""Of the paper's 80 videos, 50 train."""
RESNET18_FLOPS = 3.63e9
"""Of one frame of 224 x 224; torchvision documents 1.814e9 multiply-adds."""
TRAIN_FACTOR = 3
"""Forward and backward pass over the forward pass alone."""
PROBE_FRAMES = 64
PLAIN_TYPE_BYTES = {"float16": 2, "float32": 4}
DECODED_PER_CPU = 120.0
"""Frames that a core decodes and fits in a second: `python benchmarks/decode.py --frames 500`."""
SCORES_PER_FRAME = 4
"""Arrays that reduction writes for each scorer."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """A kind of GPU: dense bf16 (T4, V100: fp16) peak, and what an hour of one costs."""

    peak_tflops: float
    dollars: float


GPUS = {
    "t4": Gpu(65, 0.75),
    "v100": Gpu(125, 3.06),
    "l4": Gpu(121, 0.98),
    "a10g": Gpu(70, 1.21),
    "a100": Gpu(312, 4.10),
    "h100": Gpu(989, 12.29),
}
"""Peaks from NVIDIA's data sheets. Dollars: the list price on demand of the smallest AWS machine
that has one, or an eighth of the one that has eight; spot is about a third of that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Footage:
    """How much there is to do: lengths in sampled frames of the videos of each use."""

    train: tuple[int, ...]
    scored: tuple[int, ...]
    """Audited videos, and those that set the threshold."""
    has_pixels: bool
    """Whether features are to be extracted; False where the user brought them."""
    num_classes: int
    num_features: int
    num_folds: int = 1


def supposed_footage(
    config: RunConfig, *, num_videos: int, minutes: float, num_classes: int, num_features: int
) -> Footage:
    """Footage of a dataset that is not at hand: videos of one length, split as in the paper."""
    fps = config.dataset.fps or SUPPOSED_FPS
    frames = (round(minutes * 60 * fps),)
    folds = config.dataset.folds or 1
    num_train = num_videos if folds > 1 else round(num_videos * TRAIN_SHARE)
    return Footage(
        train=frames * num_train,
        scored=frames * (num_videos if folds > 1 else num_videos - num_train),
        has_pixels=config.dataset.source != "features",
        num_classes=num_classes,
        num_features=num_features,
        num_folds=folds,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Machines:
    """What there is to do it with."""

    num_gpus: int
    gpu: Gpu
    utilisation: float
    """Share of the peak that is reached."""
    cpus_per_gpu: int
    decoded_per_cpu: float = DECODED_PER_CPU

    @property
    def flops_per_second(self) -> float:
        """Of one GPU."""
        return self.gpu.peak_tflops * 1e12 * self.utilisation


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
    """One line per stage, in order, but for fine-tuning the encoder and its scorer `cnn`."""
    stages = [_extract(config, footage, machines)] if footage.has_pixels else []
    for name, scorer_config in config.scorers.items():
        spec = ModelSpec(
            name=scorer_config.model or name,
            arguments=scorer_config.arguments,
            num_features=footage.num_features,
            num_classes=footage.num_classes,
            max_frames=scorer_config.max_frames,
        )
        if spec.name == "cnn":
            continue
        if scorer_config.train:
            stages.append(_train(name, spec, config, footage, machines))
        stages.append(_score(name, spec, config, footage, machines))
    return stages


def dollars_of(stages: Sequence[StagePlan], machines: Machines) -> float:
    """The cost of all GPUs for as long as the run takes."""
    return sum(stage.hours for stage in stages) * machines.num_gpus * machines.gpu.dollars


def _extract(config: RunConfig, footage: Footage, machines: Machines) -> StagePlan:
    lengths = unique_videos(footage)
    num_frames = sum(lengths)
    flops = num_frames * RESNET18_FLOPS * (config.features.size / 224) ** 2
    encode = flops / machines.flops_per_second / machines.num_gpus
    num_cpus = machines.num_gpus * machines.cpus_per_gpu
    decode = num_frames / machines.decoded_per_cpu / num_cpus
    limit = f"decoding on {num_cpus} CPUs" if decode > encode else f"{machines.num_gpus} GPUs"
    bytes_per_frame = footage.num_features * PLAIN_TYPE_BYTES[config.features.dtype]
    return StagePlan(
        stage="extract",
        num_units=sum(math.ceil(t / config.features.chunk_frames) for t in lengths),
        flops=flops,
        num_bytes=num_frames * bytes_per_frame,
        hours=max(encode, decode) / 3600,
        limit=limit,
    )


def unique_videos(footage: Footage) -> tuple[int, ...]:
    """Lengths of the videos without repeats: with folds, every video is both trained and scored."""
    return footage.scored if footage.num_folds > 1 else footage.train + footage.scored


def _train(
    name: str, spec: ModelSpec, config: RunConfig, footage: Footage, machines: Machines
) -> StagePlan:
    epochs, folds = config.train.epochs, footage.num_folds
    # Each fold trains on all videos but its own share.
    share = 1 - 1 / folds if folds > 1 else 1.0
    one_epoch = forward_flops(spec, footage.train) * share
    flops = one_epoch * TRAIN_FACTOR * epochs * folds
    weights = sum(p.numel() for p in build_scorer(spec).parameters()) * 4
    busy = min(machines.num_gpus, folds * config.train.workers)
    return StagePlan(
        stage=f"train {name}",
        num_units=epochs * folds,
        flops=flops,
        # Every epoch's weights, and the optimiser's two moments of the newest.
        num_bytes=weights * (epochs + 2) * folds,
        hours=flops / machines.flops_per_second / busy / 3600,
        limit=f"{busy} GPUs",
    )


def _score(
    name: str, spec: ModelSpec, config: RunConfig, footage: Footage, machines: Machines
) -> StagePlan:
    epochs, folds = config.train.epochs, footage.num_folds
    flops = forward_flops(spec, footage.scored) * epochs
    num_frames = sum(footage.scored)
    trajectory = footage.num_classes * epochs * PLAIN_TYPE_BYTES[config.score.dtype]
    busy = min(machines.num_gpus, epochs * folds)
    return StagePlan(
        stage=f"audit {name}",
        num_units=epochs * num_groups(footage.scored, config.score.group_frames),
        flops=flops,
        num_bytes=num_frames * (trajectory + SCORES_PER_FRAME * 4),
        hours=flops / machines.flops_per_second / busy / 3600,
        limit=f"{busy} GPUs",
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
