"""Thresholds and flags from scores: one function, for `audit` and `relabel` alike."""

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from functools import partial

import pandas as pd

from csl_dist.flag.calibration import AnyCalibration
from csl_dist.flag.edit_calibration import EditCalibration
from csl_dist.flag.edit_rule import TrajectoryOf, edit_flags, labelled_videos
from csl_dist.flag.edits.labelled import OtherLabels
from csl_dist.flag.rules import (
    APPEARANCE,
    KindJudge,
    described,
    ranked,
    suspicious_spans,
    thresholds,
)
from csl_dist.score.ensemble import scale_of
from csl_dist.score.formulas import late_probabilities
from csl_dist.score.settings import AuditSettings
from csl_dist.score.store import ScoreStore, Versions
from csl_dist.score.table import ScoreTable, SplitAnnotations, read_score_tables
from csl_dist.types import Flag, Split


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a rule makes of scores and trajectories."""

    thresholds: dict[str, float]
    """Of the frame score, by video; empty by the rule `edits`, which has none."""
    scales: tuple[tuple[float, float], tuple[float, float]] | None
    flags: pd.DataFrame
    calibration: AnyCalibration
    """As given; of the rule `edits` with what these flags promise."""
    mixed_up: dict[str, str]
    """By the rule `edits`: videos that seem to have each other's labels."""


def decide(
    store: ScoreStore,
    versions: Versions,
    annotations: SplitAnnotations,
    settings: AuditSettings,
    *,
    classes: tuple[str, ...],
    groups: Mapping[str, str],
    calibration: AnyCalibration,
    trajectory_of: TrajectoryOf,
) -> Decision:
    """Flags suspicious spans of the audit videos; `groups` of all held-out videos by id."""
    tables = read_score_tables(store, versions, annotations, settings)
    audit, scorer = tables[Split.AUDIT], settings.scorer
    taus: dict[str, float] = {}
    mixed_up: dict[str, str] = {}
    if isinstance(calibration, EditCalibration):
        everyone = [a for part in annotations.values() for a in part]
        edits = edit_flags(
            audit.annotations,
            OtherLabels(labelled_videos(everyone, groups), num_classes=len(classes)),
            trajectory_of,
            calibration,
            settings.flag,
            classes=classes,
        )
        flags, calibration, mixed_up = edits.flags, edits.calibration, edits.mixed_up
    else:
        by_video = {a.video: audit.scores[scorer][a.video] for a in audit.annotations}
        taus = thresholds(settings.flag, tables[Split.VAL].pooled(scorer), by_video)
        flags = _threshold_flags(
            store, versions, audit, taus, settings, classes, calibration.judge, trajectory_of
        )
    framewise, scales = settings.framewise, None
    if settings.uses_ensemble and framewise is not None:
        of_context, of_frames = (
            scale_of(audit.scores[name].values()) for name in (settings.temporal, framewise)
        )
        scales = astuple(of_context), astuple(of_frames)
    return Decision(
        thresholds=taus,
        scales=scales,
        flags=ranked(flags),
        calibration=calibration,
        mixed_up=mixed_up,
    )


def _threshold_flags(
    store: ScoreStore,
    versions: Versions,
    audit: ScoreTable,
    taus: Mapping[str, float],
    settings: AuditSettings,
    classes: tuple[str, ...],
    judge: KindJudge | None,
    trajectory_of: TrajectoryOf,
) -> list[Flag]:
    """Spans whose frames score above their video's threshold."""
    framewise = settings.framewise
    flags: list[Flag] = []
    for annotation in audit.annotations:
        video = annotation.video
        score_T = audit.scores[settings.scorer][video]
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
                late_probabilities,
                trajectory_of(settings.temporal, video),
                strategy=settings.score.checkpoints,
            ),
            classes=classes,
        )
    return flags
