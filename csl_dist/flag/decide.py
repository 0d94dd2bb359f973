"""What an audit decides: a function for each kind of rule, for `audit` and `relabel` alike."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from functools import partial

import pandas as pd

from csl_dist.config import FlagConfig
from csl_dist.flag.calibration import AnyCalibration, Calibration
from csl_dist.flag.edit_calibration import EditCalibration
from csl_dist.flag.edit_rule import RULE_VERSION, EachVideo, TrajectoryOf, edit_flags, one_by_one
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
from csl_dist.types import Annotation, Flag, FloatArray, Split


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a rule makes of scores and trajectories; what it does not know stays empty."""

    flags: pd.DataFrame
    calibration: AnyCalibration
    """As given; of the rule `edits` with what these flags promise."""
    facts: pd.DataFrame
    """What each audited video is as a whole."""
    rule_version: int

    # By a threshold.
    thresholds: dict[str, float] = field(default_factory=dict)
    """Of the frame score, by video."""
    scales: tuple[tuple[float, float], tuple[float, float]] | None = None

    # By the rule `edits`.
    num_reviewed: int = 0
    """Spans on which decisions of reviewers went in."""
    below: pd.DataFrame = field(default_factory=lambda: ranked([]))
    """What lies below the line, next to be looked at."""
    frames: dict[str, FloatArray] = field(default_factory=dict)
    """Scores (2, T) of frames by video, as in `measures.FRAME_SCORES`."""
    conventions: list[Convention] = field(default_factory=list)
    """Disagreements that are the same in most videos, told once."""
    mixed_up: dict[str, str] = field(default_factory=dict)
    """Videos that seem to have each other's labels."""


def decide_by_edits(
    audited: Sequence[Annotation],
    held_out: Sequence[LabelledVideo],
    others: OtherLabels,
    trajectory_of: TrajectoryOf,
    calibration: EditCalibration,
    config: FlagConfig,
    *,
    classes: tuple[str, ...],
    each: EachVideo = one_by_one,
) -> Decision:
    """Flags what the rule `edits` would change; see `edit_flags`."""
    edits = edit_flags(
        audited,
        held_out,
        others,
        trajectory_of,
        calibration,
        config,
        classes=classes,
        each=each,
    )
    row = FRAME_SCORES.index(SUSPICION)
    return Decision(
        flags=ranked(edits.flags),
        calibration=edits.calibration,
        facts=video_facts(audited, {v: scores[row] for v, scores in edits.frames.items()}),
        rule_version=RULE_VERSION,
        num_reviewed=len(calibration.reviews),
        below=ranked(edits.below, first=len(edits.flags) + 1),
        frames=edits.frames,
        conventions=edits.conventions,
        mixed_up=edits.mixed_up,
    )


THRESHOLDS_VERSION = 2
"""As RULE_VERSION, of all rules with a threshold. Until the second one, late checkpoints were the
later half of those that are there, and not of the training."""


def decide_by_threshold(
    store: ScoreStore,
    versions: Versions,
    annotations: SplitAnnotations,
    settings: AuditSettings,
    calibration: Calibration,
    trajectory_of: TrajectoryOf,
    *,
    classes: tuple[str, ...],
) -> Decision:
    """Flags spans of the audit videos whose frames score high."""
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
        flags=ranked(flags),
        calibration=calibration,
        facts=video_facts(audit.annotations, by_video),
        rule_version=THRESHOLDS_VERSION,
        thresholds=taus,
        scales=scales,
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
