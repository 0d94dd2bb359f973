"""Thresholds and flags from scores: one function, for `audit` and `relabel` alike."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import partial

import pandas as pd

from csl_dist.flag.calibration import AnyCalibration
from csl_dist.flag.edit_calibration import EditCalibration
from csl_dist.flag.edit_rule import EachVideo, TrajectoryOf, edit_flags, labelled_videos, one_by_one
from csl_dist.flag.edits.conventions import Convention
from csl_dist.flag.edits.labelled import LabelledVideo, OtherLabels
from csl_dist.flag.facts import video_facts
from csl_dist.flag.rules import (
    APPEARANCE,
    KindJudge,
    described,
    ranked,
    suspicious_spans,
    thresholds,
)
from csl_dist.measures import FRAME_SCORES, SUSPICION
from csl_dist.score.ensemble import scale_of
from csl_dist.score.formulas import late_probabilities
from csl_dist.score.settings import AuditSettings
from csl_dist.score.store import ScoreStore, Versions
from csl_dist.score.table import ScoreTable, SplitAnnotations, read_score_tables
from csl_dist.types import Flag, FloatArray, Split


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a rule makes of scores and trajectories."""

    thresholds: dict[str, float]
    """Of the frame score, by video; empty by the rule `edits`, which has none."""
    scales: tuple[tuple[float, float], tuple[float, float]] | None
    flags: pd.DataFrame
    below: pd.DataFrame
    """By the rule `edits`: what lies below the line, next to be looked at; else empty."""
    frames: dict[str, FloatArray]
    """By the rule `edits`: scores (2, T) of frames by video, as in `measures.FRAME_SCORES`."""
    calibration: AnyCalibration
    """As given; of the rule `edits` with what these flags promise."""
    conventions: list[Convention]
    """By the rule `edits`: disagreements that are the same in most videos, told once."""
    mixed_up: dict[str, str]
    """By the rule `edits`: videos that seem to have each other's labels."""
    facts: pd.DataFrame
    """What each audited video is as a whole."""


def decide(
    store: ScoreStore,
    versions: Versions,
    annotations: SplitAnnotations,
    settings: AuditSettings,
    *,
    classes: tuple[str, ...],
    groups: Mapping[str, str],
    trained: Sequence[LabelledVideo],
    calibration: AnyCalibration,
    trajectory_of: TrajectoryOf,
    others: OtherLabels | None = None,
    each: EachVideo = one_by_one,
) -> Decision:
    """Flags suspicious spans of the audit videos.

    `groups` of all held-out videos by id; `trained` are labels of the training videos, from which
    the rule `edits` knows the order of steps as well, `others` both where they are counted already,
    and `each` is how it looks at many videos.
    """
    if isinstance(calibration, EditCalibration):
        held_out = labelled_videos((a for part in annotations.values() for a in part), groups)
        edits = edit_flags(
            annotations[Split.AUDIT],
            held_out,
            others or OtherLabels([*trained, *held_out], num_classes=len(classes)),
            trajectory_of,
            calibration,
            settings.flag,
            classes=classes,
            each=each,
        )
        return Decision(
            thresholds={},
            scales=None,
            flags=ranked(edits.flags),
            below=ranked(edits.below, first=len(edits.flags) + 1),
            frames=edits.frames,
            calibration=edits.calibration,
            conventions=edits.conventions,
            mixed_up=edits.mixed_up,
            facts=video_facts(
                annotations[Split.AUDIT],
                {v: scores[FRAME_SCORES.index(SUSPICION)] for v, scores in edits.frames.items()},
            ),
        )
    tables = read_score_tables(store, versions, annotations, settings)
    audit, scorer = tables[Split.AUDIT], settings.scorer
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
        below=ranked([]),
        frames={},
        calibration=calibration,
        conventions=[],
        mixed_up={},
        facts=video_facts(audit.annotations, by_video),
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
