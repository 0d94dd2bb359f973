"""Datasets and checkpoints of random numbers: what they are does not matter to speed."""

from pathlib import Path

import numpy as np
import torch

from csl_dist.config import FeaturesConfig
from csl_dist.run import Run
from csl_dist.storage.paths import RunLayout
from csl_dist.storage.url import Storage
from csl_dist.storage.zarr import create_array
from csl_dist.training.checkpoints import CheckpointInfo, CheckpointStore
from csl_dist.training.models import build_scorer

WIDTH, NUM_CLASSES = 512, 7
TRAINING = "made"


def write_features(folder: Path, *, num_videos: int, num_frames: int, split: str) -> None:
    """A manifest of videos with features (T, 512) and labels; one more is for training.

    The features lie in Zarr as extraction stores them, and beside it as .npy files.
    """
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["id,source,labels,split,fps"]
    for n in range(num_videos + 1):
        features_TD = rng.standard_normal((num_frames, WIDTH), dtype=np.float32)
        array = create_array(
            Storage(str(folder)),
            f"v{n}.zarr",
            shape=features_TD.shape,
            chunks=(min(num_frames, FeaturesConfig().chunk_frames), WIDTH),
            dtype=FeaturesConfig().dtype,
        )
        array[:] = features_TD.astype(array.dtype)
        np.save(folder / f"v{n}.npy", features_TD)
        steps = "\n".join(f"step {label}" for label in rng.integers(NUM_CLASSES, size=num_frames))
        (folder / f"v{n}.txt").write_text(steps + "\n")
        lines.append(f"v{n},v{n}.zarr,v{n}.txt,{split if n < num_videos else 'train'},5")
    (folder / "classes.txt").write_text("".join(f"step {n}\n" for n in range(NUM_CLASSES)))
    (folder / "manifest.csv").write_text("\n".join(lines) + "\n")


def write_checkpoints(run: Run, scorer: str, count: int) -> CheckpointStore:
    """Checkpoints of fresh weights, as a training would publish them."""
    store = CheckpointStore(run.layout.checkpoints(scorer, 0, TRAINING))
    run.layout.fold(scorer, 0).put_json(RunLayout.TRAINING, {"training": TRAINING})
    for epoch in range(1, count + 1):
        torch.manual_seed(epoch)
        info = CheckpointInfo(
            scorer=scorer,
            fold=0,
            epoch=epoch,
            model=run.model_spec(scorer),
            classes=run.dataset.classes,
            class_weights=(1.0,) * NUM_CLASSES,
            train_ids=run.dataset.folds[0].train,
            encoder=run.features.encoder,
            training=TRAINING,
            metrics={},
        )
        store.save(info, build_scorer(info.model).state_dict(), {})
    return store
