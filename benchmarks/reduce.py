"""Reduces and flags many made-up trajectories, and prints seconds and peak memory as JSON.

.venv/bin/python benchmarks/reduce.py --videos 1000 --frames 2000 --checkpoints 200 --root DIR

The trajectories (5.2 GB at this size) are written first and kept for the next time.
"""

import argparse
import json
import resource
import threading
import time
from pathlib import Path

import numpy as np
import torch
from rich.console import Console

from csl_dist.cluster.session import disconnect
from csl_dist.cluster.stage import Stage
from csl_dist.config import AuditConfig, ManifestConfig, RunConfig, ScorerConfig, TrainConfig
from csl_dist.flag.stage import write_flags
from csl_dist.predict.trajectories import Group
from csl_dist.run import Run, open_run
from csl_dist.score.stage import reduce
from csl_dist.storage.ledger import Unit
from csl_dist.training.checkpoints import CheckpointInfo, CheckpointStore
from csl_dist.types import Split

SCORER, NUM_CLASSES, SEGMENT_FRAMES = "transformer", 7, 100
GROUP_VIDEOS = 16


def write_dataset(root: Path, num_videos: int, num_frames: int) -> None:
    """Features that nobody looks at, and labels that go round the classes."""
    root.mkdir(parents=True, exist_ok=True)
    np.save(root / "features.npy", np.zeros((num_frames, 1), dtype=np.float32))
    labels_T = np.arange(num_frames) // SEGMENT_FRAMES % NUM_CLASSES
    (root / "labels.txt").write_text("\n".join(f"class {label}" for label in labels_T) + "\n")
    rows = ["id,source,labels,split,fps"]
    for i in range(num_videos):
        split = "train" if i == 0 else "val" if i <= num_videos // 10 else "audit"
        (root / f"v{i:04d}.npy").unlink(missing_ok=True)
        (root / f"v{i:04d}.npy").hardlink_to(root / "features.npy")
        rows.append(f"v{i:04d},v{i:04d}.npy,labels.txt,{split},10")
    (root / "manifest.csv").write_text("\n".join([*rows, ""]))


def write_trajectories(run: Run, num_frames: int, num_checkpoints: int) -> None:
    """Log-probabilities that learn the labels, with a few spans that never do."""
    rng = np.random.default_rng(0)
    ids = [video.id for video in run.dataset.in_split(Split.VAL, Split.AUDIT)]
    store = run.trajectories(SCORER)
    [annotation] = run.annotations(ids[:1], Split.AUDIT)
    for first in range(0, len(ids), GROUP_VIDEOS):
        videos = tuple(ids[first : first + GROUP_VIDEOS])
        group = Group(
            fold=0, videos=videos, lengths=(num_frames,) * len(videos), fingerprint=videos[0]
        )
        units = {e: Unit(f"{group.key}/{e}", f"e{e}") for e in range(1, num_checkpoints + 1)}
        store.create_rows(group, units, num_classes=NUM_CLASSES, dtype="float16")
        onehot_TC = np.tile(np.eye(NUM_CLASSES)[annotation.labels_T], (len(videos), 1))
        for start in range(500, len(onehot_TC), 2 * num_frames):
            onehot_TC[start : start + 40] = np.eye(NUM_CLASSES)[6]
        noise_TC = rng.normal(size=onehot_TC.shape)
        for epoch, unit in units.items():
            logits_TC = 4 * epoch / num_checkpoints * onehot_TC + np.roll(noise_TC, epoch, axis=0)
            logp_TC = logits_TC - np.log(np.exp(logits_TC).sum(axis=1, keepdims=True))
            store.write_row(group, epoch, unit, logp_TC)
        store.compact(group, units)


def write_checkpoint(run: Run) -> None:
    run.layout.fold(SCORER, 0).put_json("training.json", {"training": "made"})
    info = CheckpointInfo(
        scorer=SCORER,
        fold=0,
        epoch=1,
        model=run.model_spec(SCORER),
        classes=run.dataset.classes,
        class_weights=(1.0,) * NUM_CLASSES,
        train_ids=("v0000",),
        encoder=run.features.encoder,
        training="made",
        metrics={},
    )
    weights = {"weight": torch.zeros(1)}
    CheckpointStore(run.layout.checkpoints(SCORER, 0, "made")).save(info, weights, weights)


class WorkerMemory(threading.Thread):
    """Watches the largest resident memory of any Ray worker that reduces."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak_mb = 0.0

    def run(self) -> None:
        while True:
            for folder in Path("/proc").glob("[0-9]*"):
                try:
                    if (folder / "cmdline").read_bytes().startswith(b"ray::_reduce_videos"):
                        lines = (folder / "status").read_text().splitlines()
                        [line] = [text for text in lines if text.startswith("VmHWM")]
                        self.peak_mb = max(self.peak_mb, int(line.split()[1]) / 1024)
                except OSError:  # it has ended meanwhile
                    continue
            time.sleep(0.2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--videos", type=int, default=1000)
    parser.add_argument("--frames", type=int, default=2000)
    parser.add_argument("--checkpoints", type=int, default=200)
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
        run = open_run(config)
        write_checkpoint(run)
        write_trajectories(run, arguments.frames, arguments.checkpoints)
    run = open_run(config)
    run.layout.root.delete_folder("scores.zarr")
    run.layout.root.delete_folder("records")
    workers = WorkerMemory()
    workers.start()
    begun = time.monotonic()
    reduce(Stage(run=run, console=Console(stderr=True), verbose=False))
    reduced = time.monotonic()
    num_flags = write_flags(run)
    flagged = time.monotonic()
    disconnect()
    print(
        json.dumps(
            {
                "reduce_s": round(reduced - begun, 1),
                "flag_s": round(flagged - reduced, 1),
                "worker_peak_mb": round(workers.peak_mb),
                "driver_peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
                "flags": num_flags,
            }
        )
    )


if __name__ == "__main__":
    main()
