"""How well a run finds its known errors, and how well other methods would: `metrics.json`."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from csl_dist.audit.revision import AuditStore
from csl_dist.cluster.stage import Stage
from csl_dist.config import COMMITTEE
from csl_dist.evaluate.baselines import (
    BASELINES,
    confident_learning,
    random_score,
    trajectory_baselines,
)
from csl_dist.evaluate.brought import BroughtScores
from csl_dist.evaluate.metrics import (
    NUM_RESAMPLES,
    TOP_PERCENTS,
    Truth,
    flag_metrics,
    measured,
    truth_of_kind,
)
from csl_dist.flag.record import AuditRecord
from csl_dist.measures import BASES, FRAME_SCORES, ORDER, PAPERS_SCORE, SMOOTHINGS
from csl_dist.predict.plan import store_of
from csl_dist.score.formulas import smooth, trajectory_blocks
from csl_dist.score.store import ScoreStore
from csl_dist.score.table import smoothed_scores, stored_scores
from csl_dist.training.inputs import Inputs
from csl_dist.types import Annotation, ErrorKind, FloatArray, IntArray, Split

SEED = 0

Scores = dict[str, FloatArray]
"""One score (T,) by video."""


def evaluate(stage: Stage, number: int) -> dict[str, Any]:
    """Compares scores and flags of an audit with the known errors, once; its `metrics.json`."""
    store = AuditStore(stage.run.paths)
    metrics = store.metrics(number)
    if metrics is None:
        metrics = make_metrics(stage.inputs, store, number)
        store.put_metrics(number, metrics)
    return metrics


def make_metrics(inputs: Inputs, store: AuditStore, number: int) -> dict[str, Any]:
    """Metrics by scorer, kind and score, [value] or [value, low, high]; and those of the flags."""
    record = store.record(number)
    settings = record.settings
    annotations = inputs.labels.in_split(Split.AUDIT)
    labels = {a.video: a.labels_T for a in annotations}
    errors = record.known_errors
    num_frames = {a.video: a.num_frames for a in annotations}
    truths = _truths(record, annotations)
    # Intervals of what is compared; for every variant of a score they would take minutes.
    exact = {settings.deciding, ORDER, PAPERS_SCORE, *BASELINES}
    scorers: dict[str, dict[str, dict[str, Any]]] = {}
    scores_of_frames = chain(
        _every_score(inputs, record, annotations), _frame_scores(store, number, annotations)
    )
    for scorer, name, scores in scores_of_frames:
        for kind, truth in truths.items():
            by_name = scorers.setdefault(scorer, {}).setdefault(kind, {})
            by_name[name] = measured(
                truth, scores, labels, num_resamples=NUM_RESAMPLES if name in exact else 0
            )
    seconds = {a.video: a.labelled_seconds for a in annotations}
    return {
        "videos": len(num_frames),
        "frames": sum(num_frames.values()),
        "checkpoints": _num_checkpoints(inputs, annotations),
        "score": settings.deciding,
        "scorer": settings.scorer,
        "temporal_scorer": settings.temporal,
        "top_percent_minutes": {kind: _budgets(truth, seconds) for kind, truth in truths.items()},
        "scorers": scorers,
        "flags": flag_metrics(errors, store.flags(number)),
    }


def brought_metrics(
    inputs: Inputs, record: AuditRecord, brought: BroughtScores
) -> dict[str, dict[str, Any]]:
    """Metrics by method and kind of scores that come from elsewhere."""
    annotations = inputs.labels.in_split(Split.AUDIT)
    labels = {a.video: a.labels_T for a in annotations}
    truths = _truths(record, annotations)
    return {
        name: {kind: measured(truth, scores, labels) for kind, truth in truths.items()}
        for name, scores in brought.items()
    }


def _truths(record: AuditRecord, annotations: Sequence[Annotation]) -> dict[ErrorKind, Truth]:
    """The truth of every kind of error that is known."""
    num_frames = {a.video: a.num_frames for a in annotations}
    return {
        kind: truth_of_kind(kind, record.known_errors, num_frames)
        for kind in ErrorKind
        if any(error.kind is kind for error in record.known_errors)
    }


def _num_checkpoints(inputs: Inputs, annotations: Sequence[Annotation]) -> int:
    """The most checkpoints that any scorer's trajectories have."""
    video = annotations[0].video
    stores = [store_of(inputs, scorer) for scorer in inputs.run.config.scorers]
    return max(len(store.trajectory(video).epochs) for store in stores)


def _budgets(truth: Truth, seconds: dict[str, float]) -> dict[str, float]:
    """Minutes of footage in each top percent of the videos where a kind is measured."""
    minutes = sum(seconds[video] for video in truth.videos) / 60
    return {str(percent): round(minutes * percent / 100, 2) for percent in TOP_PERCENTS}


def _frame_scores(
    store: AuditStore, number: int, annotations: list[Annotation]
) -> Iterator[tuple[str, str, Scores]]:
    """Those that the rule `edits` gives to frames; none by other rules."""
    if not store.record(number).settings.has_frame_scores:
        return
    frames = store.frame_scores(number)
    for name in FRAME_SCORES:
        yield COMMITTEE, name, {a.video: frames.read(a.video, name) for a in annotations}


def _every_score(
    inputs: Inputs, record: AuditRecord, annotations: list[Annotation]
) -> Iterator[tuple[str, str, Scores]]:
    """Scorer, name and score by video, of all scores and all baselines."""
    store = ScoreStore(inputs.run.paths.scores)
    # The ensemble's scale is that of all videos, as it is for flags.
    everyone = [*annotations, *inputs.labels.in_split(Split.VAL)]
    for base in BASES:
        stored = stored_scores(store, record.scores, base, everyone)
        for smoothing in SMOOTHINGS:
            by_scorer = smoothed_scores(record.settings, stored, everyone, smoothing)
            for scorer, scores in by_scorer.items():
                yield scorer, f"{base}{smoothing}", scores
    for scorer in record.settings.scorers:
        for name, scores in baseline_scores(inputs, scorer, annotations).items():
            yield scorer, name, scores


def baseline_scores(
    inputs: Inputs, scorer: str, annotations: list[Annotation]
) -> dict[str, Scores]:
    """The baselines that are not among the stored scores, from one pass over the trajectories."""
    rng = np.random.default_rng(SEED)
    store = store_of(inputs, scorer)
    found: dict[str, Scores] = {"random": {}, "random_smoothed": {}}
    logp_final: dict[str, FloatArray] = {}
    labels: dict[str, IntArray] = {a.video: a.labels_T for a in annotations}
    for annotation in annotations:
        video = annotation.video
        noise_T = random_score(annotation.labels_T, rng)
        found["random"][video] = noise_T
        found["random_smoothed"][video] = smooth(noise_T, inputs.run.config.score.window)
        parts: dict[str, list[FloatArray]] = {}
        last: list[FloatArray] = []
        for frames, logp_ETC in trajectory_blocks(store.trajectory(video)):
            last.append(logp_ETC[-1])
            for name, score_T in trajectory_baselines(logp_ETC, labels[video][frames]).items():
                parts.setdefault(name, []).append(score_T)
        logp_final[video] = np.concatenate(last)
        for name, blocks in parts.items():
            found.setdefault(name, {})[video] = np.concatenate(blocks)
    return found | {"confident_learning": confident_learning(logp_final, labels)}
