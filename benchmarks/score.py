"""Scores and flags many made-up trajectories, and prints seconds and peak memory.

.venv/bin/python benchmarks/score.py --root DIR [--videos 1000] [--frames 2000]
    [--checkpoints 200] [--json]

The trajectories (5.2 GB at this size) are written first and kept for the next time.
"""

import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
from figures import driver_mib, parser_of, positive, print_figures
from memory import WorkerMemory
from rich.console import Console

from csl_dist.audit.revision import AuditStore
from csl_dist.cluster.session import disconnect
from csl_dist.cluster.stage import Stage
from csl_dist.config import AuditConfig, ManifestConfig, RunConfig, ScorerConfig, TrainConfig
from csl_dist.flag.stage import flag
from csl_dist.score.stage import score
from csl_dist.training.inputs import Inputs, open_inputs
from csl_dist.types import FloatArray, Split

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
from builder import MadeVideo, write_checkpoints, write_manifest, write_trajectories

SCORER, NUM_CLASSES, SEGMENT_FRAMES = "transformer", 7, 100
GROUP_VIDEOS = 16


def write_dataset(folder: Path, num_videos: int, num_frames: int) -> None:
    """Features that nobody looks at, and labels that go round the classes."""
    names_T = [f"class {t // SEGMENT_FRAMES % NUM_CLASSES}" for t in range(num_frames)]
    write_manifest(
        folder,
        (
            MadeVideo(
                id=f"v{i:04d}",
                split="train" if i == 0 else "val" if i <= num_videos // 10 else "audit",
                names_T=names_T,
                features_TD=np.zeros((num_frames, 1), dtype=np.float32),
            )
            for i in range(num_videos)
        ),
        fps=10,
    )


def write_all_trajectories(inputs: Inputs, num_frames: int, num_checkpoints: int) -> None:
    """Log-probabilities that learn the labels, with a few spans that never do."""
    rng = np.random.default_rng(0)
    ids = [video.id for video in inputs.run.dataset.in_split(Split.VAL, Split.AUDIT)]
    [annotation] = inputs.labels.of(ids[:1], Split.AUDIT)
    for first in range(0, len(ids), GROUP_VIDEOS):
        videos = ids[first : first + GROUP_VIDEOS]
        onehot_TC = np.tile(np.eye(NUM_CLASSES)[annotation.labels_T], (len(videos), 1))
        for start in range(500, len(onehot_TC), 2 * num_frames):
            onehot_TC[start : start + 40] = np.eye(NUM_CLASSES)[6]
        noise_TC = rng.normal(size=onehot_TC.shape)
        logp_of = partial(
            _log_probabilities, onehot_TC=onehot_TC, noise_TC=noise_TC, last=num_checkpoints
        )
        lengths = dict.fromkeys(videos, num_frames)
        write_trajectories(inputs, SCORER, lengths, logp_of, num_epochs=num_checkpoints)


def _log_probabilities(
    epoch: int, *, onehot_TC: FloatArray, noise_TC: FloatArray, last: int
) -> FloatArray:
    logits_TC = 4 * epoch / last * onehot_TC + np.roll(noise_TC, epoch, axis=0)
    return logits_TC - np.log(np.exp(logits_TC).sum(axis=1, keepdims=True))


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--videos", type=positive, default=1000)
    parser.add_argument("--frames", type=positive, default=2000)
    parser.add_argument("--checkpoints", type=positive, default=200)
    parser.add_argument("--root", type=Path, required=True)
    arguments = parser.parse_args()
    config = RunConfig(
        root=str(arguments.root / "run"),
        dataset=ManifestConfig(path=str(arguments.root / "manifest.csv")),
        scorers={SCORER: ScorerConfig(arguments={"preset": "tiny"})},
        train=TrainConfig(epochs=arguments.checkpoints),
        audit=AuditConfig(swapped_copies=0),
    )
    if not (arguments.root / "manifest.csv").exists():
        write_dataset(arguments.root, arguments.videos, arguments.frames)
        inputs = open_inputs(config)
        write_checkpoints(inputs, SCORER, 1, with_weights=False)
        write_all_trajectories(inputs, arguments.frames, arguments.checkpoints)
    inputs = open_inputs(config)
    run = inputs.run
    run.paths.root.delete_folder("scores.zarr")
    run.paths.audits.delete_folder()
    workers = WorkerMemory("score_videos")
    stage = Stage(inputs=inputs, console=Console(stderr=True))
    with workers.watched():
        begun = time.perf_counter()
        versions = score(stage)
        score_seconds = time.perf_counter() - begun
    begun = time.perf_counter()
    number = flag(stage, versions)
    flag_seconds = time.perf_counter() - begun
    disconnect()
    figures = {
        "score_s": round(score_seconds, 1),
        "flag_s": round(flag_seconds, 1),
        "worker_peak_mb": round(workers.peak_bytes / 2**20),
        "driver_peak_mb": driver_mib(),
        "flags": len(AuditStore(run.paths).flags(number)),
    }
    print_figures(figures, as_json=arguments.json)


if __name__ == "__main__":
    main()
