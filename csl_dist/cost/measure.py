"""What this machine's GPU, or else one core of its CPU, reaches in the stages of a run.

What is timed is the code that the stages run, on random numbers in memory: the steps of a training,
the forward passes of scoring, the encoder, and decoding. Storage is not part of it.
"""

import itertools
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import av
import numpy as np
import numpy.typing as npt
import torch

from csl_dist.config import RunConfig
from csl_dist.cost.flops import TRAIN_FACTOR, encoder_flops, forward_flops
from csl_dist.cost.footage import Footage
from csl_dist.cost.plan import scorer_specs
from csl_dist.cost.rates import Rates, StageRate
from csl_dist.data.media.pixels import PixelSource, whole_frames
from csl_dist.data.media.timeline import sampled
from csl_dist.data.media.video import VideoFile
from csl_dist.features.encoders import Encoder, fit_frame
from csl_dist.predict.arithmetic import lighten
from csl_dist.predict.forward import (
    CPU_BATCH_FRAMES,
    group_log_probabilities,
    is_out_of_memory,
)
from csl_dist.predict.trajectories import Group
from csl_dist.training.batches import most_frames
from csl_dist.training.models import ModelSpec, build_scorer
from csl_dist.training.train import TrainingTask, WorkerContext, train_epochs
from csl_dist.types import Annotation, Window


class Effort(NamedTuple):
    """How long is measured."""

    pass_seconds: float
    """A pass that takes as long as this is long enough to be timed."""
    repeats: int


THOROUGH = Effort(1.0, 3)
"""A minute or two."""
BRIEF = Effort(0.2, 1)
"""Some seconds."""
FIRST_FRAMES, FIRST_ENCODED = 256, 8
DECODED_FRAMES = 300
DECODING = 10
"""Passes for which is decoded at the most: frames of a low rate lie far apart."""
HEIGHT, WIDTH, FPS = 480, 854, 25
"""Of the video that stands in for a dataset that is not read; Cholec80's."""


def measured_rates(
    config: RunConfig, footage: Footage, video: PixelSource | None, effort: Effort
) -> Rates:
    """Rates of every stage that a plan has, and of decoding `video`, or one that stands in."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device.type == "cpu":
        torch.set_num_threads(1)  # as workers do that have a share of the CPUs
    stages = {}
    if footage.has_pixels:
        stages["extract"] = encoder_rate(config, device, effort)
    for name, spec in scorer_specs(config, footage).items():
        if config.scorers[name].train:
            stages[f"train {name}"] = training_rate(config, spec, footage.train, device, effort)
        stages[f"audit {name}"] = scoring_rate(config, spec, footage.held_out, device, effort)
    on_gpu = device.type == "cuda"
    return Rates(
        device=torch.cuda.get_device_name() if on_gpu else f"one core ({cpu_name()})",
        on_gpu=on_gpu,
        stages=stages,
        decoded_per_cpu=decoding_rate(config, video, effort) if footage.has_pixels else None,
    )


def cpu_name() -> str:
    """The processor, as Linux names it where it does."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def encoder_rate(config: RunConfig, device: torch.device, effort: Effort) -> StageRate:
    features = replace(config.features, weights="random", adapt=None, beside=())
    encoder = Encoder(features, device.type)

    def seconds(num_frames: int) -> float:
        shape = (num_frames, features.size, features.size, 3)
        pixels = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
        return _median_seconds(lambda: encoder.encode(pixels), effort.repeats)

    def flops(num_frames: int) -> float:
        return num_frames * sum(encoder_flops(features))

    return _rate(seconds, flops, effort, first=FIRST_ENCODED, most=features.batch_frames)


def scoring_rate(
    config: RunConfig,
    spec: ModelSpec,
    lengths: Sequence[int],
    device: torch.device,
    effort: Effort,
) -> StageRate:
    batch_frames = config.predict.batch_frames
    if device.type == "cpu":
        batch_frames = min(batch_frames, CPU_BATCH_FRAMES)
    scorer = build_scorer(spec).eval().to(device)
    lighten(scorer)
    typical = round(statistics.median(lengths))

    def seconds(num_frames: int) -> float:
        own = _lengths(num_frames, typical)
        names = tuple(str(number) for number in range(len(own)))
        group = Group(fold=0, videos=names, lengths=tuple(own), features=names)
        read = _made_features(own[0], spec.num_features)
        return _median_seconds(
            lambda: group_log_probabilities(
                scorer, group, read, model=spec, batch_frames=batch_frames, device=device
            ),
            effort.repeats,
        )

    def flops(num_frames: int) -> float:
        return forward_flops(spec, _lengths(num_frames, typical))

    return _rate(seconds, flops, effort, first=FIRST_FRAMES, most=max(typical, batch_frames))


