"""How long a query takes on one long video, beside h5py with the same chunks.

.venv/bin/python benchmarks/query.py [--checkpoints 200] [--frames 34000] [--queries 300] [--json]

200 checkpoints of 34,000 frames (an operation of 38 minutes at 15 fps) and 7 classes, in float16.
Everything is on local disk and warm, as for somebody who looks at one video after another.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import h5py
import numpy as np
import numpy.typing as npt
from figures import parser_of, positive, print_figures, seconds_of

from csl_dist.audit.reader import Audit, open_audit
from csl_dist.config import ManifestConfig, RunConfig, ScorerConfig
from csl_dist.pipeline import put_run
from csl_dist.predict.compaction import chunk_frames
from csl_dist.training.inputs import open_inputs
from csl_dist.types import Split

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
from builder import (
    MadeVideo,
    write_checkpoints,
    write_manifest,
    write_scores,
    write_trajectories,
)

NUM_CHECKPOINTS, NUM_FRAMES, NUM_CLASSES = 200, 34_000, 7
NUM_RELABELLINGS = 7
FPS = 15.0
VIDEO, SCORER = "video41", "transformer"


def bench_query(num_checkpoints: int, num_frames: int, num_queries: int) -> dict[str, float]:
    """Medians: one frame's losses under all checkpoints, and the whole video's CSL."""
    frames = np.random.default_rng(1).integers(num_frames, size=num_queries).tolist()
    with tempfile.TemporaryDirectory() as folder:
        audit = write_audit(Path(folder), num_checkpoints, num_frames)
        with _write_h5py(Path(folder) / "same.h5", audit) as file:
            array = file["log_probability"]
            queries: list[Callable[[int], object]] = [
                lambda frame: audit.trajectory(VIDEO, frames=frame),
                lambda frame: array[:, frame],
            ]
            # Turn about, so that what else the machine does meets both.
            ours, theirs = np.median(
                [[seconds_of(partial(query, frame)) for query in queries] for frame in frames],
                axis=0,
            )
        others_T = np.roll(_labels(num_frames), num_frames // 34)
        relabel = [
            seconds_of(lambda: audit.csl(VIDEO, labels=others_T)) for _ in range(NUM_RELABELLINGS)
        ]
    return {
        "trajectory_ms": round(1000 * float(ours), 3),
        "vs_h5py": round(float(ours / theirs), 2),
        "relabel_s": round(float(np.median(relabel)), 4),
    }


def write_audit(folder: Path, num_checkpoints: int, num_frames: int) -> Audit:
    """A run root `run` with one video, its trajectory published as an audit does."""
    labels_T = _labels(num_frames)
    video = MadeVideo(
        id=VIDEO,
        split="audit",
        names_T=[f"phase {label}" for label in labels_T],
        features_TD=np.zeros((num_frames, 1), dtype=np.float32),
    )
    training = MadeVideo(
        id="training", split="train", names_T=["phase 0"], features_TD=np.zeros((1, 1), np.float32)
    )
    classes = [f"phase {label}" for label in range(NUM_CLASSES)]
    write_manifest(folder / "data", [training, video], fps=FPS, classes=classes)
    config = RunConfig(
        root=str(folder / "run"),
        dataset=ManifestConfig(path=str(folder / "data")),
        scorers={SCORER: ScorerConfig(arguments={"preset": "tiny"})},
    )
    inputs = open_inputs(config)
    put_run(inputs)
    write_checkpoints(inputs, SCORER, 1, with_weights=False)
    rng = np.random.default_rng(0)

    def log_probabilities(epoch: int) -> npt.NDArray[np.float32]:
        """(T, C) of a checkpoint that is the surer the later it is."""
        logits_TC = rng.standard_normal((num_frames, NUM_CLASSES), dtype=np.float32)
        logits_TC[np.arange(num_frames), labels_T] += 8 * epoch / num_checkpoints
        logits_TC -= np.log(np.exp(logits_TC).sum(axis=1, keepdims=True))
        return logits_TC

    write_trajectories(
        inputs, SCORER, {VIDEO: num_frames}, log_probabilities, num_epochs=num_checkpoints
    )
    write_scores(inputs, SCORER, inputs.labels.in_split(Split.AUDIT))
    return open_audit(config.root)


def _labels(num_frames: int) -> npt.NDArray[np.int64]:
    """Steps one after the other."""
    return np.sort(np.random.default_rng(0).integers(NUM_CLASSES, size=num_frames))


def _write_h5py(path: Path, audit: Audit) -> h5py.File:
    """The same trajectory in HDF5 with the same chunks, open for reading."""
    trajectory = audit.log_probabilities(VIDEO)
    num_checkpoints, num_frames, num_classes = trajectory.shape
    with h5py.File(path, "w") as file:
        file.create_dataset(
            "log_probability",
            data=trajectory.read().astype(np.float16),
            chunks=(
                num_checkpoints,
                chunk_frames(num_frames, 2 * num_checkpoints * num_classes),
                num_classes,
            ),
        )
    return h5py.File(path)


def add_sizes(parser: argparse.ArgumentParser, num_queries: int) -> None:
    parser.add_argument("--checkpoints", type=positive, default=NUM_CHECKPOINTS)
    parser.add_argument("--frames", type=positive, default=NUM_FRAMES, help="length of the video")
    parser.add_argument("--queries", type=positive, default=num_queries)


def main() -> None:
    parser = parser_of(__doc__)
    add_sizes(parser, num_queries=300)
    arguments = parser.parse_args()
    figures = bench_query(arguments.checkpoints, arguments.frames, arguments.queries)
    print_figures(figures, as_json=arguments.json)


if __name__ == "__main__":
    main()
