"""How fast extraction is, beside the bare network and beside a plain loop over the same video."""

import statistics
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import av
import numpy as np
import torch
from memory import WorkerMemory
from rich.console import Console

from csl_dist.cluster.session import connect
from csl_dist.cluster.stage import Stage
from csl_dist.config import FeaturesConfig, RunConfig, parse_config
from csl_dist.features.encoders import Encoder, build_resnet, torchvision
from csl_dist.features.stage import extract
from csl_dist.run import open_run

HEIGHT, WIDTH, FPS = 480, 640, 4
BASELINE_FRAMES = 320
"""Frames of one measurement of the bare network and of the plain loop."""
BATCH_FRAMES = 64


def bench_extract(minutes: float, repeats: int) -> dict[str, float]:
    """Frames per second of the stage over those of the network and the loop, in their medians.

    Ray runs already; the start of its workers counts. The network gets batches of the same size.
    """
    with tempfile.TemporaryDirectory() as folder:
        video = Path(folder) / "clip.mp4"
        num_frames = write_clip(video, round(60 * minutes * FPS))
        resources = connect()
        rates: dict[str, list[float]] = {"forward": [], "loop": [], "stage": []}
        memory = WorkerMemory()
        for repeat in range(repeats):
            torch.set_num_threads(resources.num_cpus)
            before = forward_rate()
            rates["loop"].append(loop_rate(video))
            config = stage_config(Path(folder), repeat)
            begun = time.perf_counter()
            with memory.watched():
                extract(Stage(run=open_run(config), console=Console(stderr=True)))
            rates["stage"].append(num_frames / (time.perf_counter() - begun))
            rates["forward"].append((before + forward_rate()) / 2)
    shares = zip(rates["stage"], rates["forward"], rates["loop"], strict=True)
    ratios = [(stage / forward, stage / loop) for stage, forward, loop in shares]
    return {
        "vs_forward": round(statistics.median(r[0] for r in ratios), 3),
        "vs_loop": round(statistics.median(r[1] for r in ratios), 3),
        "peak_rss_gib": round(memory.peak_bytes / 2**30, 2),
        "frames_per_second": round(statistics.median(rates["stage"]), 1),
    }


def write_clip(path: Path, num_frames: int) -> int:
    """A video of drifting texture."""
    texture = np.random.default_rng(0).integers(0, 256, size=(HEIGHT // 8, WIDTH // 8, 3))
    picture = np.kron(texture, np.ones((8, 8, 1))).astype(np.uint8)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=FPS, options={"preset": "ultrafast"})
        stream.height, stream.width, stream.pix_fmt = HEIGHT, WIDTH, "yuv420p"
        for n in range(num_frames):
            pixels = np.roll(picture, 3 * n, axis=1)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode())
    return num_frames


def stage_config(folder: Path, repeat: int) -> RunConfig:
    """A run on the clip, with a feature store of its own."""
    (folder / "labels.txt").write_text("step\n")
    (folder / "manifest.csv").write_text(
        f"id,source,labels,split,fps\nclip,clip.mp4,labels.txt,train,{FPS}\n"
    )
    data: dict[str, Any] = {
        "root": str(folder / f"run-{repeat}"),
        "dataset": {"path": str(folder / "manifest.csv")},
        "features": {"weights": "random", "batch_frames": BATCH_FRAMES},
    }
    return parse_config(data, where="the benchmark")


def forward_rate() -> float:
    """Frames per second of the encoder's network on tensors that are ready."""
    encoder = Encoder(FeaturesConfig(weights="random"))
    x = torch.rand(BATCH_FRAMES, 3, 224, 224).to(memory_format=torch.channels_last)
    with torch.inference_mode():
        encoder.forward(x)
        begun = time.perf_counter()
        for _ in range(BASELINE_FRAMES // BATCH_FRAMES):
            encoder.forward(x)
    return BASELINE_FRAMES / (time.perf_counter() - begun)


@torch.inference_mode()
def loop_rate(video: Path) -> float:
    """Frames per second of what one would write in a page: PyAV, torchvision, one process."""
    network = build_resnet(FeaturesConfig(weights="random")).eval()
    network.fc = torch.nn.Identity()
    transform = torchvision().models.ResNet18_Weights.IMAGENET1K_V1.transforms()
    begun = time.perf_counter()
    num_frames = 0
    with av.open(str(video)) as container:
        frames = islice(container.decode(video=0), BASELINE_FRAMES)
        while batch := list(islice(_tensors(frames), BATCH_FRAMES)):
            network(torch.stack([transform(picture) for picture in batch]))
            num_frames += len(batch)
    return num_frames / (time.perf_counter() - begun)


def _tensors(frames: Any) -> Iterator[torch.Tensor]:
    for frame in frames:
        yield torch.from_numpy(frame.to_ndarray(format="rgb24")).permute(2, 0, 1)