def training_rate(
    config: RunConfig,
    spec: ModelSpec,
    lengths: Sequence[int],
    device: torch.device,
    effort: Effort,
) -> StageRate:
    typical = round(statistics.median(lengths))
    # The first epoch is for warming up.
    batch_frames = most_frames(config.train, lengths)
    train = replace(config.train, epochs=1 + effort.repeats, steps=None, batch_frames=batch_frames)

    def seconds(num_frames: int) -> float:
        own = _lengths(num_frames, typical)
        labels_T = np.arange(own[0]) % spec.num_classes
        task = TrainingTask(
            scorer="made",
            fold=0,
            model=spec,
            config=train,
            classes=tuple(str(number) for number in range(spec.num_classes)),
            encoder="",
            annotations=tuple(
                Annotation(video=str(number), labels_T=labels_T, times_T=np.arange(own[0]) / FPS)
                for number in range(len(own))
            ),
            fingerprint="",
        )
        read = _made_features(own[0], spec.num_features)
        epochs = train_epochs(task, read, context=WorkerContext(device=device))
        rates = [epoch.info.metrics["frames_per_second"] for epoch in epochs]
        return sum(own) / statistics.median(rates[1:])

    def flops(num_frames: int) -> float:
        return TRAIN_FACTOR * forward_flops(spec, _lengths(num_frames, typical))

    return _rate(seconds, flops, effort, first=FIRST_FRAMES, most=max(typical, batch_frames))


def decoding_rate(config: RunConfig, video: PixelSource | None, effort: Effort) -> float:
    """Frames that a core decodes and fits in a second, at the rate that the config samples."""
    fps, size, seconds = config.dataset.fps, config.features.size, DECODING * effort.pass_seconds
    if video is not None:
        return decoded_per_second(video, fps, size, seconds)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "video.mp4"
        write_video(path, WIDTH, HEIGHT, DECODED_FRAMES)
        return decoded_per_second(VideoFile(str(path)), fps, size, seconds)


def decoded_per_second(
    video: PixelSource, fps: float | None, size: int, most_seconds: float
) -> float:
    """Frames of the start of a video, sampled, decoded and fitted in a second of one core."""
    torch.set_num_threads(1)
    times_T = sampled(video.times(), fps)[0].times_T[:DECODED_FRAMES]
    begun, num_frames = time.process_time(), 0
    for frame in whole_frames(video.decode(times_T)):
        fit_frame(frame, size)
        num_frames += 1
        if time.process_time() - begun > most_seconds:
            break
    return num_frames / (time.process_time() - begun)


def write_video(path: Path, width: int, height: int, num_frames: int) -> None:
    """A textured picture that drifts, under noise, so that there is motion and detail to code."""
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 255, (height // 8 + 40, width // 8 + 40, 3), dtype=np.uint8)
    picture = coarse.repeat(8, axis=0).repeat(8, axis=1)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=FPS)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for number in range(num_frames):
            x, y = number % 256, (number // 2) % 256
            noise = rng.normal(0, 4, (height, width, 1))
            frame = np.clip(picture[y : y + height, x : x + width] + noise, 0, 255).astype(np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())


def _rate(
    seconds: Callable[[int], float],
    flops: Callable[[int], float],
    effort: Effort,
    *,
    first: int,
    most: int,
) -> StageRate:
    """The rate of passes as large as they are in a run, or as fit the memory and some seconds."""
    rate: StageRate | None = None
    sizes = (min(first * 2**power, most) for power in itertools.count())
    for num_frames in sizes:
        try:
            taken = seconds(num_frames)
        except (MemoryError, RuntimeError) as error:
            if rate is None or not is_out_of_memory(error):
                raise
            return rate
        rate = StageRate(flops_per_second=flops(num_frames) / taken, num_frames=num_frames)
        if num_frames == most or taken > effort.pass_seconds:
            return rate
    raise AssertionError("sizes grow up to the largest")


def _lengths(num_frames: int, typical: int) -> list[int]:
    """Videos of the typical length with so many frames in all; of a long one, its start."""
    return [min(num_frames, typical)] * max(1, num_frames // typical)


def _made_features(
    num_frames: int, num_features: int
) -> Callable[[Window], npt.NDArray[np.float32]]:
    rng = np.random.default_rng(0)
    features_TD = rng.standard_normal((num_frames, num_features), dtype=np.float32)
    return lambda window: features_TD[window.span.start : window.span.stop]


def _median_seconds(work: Callable[[], object], repeats: int) -> float:
    """Of some calls, after one that warms up."""
    work()
    taken = []
    for _ in range(repeats):
        begun = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken)
