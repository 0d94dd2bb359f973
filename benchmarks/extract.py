"""How fast extraction is, beside the bare network and beside a plain loop over the same video.

`decoded_NAME` is what a decoder alone delivers of it: PyAV, and torchcodec where that loads.

.venv/bin/python benchmarks/extract.py [--minutes 60] [--repeats 1] [--json]
"""

import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import av
import numpy as np
import torch
from decoders import decoding_rates
from figures import add_repeats, parser_of, print_figures, seconds_of
from memory import WorkerMemory
from rich.console import Console

from csl_dist.cluster.session import connect
from csl_dist.cluster.stage import Stage
from csl_dist.config import FeaturesConfig, RunConfig, parse_config
from csl_dist.features.encoders import Encoder
from csl_dist.features.families.resnet import Resnet, torchvision
from csl_dist.features.stage import extract
from csl_dist.training.inputs import open_inputs

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
from builder import MadeVideo, Pixels, write_manifest, write_video

HEIGHT, WIDTH, FPS = 480, 640, 4
BASELINE_FRAMES = 320
"""Frames of one measurement of the bare network and of the plain loop."""
BATCH_FRAMES = 64
LEAST_MINUTES = 0.1


def bench_extract(minutes: float, repeats: int) -> dict[str, float]:
    """Frames per second of the stage over those of the network and the loop, in their medians.

    Ray runs already; the start of its workers counts. The network gets batches of the same size.
    """
    with tempfile.TemporaryDirectory() as folder:
        video = Path(folder) / "clip.mp4"
        num_frames = round(60 * minutes * FPS)
        write_video(video, drifting_pictures(num_frames), fps=FPS)
        resources = connect()
        rates: dict[str, list[float]] = {"forward": [], "loop": [], "stage": []}
        memory = WorkerMemory()
        for repeat in range(repeats):
            torch.set_num_threads(resources.num_cpus)
            before = forward_rate()
            rates["loop"].append(loop_rate(video))
            inputs = open_inputs(stage_config(Path(folder), repeat))
            stage = Stage(inputs=inputs, console=Console(stderr=True))
            with memory.watched():
                seconds = seconds_of(partial(extract, stage))
            rates["stage"].append(num_frames / seconds)
            rates["forward"].append((before + forward_rate()) / 2)
        decoded = decoding_rates(video, every=1)
    shares = zip(rates["stage"], rates["forward"], rates["loop"], strict=True)
    ratios = [(stage / forward, stage / loop) for stage, forward, loop in shares]
    return {
        "vs_forward": round(median(r[0] for r in ratios), 3),
        "vs_loop": round(median(r[1] for r in ratios), 3),
        "peak_rss_gib": round(memory.peak_bytes / 2**30, 2),
        "frames_per_second": round(median(rates["stage"]), 1),
    } | {f"decoded_{name}": float(rate) for name, rate in decoded.items()}


def drifting_pictures(num_frames: int) -> Iterator[Pixels]:
    """A texture that moves."""
    texture = np.random.default_rng(0).integers(0, 256, size=(HEIGHT // 8, WIDTH // 8, 3))
    picture = np.kron(texture, np.ones((8, 8, 1))).astype(np.uint8)
    return (np.roll(picture, 3 * n, axis=1) for n in range(num_frames))


def stage_config(folder: Path, repeat: int) -> RunConfig:
    """A run on the clip, with a feature store of its own."""
    clip = MadeVideo(id="clip", split="train", names_T=["step"], source="clip.mp4")
    write_manifest(folder, [clip], fps=FPS)
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
        num_batches = BASELINE_FRAMES // BATCH_FRAMES
        seconds = seconds_of(lambda: [encoder.forward(x) for _ in range(num_batches)])
    return BASELINE_FRAMES / seconds


@torch.inference_mode()
def loop_rate(video: Path) -> float:
    """Frames per second of what one would write in a page: PyAV, torchvision, one process."""
    network = Resnet(FeaturesConfig(weights="random")).whole_network().eval()
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


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="length of the video")
    add_repeats(parser, default=1)
    arguments = parser.parse_args()
    if arguments.minutes < LEAST_MINUTES:
        parser.error(f"--minutes is {arguments.minutes:g}, expected {LEAST_MINUTES} or more")
    figures = bench_extract(arguments.minutes, arguments.repeats)
    print_figures(figures, as_json=arguments.json)


if __name__ == "__main__":
    main()
