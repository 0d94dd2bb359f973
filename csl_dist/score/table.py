"""Scores of all held-out videos together: one score of every scorer, and of the ensemble."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from csl_dist.config import ENSEMBLE
from csl_dist.measures import base_and_smoothing
from csl_dist.run import Run
from csl_dist.score.ensemble import ensemble_scores
from csl_dist.score.formulas import smoothed_as_named
from csl_dist.types import Annotation, FloatArray, Split, fingerprint

ScorerScores = dict[str, dict[str, FloatArray]]
"""One score (T,) by scorer, then video."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """The annotated videos of one split and one score of each."""

    annotations: list[Annotation]
    scores: ScorerScores

    def pooled(self, scorer: str) -> FloatArray:
        """All frames' scores (N,), one video after the other."""
        arrays = [self.scores[scorer][a.video] for a in self.annotations]
        return np.concatenate([np.empty(0), *arrays])


def read_all_scored(run: Run, name: str | None = None) -> dict[Split, Scored]:
    """One score of the videos to audit and of the validation videos, on one scale.

    By default the one that flags are made of; of every scorer and the ensemble.
    """
    base, smoothing = base_and_smoothing(name or run.config.flag.score)
    annotations = {split: run.split_annotations(split) for split in (Split.AUDIT, Split.VAL)}
    everyone = [a for part in annotations.values() for a in part]
    scores = smoothed_scores(run, stored_scores(run, base, everyone), everyone, smoothing)
    return {split: Scored(annotations=part, scores=scores) for split, part in annotations.items()}


def stored_scores(run: Run, base: str, annotations: Sequence[Annotation]) -> ScorerScores:
    """A score of every scorer as `reduce` left it."""
    videos = [a.video for a in annotations]
    return {scorer: run.scores.read_all(videos, scorer, base) for scorer in run.config.scorers}


def smoothed_scores(
    run: Run, stored: ScorerScores, annotations: Sequence[Annotation], smoothing: str
) -> ScorerScores:
    """Scores of every scorer with a smoothing, and those of the ensemble."""
    window = run.config.reduce.window
    scores = {
        scorer: {
            a.video: smoothed_as_named(
                by_video[a.video], a.labels_T, smoothing=smoothing, window=window
            )
            for a in annotations
        }
        for scorer, by_video in stored.items()
    }
    return scores | ensemble_of(run, scores)


def ensemble_of(run: Run, scores: ScorerScores) -> ScorerScores:
    """The score of the ensemble, by its name, where the run has scorers of both kinds."""
    temporal, framewise = run.temporal_scorer(), run.framewise_scorer()
    if framewise is None or not run.has_ensemble():
        return {}
    return {ENSEMBLE: ensemble_scores(scores[temporal], scores[framewise])}


def scores_made(run: Run) -> str:
    """Changes with the score of any video, and with which videos are in which split."""
    splits = {split: [v.id for v in run.dataset.in_split(split)] for split in Split}
    scored = [*splits[Split.AUDIT], *splits[Split.VAL]]
    return fingerprint(splits, run.scores.versions(scored, run.config.scorers))


def made_from(run: Run) -> str:
    """Changes with the score of any video, with the splits, and with all that flags depend on."""
    scorers = [run.temporal_scorer(), run.framewise_scorer(), run.flag_scorer()]
    config = run.config
    parts = (config.flag, config.reduce, config.corrupt)
    return fingerprint(scores_made(run), *parts, scorers, list(run.dataset.classes))
