"""The paper's protocol: which runs it takes, and what is measured of their trajectories alone."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from csl_dist.config import CorruptConfig, RunConfig
from csl_dist.evaluate.metrics import measured, truth_of_kind
from csl_dist.evaluate.paper import STRATEGIES
from csl_dist.predict.plan import store_of
from csl_dist.score.formulas import chosen_rows, frame_losses, smooth, trajectory_blocks
from csl_dist.storage.paths import RunPaths
from csl_dist.storage.url import Storage
from csl_dist.training.inputs import Inputs
from csl_dist.types import ErrorKind, FloatArray, Split

NOISE_PERCENTS = (10, 20)
NOISE_KINDS = (ErrorKind.MISLABEL, ErrorKind.DISORDER)
PAPERS_AUDIT_ERRORS: dict[Any, Any] = {"mislabel": 0.5, "disorder": 0.5}


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One run of the protocol."""

    name: str
    config: RunConfig


def with_planted_errors(config: RunConfig, *, has_known_errors: bool) -> RunConfig:
    """The config with the paper's errors in its audit videos, unless errors are known there."""
    if has_known_errors:
        return config
    return replace(config, corrupt=replace(config.corrupt, audit=PAPERS_AUDIT_ERRORS))


def main_variant(config: RunConfig, seed: int) -> Variant:
    """The run of one seed; the first is the config's own, in its own root."""
    if seed == 0:
        return Variant(name="main", config=config)
    config = _elsewhere(config, f"seed-{seed}")
    train = replace(config.train, seed=config.train.seed + seed)
    corrupt = replace(config.corrupt, seed=config.corrupt.seed + seed)
    return Variant(name="main", config=replace(config, train=train, corrupt=corrupt))


def noise_variant(main: Variant, kind: ErrorKind, percent: int, temporal: str) -> Variant:
    """Errors in a share of the training videos; only the temporal scorer is trained."""
    config = _elsewhere(main.config, f"noise-{kind}-{percent}")
    noisy: dict[Any, Any] = {kind.value: percent / 100}
    corrupt: CorruptConfig = replace(config.corrupt, train=noisy)
    scorers = {temporal: config.scorers[temporal]}
    flag = replace(config.flag, scorer=None)
    config = replace(config, corrupt=corrupt, scorers=scorers, flag=flag)
    return Variant(name=f"{kind} {percent}", config=config)


def frozen_variant(main: Variant, temporal: str) -> Variant:
    """The temporal scorer on features of the encoder as it is, where the run adapts one."""
    config = _elsewhere(main.config, "frozen")
    config = replace(
        config,
        features=replace(config.features, adapt=None),
        scorers={temporal: config.scorers[temporal]},
        flag=replace(config.flag, scorer=None),
    )
    return Variant(name="frozen", config=config)


def _elsewhere(config: RunConfig, name: str) -> RunConfig:
    """The config with a root of its own below, and the features of the root above."""
    paths = RunPaths(Storage(config.root))
    store = config.features.store or paths.features.url
    root = paths.variant(name).url
    return replace(config, root=root, features=replace(config.features, store=store))


def sampling_aucs(inputs: Inputs, scorer: str) -> dict[str, dict[str, float]]:
    """AUC of smoothed CSL by kind of error and checkpoint strategy, from one pass."""
    dataset, labels = inputs.run.dataset, inputs.labels
    annotations = labels.in_split(Split.AUDIT)
    fold_of, store = dataset.folds_by_video(), store_of(inputs, scorer)
    weights = {f.index: inputs.checkpoints.loss_weights(scorer, f.index) for f in dataset.folds}
    scores: dict[str, dict[str, FloatArray]] = {strategy: {} for strategy in STRATEGIES}
    for annotation in annotations:
        trajectory = store.trajectory(annotation.video)
        weights_C = weights[fold_of[annotation.video]]
        losses_ET = np.concatenate(
            [
                frame_losses(logp_ETC, annotation.labels_T[frames], weights_C)
                for frames, logp_ETC in trajectory_blocks(trajectory)
            ],
            axis=1,
        )
        for strategy in STRATEGIES:
            rows = chosen_rows(trajectory.epochs, strategy)  # type: ignore[arg-type]
            csl_T = losses_ET[rows].mean(axis=0)
            scores[strategy][annotation.video] = smooth(csl_T, inputs.run.config.score.window)
    errors = labels.known_errors()
    labels_of = {a.video: a.labels_T for a in annotations}
    found: dict[str, dict[str, float]] = {}
    for kind in dict.fromkeys(error.kind for error in errors):
        truth = truth_of_kind(kind, errors, {a.video: a.num_frames for a in annotations})
        for strategy, by_video in scores.items():
            metrics = measured(truth, by_video, labels_of, num_resamples=0)
            if "auc_micro" in metrics:
                found.setdefault(kind, {})[strategy] = metrics["auc_micro"][0]
    return found
