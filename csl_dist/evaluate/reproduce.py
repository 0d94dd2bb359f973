"""The paper's protocol: which runs it takes, and what is measured of their trajectories alone."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from csl_dist.config import CNN, AdaptConfig, CorruptConfig, RunConfig, ScorerConfig
from csl_dist.data.planted import planted_videos
from csl_dist.evaluate.metrics import Metrics, ranking, truth_of_kind
from csl_dist.evaluate.paper import STRATEGIES
from csl_dist.measures import SMOOTHED
from csl_dist.predict.plan import store_of
from csl_dist.score.formulas import (
    chosen_rows,
    frame_losses,
    loss_weights,
    smooth,
    trajectory_blocks,
)
from csl_dist.storage.paths import RunPaths
from csl_dist.storage.url import Storage
from csl_dist.training.inputs import Inputs
from csl_dist.types import Annotation, ErrorKind, FloatArray, PlantedError, Split

FROZEN, ADAPTED = "frozen", "adapted"
COMPARED = ("final", "csl", f"final{SMOOTHED}", f"csl{SMOOTHED}")
"""Loss of the last epoch and of all, each as it is and smoothed: like beside like."""
NOISE_KINDS = (ErrorKind.MISLABEL, ErrorKind.DISORDER)
"""Kinds of errors that training videos get, and that are then looked for."""
OTHER_KINDS = (ErrorKind.REORDER, ErrorKind.DUPLICATE, ErrorKind.INSERT)
"""Further noise that the paper names; labels alone change, so that trajectories serve for it."""
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


def other_encoder(main: Variant, temporal: str) -> Variant:
    """The temporal scorer on features of the other encoder: the frozen one where the run adapts
    one, and an adapted one, audited too as `cnn`, where it does not."""
    adapted = main.config.features.adapt is not None
    name = FROZEN if adapted else ADAPTED
    config = _elsewhere(main.config, name)
    scorers = {temporal: config.scorers[temporal]}
    config = replace(
        config,
        features=replace(config.features, adapt=None if adapted else AdaptConfig()),
        scorers=scorers if adapted else scorers | {CNN: ScorerConfig()},
        flag=replace(config.flag, scorer=None),
    )
    return Variant(name=name, config=config)


def _elsewhere(config: RunConfig, name: str) -> RunConfig:
    """The config with a root of its own below, and the features of the root above."""
    paths = RunPaths(Storage(config.root))
    store = config.features.store or paths.features.url
    root = paths.variant(name).url
    return replace(config, root=root, features=replace(config.features, store=store))


def sampling_aucs(inputs: Inputs, scorer: str) -> dict[str, dict[str, dict[str, float]]]:
    """AUC of CSL by kind of error, smoothing ("" or "_smoothed") and checkpoint strategy."""
    annotations = inputs.labels.in_split(Split.AUDIT)
    window = inputs.run.config.score.window
    scores: dict[tuple[str, str], dict[str, FloatArray]] = {}
    for annotation in annotations:
        losses_ET, epochs = _losses(inputs, scorer, annotation)
        for strategy in STRATEGIES:
            csl_T = losses_ET[chosen_rows(epochs, strategy)].mean(axis=0)  # type: ignore[arg-type]
            scores.setdefault(("", strategy), {})[annotation.video] = csl_T
            smoothed_T = smooth(csl_T, window)
            scores.setdefault((SMOOTHED, strategy), {})[annotation.video] = smoothed_T
    errors = inputs.labels.known_errors()
    found: dict[str, dict[str, dict[str, float]]] = {}
    for kind in dict.fromkeys(error.kind for error in errors):
        truth = truth_of_kind(kind, errors, {a.video: a.num_frames for a in annotations})
        for (smoothing, strategy), by_video in scores.items():
            metrics = ranking(truth, by_video).metrics(np.ones(len(truth.videos)))
            if "auc_micro" in metrics:
                by_strategy = found.setdefault(kind, {}).setdefault(smoothing, {})
                by_strategy[strategy] = metrics["auc_micro"]
    return found


def other_noise(inputs: Inputs, scorer: str) -> dict[str, dict[str, Metrics]]:
    """Metrics by kind and score of the paper's further noise, in held-out videos without errors.

    They are planted in labels, under which the stored trajectories are read; nothing is run.
    """
    wrong = {error.video for error in inputs.labels.known_errors()}
    held_out = inputs.labels.in_split(Split.AUDIT) + inputs.labels.in_split(Split.VAL)
    clean = [a for a in held_out if a.video not in wrong and a.derived_from is None]
    config, window = inputs.run.config.corrupt, inputs.run.config.score.window
    found: dict[str, dict[str, Metrics]] = {}
    for kind in OTHER_KINDS:
        planted = planted_videos(
            clean, kind, config, num_classes=len(inputs.run.dataset.classes), most=len(clean)
        )
        if not planted:
            continue
        errors = [
            PlantedError(video=p.clean.video, kind=kind, span=span)
            for p in planted
            for span in p.spans
        ]
        truth = truth_of_kind(kind, errors, {p.clean.video: p.clean.num_frames for p in planted})
        scores: dict[str, dict[str, FloatArray]] = {name: {} for name in COMPARED}
        for video in planted:
            losses_ET, _ = _losses(inputs, scorer, video.wrong)
            for name, score_T in (("final", losses_ET[-1]), ("csl", losses_ET.mean(axis=0))):
                scores[name][video.clean.video] = score_T
                scores[f"{name}{SMOOTHED}"][video.clean.video] = smooth(score_T, window)
        for name, by_video in scores.items():
            metrics = ranking(truth, by_video).metrics(np.ones(len(truth.videos)))
            found.setdefault(kind, {})[name] = metrics | {"videos": float(len(planted))}
    return found


def _losses(inputs: Inputs, scorer: str, annotation: Annotation) -> tuple[FloatArray, list[int]]:
    """Losses (E, T) of a video's labels under all checkpoints, and their epochs."""
    fold = inputs.run.dataset.folds_by_video()[annotation.video]
    class_weights_C = inputs.checkpoints.class_weights(scorer, fold)
    weights_C = loss_weights(class_weights_C, inputs.run.config.score)
    trajectory = store_of(inputs, scorer).trajectory(annotation.video)
    parts = [
        frame_losses(logp_ETC, annotation.labels_T[frames], weights_C)
        for frames, logp_ETC in trajectory_blocks(trajectory)
    ]
    return np.concatenate(parts, axis=1), trajectory.epochs


def dataset_statistics(inputs: Inputs) -> dict[str, float]:
    """Videos of each split, the mean minutes of those that train and of the others, classes."""
    dataset = inputs.run.dataset
    trained = inputs.labels.of(dataset.trained_ids(), Split.TRAIN)
    validation, audited = inputs.labels.in_split(Split.VAL), inputs.labels.in_split(Split.AUDIT)

    def minutes(annotations: Sequence[Annotation]) -> float:
        return float(np.mean([a.duration for a in annotations])) / 60 if annotations else 0.0

    return {
        "train": len(trained),
        "validation": len(validation),
        "audit": len(audited),
        "train minutes": minutes(trained),
        "held-out minutes": minutes(validation + audited),
        "classes": len(dataset.classes),
    }
