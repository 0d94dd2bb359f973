"""Memory and storage of adaptation: bounded by `adapt.max_frames`, however long videos are.

.venv/bin/python benchmarks/adapt_memory.py [--frames 400] [--max-frames 200] [--json]

Four training videos of so many frames, and the same four times as long; the encoder's last stage
is trained on at most `--max-frames` of each. Told of both: the most that a worker held, without
mapped files, while frames were sampled, trained on and all features extracted, and what the sample
takes on disk.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

from figures import parser_of, positive, print_figures, seconds_of
from memory import WorkerMemory
from rich.console import Console

from csl_dist.cluster.session import connect, disconnect
from csl_dist.cluster.stage import Stage
from csl_dist.config import parse_config
from csl_dist.pipeline import extract
from csl_dist.training.inputs import open_inputs

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
from builder import MadeVideo, grey_pictures, write_manifest, write_video
from stage_bytes import size

FPS = 10
SPLITS = {**{f"t{number}": "train" for number in range(4)}, "v0": "val", "a0": "audit"}


def measured(folder: Path, *, num_frames: int, max_frames: int) -> dict[str, Any]:
    folder.mkdir()
    names_T = [("a", "b")[t * 2 // num_frames] for t in range(num_frames)]
    for video in SPLITS:
        pictures = grey_pictures((t * 255 // num_frames for t in range(num_frames)), size=64)
        write_video(folder / f"{video}.mp4", pictures, fps=FPS)
    videos = (
        MadeVideo(id=video, split=split, names_T=names_T, source=f"{video}.mp4")
        for video, split in SPLITS.items()
    )
    write_manifest(folder, videos, fps=FPS, classes=("a", "b"))
    config = {
        "root": str(folder / "run"),
        "dataset": {"path": str(folder)},
        "features": {
            "weights": "random",
            "adapt": {"fps": None, "max_frames": max_frames, "epochs": 1},
        },
        "scorers": {"framewise": {}},
    }
    inputs = open_inputs(parse_config(config, where="the benchmark"))
    stage = Stage(inputs=inputs, console=Console(stderr=True, quiet=True))
    connect()
    memory = WorkerMemory()
    with memory.watched():
        seconds = seconds_of(lambda: extract(stage))
    disconnect()
    sample = folder / "run" / "features.zarr" / inputs.features.base.encoder
    return {
        "frames": num_frames,
        "seconds": round(seconds, 1),
        "private_mib": round(memory.peak_private_bytes / 2**20),
        "sample_mib": round(size(sample) / 2**20, 1),
    }


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--frames", type=positive, default=400)
    parser.add_argument("--max-frames", type=positive, default=200)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = {
            f"{times} x": measured(
                Path(folder) / str(times),
                num_frames=times * given.frames,
                max_frames=given.max_frames,
            )
            for times in (1, 4)
        }
    print_figures(figures, as_json=given.json)


if __name__ == "__main__":
    main()
