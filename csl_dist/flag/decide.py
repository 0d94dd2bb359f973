"""Thresholds and flags from scores: one function, for `audit` and `relabel` alike."""

from collections.abc import Callable
from dataclasses import astuple, dataclass
from functools import partial

import pandas as pd

from csl_dist.flag.rules import (
    APPEARANCE,
    KindJudge,
    described,
    ranked,
    suspicious_spans,
    thresholds,
)
from csl_dist.predict.trajectories import Trajectory
from csl_dist.score.ensemble import scale_of
from csl_dist.score.formulas import late_probabilities
from csl_dist.score.settings import AuditSettings
from csl_dist.score.store import ScoreStore, Versions
from csl_dist.score.table import SplitAnnotations, read_score_tables
from csl_dist.types import Split


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a rule makes of scores."""

    thresholds: dict[str, float]
    scales: tuple[tuple[float, float], tuple[float, float]] | None
    flags: pd.DataFrame


def decide(
    store: ScoreStore,
    versions: Versions,
    annotations: SplitAnnotations,
    settings: AuditSettings,
    *,
    classes: tuple[str, ...],
    judge: KindJudge | None,
    trajectory_of: Callable[[str], Trajectory],
) -> Decision:
    """Flags suspicious spans of the audit videos; trajectories are those of the temporal scorer."""
    tables = read_score_tables(store, versions, annotations, settings)
    audit, scorer = tables[Split.AUDIT], settings.scorer
    by_video = {a.video: audit.scores[scorer][a.video] for a in audit.annotations}
    taus = thresholds(settings.flag, tables[Split.VAL].pooled(scorer), by_video)
    framewise = settings.framewise
    flags = []
    for annotation in audit.annotations:
        video, score_T = annotation.video, by_video[annotation.video]
        spans = suspicious_spans(score_T, annotation, taus[video], settings.flag)
        if not spans:
            continue
        appearance_T = None
        if framewise is not None:
            appearance_T = store.read(video, framewise, APPEARANCE, versions[framewise][video])
        flags += described(
            spans,
            annotation,
            score_T=score_T,
            appearance_T=appearance_T,
            judge=judge,
            probability_of=partial(
                late_probabilities, trajectory_of(video), strategy=settings.score.checkpoints
            ),
            classes=classes,
        )
    scales = None
    if settings.uses_ensemble and framewise is not None:
        of_context, of_frames = (
            scale_of(audit.scores[name].values()) for name in (settings.temporal, framewise)
        )
        scales = astuple(of_context), astuple(of_frames)
    return Decision(thresholds=taus, scales=scales, flags=ranked(flags))
