"""Scores of all held-out videos together: one score of every scorer, and of the ensemble."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from csl_dist.config import ENSEMBLE, RunConfig
from csl_dist.measures import base_and_smoothing
from csl_dist.run import Run
from csl_dist.score.ensemble import ensemble_scores
from csl_dist.score.formulas import smoothed_as_named
from csl_dist.score.store import ScoreStore
from csl_dist.training.inputs import Inputs
from csl_dist.training.scorers import (
    flag_scorer,
    framewise_scorer,
    has_ensemble,
    temporal_scorer,
)
from csl_dist.types import Annotation, FloatArray, Split, fingerprint

ScorerScores = dict[str, dict[str, FloatArray]]
"""One score (T,) by scorer, then video."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreTable:
    """The annotated videos of one split and one score of each."""

    annotations: list[Annotation]
    scores: ScorerScores

    def pooled(self, scorer: str) -> FloatArray:
        """All frames' scores (N,), one video after the other."""
        arrays = [self.scores[scorer][a.video] for a in self.annotations]
        return np.concatenate([np.empty(0), *arrays])


def read_score_tables(inputs: Inputs, name: str | None = None) -> dict[Split, ScoreTable]:
    """One score of the videos to audit and of the validation videos, on one scale.

    By default the one that flags are made of; of every scorer and the ensemble.
    """
    config = inputs.run.config
    base, smoothing = base_and_smoothing(name or config.flag.score)
    annotations = {split: inputs.labels.in_split(split) for split in (Split.AUDIT, Split.VAL)}
    everyone = [a for part in annotations.values() for a in part]
    stored = stored_scores(inputs.run, base, everyone)
    scores = smoothed_scores(config, stored, everyone, smoothing)
    return {
        split: ScoreTable(annotations=part, scores=scores) for split, part in annotations.items()
    }


def stored_scores(run: Run, base: str, annotations: Sequence[Annotation]) -> ScorerScores:
    """A score of every scorer, not smoothed."""
    store = ScoreStore(run.paths.scores)
    videos = [a.video for a in annotations]
    return {scorer: store.read_all(videos, scorer, base) for scorer in run.config.scorers}


def smoothed_scores(
    config: RunConfig, stored: ScorerScores, annotations: Sequence[Annotation], smoothing: str
) -> ScorerScores:
    """Scores of every scorer with a smoothing, and those of the ensemble."""
    scores = {
        scorer: {
            a.video: smoothed_as_named(
                by_video[a.video], a.labels_T, smoothing=smoothing, window=config.score.window
            )
            for a in annotations
        }
        for scorer, by_video in stored.items()
    }
    return scores | ensemble_of(config, scores)


def ensemble_of(config: RunConfig, scores: ScorerScores) -> ScorerScores:
    """The score of the ensemble, by its name, where the run has scorers of both kinds."""
    temporal, framewise = temporal_scorer(config), framewise_scorer(config)
    if framewise is None or not has_ensemble(config):
        return {}
    return {ENSEMBLE: ensemble_scores(scores[temporal], scores[framewise])}


def scores_made(run: Run) -> str:
    """Changes with the score of any video, and with which videos are in which split."""
    splits = {split: [v.id for v in run.dataset.in_split(split)] for split in Split}
    held_out = [*splits[Split.AUDIT], *splits[Split.VAL]]
    store = ScoreStore(run.paths.scores)
    return fingerprint(splits, store.versions(held_out, run.config.scorers))


def flags_made(run: Run) -> str:
    """Changes with the score of any video, with the splits, and with all that flags depend on."""
    config = run.config
    scorers = [temporal_scorer(config), framewise_scorer(config), flag_scorer(config)]
    parts = (config.flag, config.score, config.corrupt)
    return fingerprint(scores_made(run), *parts, scorers, list(run.dataset.classes))
