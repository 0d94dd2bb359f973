"""A finished audit of any dataset, made without Ray or training: random opinions of two epochs."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import builder
import numpy as np

from csl_dist.config import DatasetConfig, FlagConfig, RunConfig, ScorerConfig, SplitLists
from csl_dist.pipeline import put_run
from csl_dist.training.inputs import open_inputs

NUM_EPOCHS = 2
SCORER = "framewise"


def write_feature_files(folder: Path, lengths: Mapping[str, int]) -> None:
    """Random features of so many frames, by video."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    for video, num_frames in lengths.items():
        np.save(folder / f"{video}.npy", rng.standard_normal((num_frames, 8)).astype(np.float32))


def audited(config: DatasetConfig, root: Path, *, train: str, audit: tuple[str, ...]) -> str:
    """The root of a run that trained on one video and audited others."""
    splits = SplitLists(train=(train,), audit=audit)
    inputs = open_inputs(
        RunConfig(
            root=str(root),
            dataset=replace(config, folds=None, splits=splits),
            scorers={SCORER: ScorerConfig()},
            flag=FlagConfig(rule="top", percent=20, min_frames=1),
        )
    )
    put_run(inputs)
    if inputs.features.to_extract:
        builder.write_features(inputs)
    builder.write_checkpoints(inputs, SCORER, NUM_EPOCHS, with_weights=False)
    lengths = {a.video: a.num_frames for a in inputs.labels.held_out()}
    rng = np.random.default_rng(1)
    num_classes = len(inputs.run.dataset.classes)
    for video, length in lengths.items():
        logits_ETC = rng.normal(size=(NUM_EPOCHS, length, num_classes))
        logits_ETC -= np.log(np.exp(logits_ETC).sum(axis=-1, keepdims=True))
        logp_ETC = logits_ETC.astype(np.float16)
        builder.write_trajectories(
            inputs,
            SCORER,
            {video: length},
            lambda epoch, logp_ETC=logp_ETC: logp_ETC[epoch - 1],  # type: ignore[misc]
            num_epochs=NUM_EPOCHS,
        )
    builder.finish_run(inputs)
    return str(root)
