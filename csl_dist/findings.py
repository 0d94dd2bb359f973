"""From stored scores to what people read: `flags.parquet` and `metrics.json`.

Both are made again only when what they are made from has changed.
"""

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from csl_dist.errors import NotReadyError, StorageError
from csl_dist.evaluate import kind_metrics, truth_of_kind
from csl_dist.flag import (
    APPEARANCE_QUANTILE,
    Thresholds,
    describe,
    ranked,
    suspicious_spans,
    threshold,
)
from csl_dist.layout import RunLayout
from csl_dist.ledger import Ledger, Unit
from csl_dist.records import Annotation, ErrorKind, Flag, FloatArray, Split, fingerprint
from csl_dist.run import Run

SCORE = "smoothed"
"""The score that flags are made of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """The annotated videos of one split and the scores of each."""

    annotations: list[Annotation]
    scores: dict[str, dict[str, FloatArray]]
    """By scorer, then video: the smoothed CSL (T,)."""

    def pooled(self, scorer: str) -> FloatArray:
        """All frames' scores (N,), one video after the other."""
        arrays = [self.scores[scorer][a.video] for a in self.annotations]
        return np.concatenate([np.empty(0), *arrays])


def read_scored(run: Run, split: Split, name: str = SCORE) -> Scored:
    """One score of every scorer on the videos of a split."""
    annotations = run.split_annotations(split)
    scores = {
        scorer: {a.video: run.scores.read(a.video, scorer, name) for a in annotations}
        for scorer in run.config.scorers
    }
    return Scored(annotations=annotations, scores=scores)


def write_flags(run: Run) -> int:
    """Flags suspicious spans of the audit videos; returns how many there are."""
    scorers = [run.temporal_scorer(), run.framewise_scorer()]
    classes = list(run.dataset.classes)
    unit = Unit("flags", fingerprint(_scores_made(run), run.config.flag, scorers, classes))
    _once(run, unit, RunLayout.FLAGS, lambda: _put_flags(run, make_flags(run)))
    return len(read_flags(run.layout))


def make_flags(run: Run) -> list[Flag]:
    audit, validation = read_scored(run, Split.AUDIT), read_scored(run, Split.VAL)
    thresholds = run_thresholds(run, audit, validation)
    temporal, framewise = run.temporal_scorer(), run.framewise_scorer()
    store = run.trajectories(temporal)
    flags = []
    for annotation in audit.annotations:
        score_T = audit.scores[temporal][annotation.video]
        spans = suspicious_spans(score_T, annotation, thresholds.suspicious, run.config.flag)
        if not spans:
            continue
        trajectory = store.trajectory(annotation.video)
        flags += [
            describe(
                span,
                annotation,
                score_T=score_T,
                framewise_T=audit.scores[framewise][annotation.video] if framewise else None,
                thresholds=thresholds,
                logp_ETC=trajectory.read(span.start, span.stop),
                classes=run.dataset.classes,
            )
            for span in spans
        ]
    return flags


def run_thresholds(run: Run, audit: Scored, validation: Scored) -> Thresholds:
    """What decides on frames and kinds in this run."""
    temporal, framewise = run.temporal_scorer(), run.framewise_scorer()
    appearance = None
    if framewise is not None and framewise != temporal:
        reference = validation.pooled(framewise)
        if np.isnan(reference).all():
            reference = audit.pooled(framewise)
        appearance = float(np.nanquantile(reference, APPEARANCE_QUANTILE))
    tau = threshold(run.config.flag, validation.pooled(temporal), audit.pooled(temporal))
    return Thresholds(suspicious=tau, appearance=appearance)


def read_flags(layout: RunLayout) -> pd.DataFrame:
    """The flags of a run, worst first."""
    if not layout.root.exists(RunLayout.FLAGS):
        raise NotReadyError(f"{layout.root.url} has no flags yet; run `csl audit`")
    try:
        return pd.read_parquet(io.BytesIO(layout.root.read(RunLayout.FLAGS)))
    except (OSError, ValueError) as error:
        raise StorageError(
            f"{layout.root.url}/{RunLayout.FLAGS} is damaged ({error}); delete it and run "
            "`csl audit`"
        ) from error


def write_metrics(run: Run) -> dict[str, Any]:
    """Compares scores with the known errors, if there are any, and returns `metrics.json`."""
    errors = fingerprint([str(error) for error in run.known_errors()])
    unit = Unit("metrics", fingerprint(_scores_made(run), errors))
    root = run.layout.root
    _once(run, unit, RunLayout.METRICS, lambda: root.put_json(RunLayout.METRICS, make_metrics(run)))
    metrics: dict[str, Any] = root.read_json(RunLayout.METRICS)
    return metrics


def make_metrics(run: Run) -> dict[str, Any]:
    names = ("final", "csl", "smoothed")
    scored = {name: read_scored(run, Split.AUDIT, name) for name in names}
    num_frames = {a.video: a.num_frames for a in scored[SCORE].annotations}
    checkpoints = [len(run.checkpoints(name, 0)) for name in run.config.scorers]
    metrics: dict[str, Any] = {
        "videos": len(num_frames),
        "frames": sum(num_frames.values()),
        "checkpoints": max(checkpoints),
        "scorers": {scorer: {} for scorer in run.config.scorers},
    }
    errors = run.known_errors()
    for kind in ErrorKind:
        if not any(error.kind is kind for error in errors):
            continue
        truth = truth_of_kind(kind, errors, num_frames)
        for scorer in run.config.scorers:
            by_name = {name: scored[name].scores[scorer] for name in names}
            metrics["scorers"][scorer][kind] = kind_metrics(truth, by_name)
    return metrics


def _scores_made(run: Run) -> str:
    """Changes with the score of any video, and with which videos are in which split."""
    splits = {split: [v.id for v in run.dataset.in_split(split)] for split in Split}
    scored = [*splits[Split.AUDIT], *splits[Split.VAL]]
    return fingerprint(splits, run.scores.versions(scored, run.config.scorers))


def _put_flags(run: Run, flags: list[Flag]) -> None:
    buffer = io.BytesIO()
    ranked(flags).to_parquet(buffer, index=False)
    run.layout.root.put(RunLayout.FLAGS, buffer.getvalue())


def _once(run: Run, unit: Unit, key: str, make: Callable[[], None]) -> None:
    """Makes a file unless it is there and on record as made from the same inputs."""
    ledger = Ledger(run.layout.root.child("records"))
    if unit not in ledger.done() or not run.layout.root.exists(key):
        ledger.retire([unit])
        make()
        ledger.write(unit)
