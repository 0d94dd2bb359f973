"""How long a query takes on one long video, beside h5py with the same chunks.

200 checkpoints of 34,000 frames (an operation of 38 minutes at 15 fps) and 7 classes, in float16.
Everything is on local disk and warm, as for somebody who looks at one video after another.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import numpy.typing as npt

from csl_dist.audit.reader import Audit, open_audit
from csl_dist.config import ManifestConfig, RunConfig, config_as_dict
from csl_dist.predict.trajectories import QUERY_CHUNK_FRAMES, Group, TrajectoryStore
from csl_dist.score.store import ScoreStore
from csl_dist.storage.ledger import Unit
from csl_dist.storage.paths import FORMAT_VERSION, RunLayout
from csl_dist.storage.run_file import put_videos
from csl_dist.storage.url import Storage
from csl_dist.types import Annotation, IntArray, Split, Video

NUM_CHECKPOINTS, NUM_FRAMES, NUM_CLASSES = 200, 34_000, 7
NUM_QUERIES = 300
NUM_RELABELLINGS = 7
FPS = 15.0
VIDEO, SCORER = "video41", "transformer"


def bench_query() -> dict[str, float]:
    """Medians: one frame's losses under all checkpoints, and the whole video's CSL."""
    rng = np.random.default_rng(0)
    labels_T = np.sort(rng.integers(NUM_CLASSES, size=NUM_FRAMES))
    frames = rng.integers(NUM_FRAMES, size=NUM_QUERIES).tolist()
    with tempfile.TemporaryDirectory() as folder:
        audit = write_audit(Path(folder) / "run", labels_T, rng)
        with _write_h5py(Path(folder) / "same.h5", audit) as file:
            array = file["log_probability"]
            queries: list[Callable[[int], object]] = [
                lambda frame: audit.trajectory(VIDEO, frames=frame),
                lambda frame: array[:, frame],
            ]
            # Turn about, so that what else the machine does meets both.
            ours, theirs = np.median([[_seconds(q, f) for q in queries] for f in frames], axis=0)
        others_T = np.roll(labels_T, 1000)
        relabel = [
            _seconds(lambda _: audit.csl(VIDEO, labels=others_T), 0)
            for _ in range(NUM_RELABELLINGS)
        ]
    return {
        "trajectory_ms": round(1000 * float(ours), 3),
        "vs_h5py": round(float(ours / theirs), 2),
        "relabel_s": round(float(np.median(relabel)), 4),
    }


def _seconds(ask: Callable[[int], object], frame: int) -> float:
    start = time.perf_counter()
    ask(frame)
    return time.perf_counter() - start


def write_audit(root: Path, labels_T: IntArray, rng: np.random.Generator) -> Audit:
    """A run root with one video, its trajectory published as an audit does."""
    layout = RunLayout(Storage(str(root)))
    config = RunConfig(root=str(root), dataset=ManifestConfig(path="none"))
    classes = [f"phase {i}" for i in range(NUM_CLASSES)]
    facts = {"classes": classes, "num_scored": 1, "config": config_as_dict(config)}
    layout.root.put_json(layout.RUN, {"format_version": FORMAT_VERSION, **facts})
    put_videos(layout, [Video(id=VIDEO, split=Split.AUDIT, labels="none", source="none")])
    annotation = Annotation(
        video=VIDEO,
        labels_T=labels_T,
        times_T=np.arange(NUM_FRAMES) / FPS,
        source_fps=FPS,
        duration=NUM_FRAMES / FPS,
    )
    ScoreStore(layout.scores).write_annotation(annotation, SCORER, np.ones(NUM_CLASSES))
    store = TrajectoryStore(layout.scorer(SCORER))
    group = Group(fold=0, videos=(VIDEO,), lengths=(NUM_FRAMES,), fingerprint="made")
    units = {e: Unit(f"{group.key}/{e}", "made") for e in range(1, NUM_CHECKPOINTS + 1)}
    store.create_rows(group, units, num_classes=NUM_CLASSES, dtype="float16")
    for epoch, unit in units.items():
        store.write_row(group, epoch, unit, _log_probabilities(labels_T, epoch, rng))
    store.compact(group, units)
    return open_audit(str(root))


def _log_probabilities(
    labels_T: IntArray, epoch: int, rng: np.random.Generator
) -> npt.NDArray[np.float32]:
    """(T, C) of a checkpoint that is the surer the later it is."""
    logits_TC = rng.standard_normal((NUM_FRAMES, NUM_CLASSES), dtype=np.float32)
    logits_TC[np.arange(NUM_FRAMES), labels_T] += 8 * epoch / NUM_CHECKPOINTS
    logits_TC -= np.log(np.exp(logits_TC).sum(axis=1, keepdims=True))
    return logits_TC


def _write_h5py(path: Path, audit: Audit) -> h5py.File:
    """The same trajectory in HDF5 with the same chunks, open for reading."""
    trajectory = audit.log_probabilities(VIDEO)
    with h5py.File(path, "w") as file:
        file.create_dataset(
            "log_probability",
            data=trajectory.read().astype(np.float16),
            chunks=(NUM_CHECKPOINTS, QUERY_CHUNK_FRAMES, NUM_CLASSES),
        )
    return h5py.File(path)
