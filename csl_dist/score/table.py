"""Scores of all held-out videos together: one score of every scorer, and of the ensemble."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from csl_dist.config import ENSEMBLE
from csl_dist.measures import base_and_smoothing
from csl_dist.score.ensemble import ensemble_scores
from csl_dist.score.formulas import smoothed_as_named
from csl_dist.score.settings import AuditSettings
from csl_dist.score.store import ScoreStore, Versions
from csl_dist.types import Annotation, FloatArray, Split

ScorerScores = dict[str, dict[str, FloatArray]]
"""One score (T,) by scorer, then video."""
SplitAnnotations = Mapping[Split, Sequence[Annotation]]
"""Those of the videos to audit and of the validation videos."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreTable:
    """The annotated videos of one split and one score of each."""

    annotations: Sequence[Annotation]
    scores: ScorerScores

    def pooled(self, scorer: str) -> FloatArray:
        """All frames' scores (N,), one video after the other."""
        arrays = [self.scores[scorer][a.video] for a in self.annotations]
        return np.concatenate([np.empty(0), *arrays])


def read_score_tables(
    store: ScoreStore,
    versions: Versions,
    annotations: SplitAnnotations,
    settings: AuditSettings,
    name: str | None = None,
) -> dict[Split, ScoreTable]:
    """One score of the videos to audit and of the validation videos, on one scale.

    By default the one that flags are made of; of every scorer and the ensemble.
    """
    base, smoothing = base_and_smoothing(name or settings.flag.score)
    everyone = [a for part in annotations.values() for a in part]
    stored = stored_scores(store, versions, base, everyone)
    scores = smoothed_scores(settings, stored, everyone, smoothing)
    return {
        split: ScoreTable(annotations=part, scores=scores) for split, part in annotations.items()
    }


def stored_scores(
    store: ScoreStore, versions: Versions, base: str, annotations: Sequence[Annotation]
) -> ScorerScores:
    """A score of every scorer, not smoothed."""
    return {
        scorer: store.read_all({a.video: made[a.video] for a in annotations}, scorer, base)
        for scorer, made in versions.items()
    }


def smoothed_scores(
    settings: AuditSettings,
    stored: ScorerScores,
    annotations: Sequence[Annotation],
    smoothing: str,
) -> ScorerScores:
    """Scores of every scorer with a smoothing, and those of the ensemble."""
    scores = {
        scorer: {
            a.video: smoothed_as_named(
                by_video[a.video], a.labels_T, smoothing=smoothing, window=settings.score.window
            )
            for a in annotations
        }
        for scorer, by_video in stored.items()
    }
    return scores | ensemble_of(settings, scores)


def ensemble_of(settings: AuditSettings, scores: ScorerScores) -> ScorerScores:
    """The score of the ensemble, by its name, where the run has scorers of both kinds."""
    if settings.framewise is None or not settings.has_ensemble:
        return {}
    return {ENSEMBLE: ensemble_scores(scores[settings.temporal], scores[settings.framewise])}
