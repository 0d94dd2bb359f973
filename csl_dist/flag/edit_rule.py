"""The rule `edits`: flags that are the edit of the labels that explains most, with the fix.

A video is looked at by itself, one at a time: `video_findings` needs its labels, its trajectories
and what was learnt, and could run anywhere. Only probabilities need all videos' findings.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from csl_dist.config import FlagConfig
from csl_dist.flag.edit_calibration import EditCalibration, Promise, ReviewedSpan
from csl_dist.flag.edits.candidates import Edit, EditKind
from csl_dist.flag.edits.emission import Emission, emission_of
from csl_dist.flag.edits.files import best_files, file_gains, fits_badly
from csl_dist.flag.edits.findings import (
    LIST_OF,
    SHARED,
    Finding,
    ListName,
    alternative_words,
    alternatives,
    describe,
    log_odds_of,
    resolved,
)
from csl_dist.flag.edits.labelled import LabelledVideo, OtherLabels
from csl_dist.flag.edits.probability import (
    LEAST_LOG_ODDS,
    SHIPPED,
    SHIPPED_CALIBRATION,
    logit,
    move_by_reviews,
    move_to_share,
    sigmoid,
)
from csl_dist.flag.edits.rehearsal import ReadFamilies, rehearse, weighed_edits
from csl_dist.flag.edits.segments import segments_of
from csl_dist.flag.edits.statistics import Statistics
from csl_dist.predict.trajectories import Trajectory
from csl_dist.types import (
    UNLABELLED,
    Annotation,
    ErrorKind,
    Flag,
    FloatArray,
    IntArray,
    Span,
    frame_seconds,
)

NEAR = 1.0
"""Log-odds by which another edit of the place may be less sure and is still told of."""
LEAST_PROBABILITY = 0.5
"""Steps are flagged as long as a flag is likelier right than wrong."""
LEVELS = {ListName.BOUNDARIES: -1.5, ListName.ORDER: -2.0}
"""Log-odds by the shipped weights above which a boundary, or an order, is flagged.

Five datasets, choosing half of the people (benchmarks/edit_rule.py): unchanged labels give 0 to 4
flags of boundaries an hour and 0 to 5 of order (GTEA, 10 minutes: 17); with errors of the kind, .29
to 1 of boundaries are right (Cholec80: 0 of 2) and .19 to 1 of orders.
"""
KIND_OF = {
    EditKind.RENAME: ErrorKind.MISLABEL,
    EditKind.DELETE: ErrorKind.INSERT,
    EditKind.INSERT: ErrorKind.MISSING,
    EditKind.BOUNDARY: ErrorKind.BOUNDARY,
    EditKind.SWAP: ErrorKind.DISORDER,
}
"""The kind of error that an edit puts right."""

TrajectoryOf = Callable[[str, str], Trajectory]
"""The trajectory of a scorer, of a video."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoFindings:
    """What could be flagged in one video, before it is known how many errors there are."""

    flags: list[Flag]
    """Steps that may be likely enough; boundaries and orders that are flagged."""
    step_log_odds_N: FloatArray
    """Of every finding of steps."""
    reviewed: list[tuple[float, bool]]
    """Log-odds of steps that were reviewed, and whether each is wrong."""
    num_segments: int
    """Labelled ones."""
    file_gains: dict[str, float]
    """What the video gains by the labels of others; empty where its own fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditDecision:
    """What the rule makes of all videos."""

    flags: list[Flag]
    calibration: EditCalibration
    """With what the flags promise."""
    mixed_up: dict[str, str]
    """Videos whose labels seem to have changed places, each with the one whose labels it has."""


def labelled_videos(
    annotations: Iterable[Annotation], groups: Mapping[str, str]
) -> list[LabelledVideo]:
    """Labels as they are compared with each other; `groups` by video."""
    return [
        LabelledVideo(id=a.video, group=groups[a.video], labels_T=a.labels_T, fps=rate_of(a))
        for a in annotations
    ]


def rate_of(annotation: Annotation) -> float:
    """Frames per second; 1 for a video of a single frame, whose rate nobody knows."""
    return annotation.timeline.fps or 1.0


def families_of(scorers: Sequence[str], trajectory_of: TrajectoryOf) -> ReadFamilies:
    """Reads a video's trajectories (E, T, C) of all scorers."""
    return lambda video: [trajectory_of(scorer, video).read() for scorer in scorers]


def learnt_edits(
    annotations: Sequence[Annotation],
    groups: Mapping[str, str],
    trajectory_of: TrajectoryOf,
    *,
    scorers: tuple[str, ...],
    num_classes: int,
) -> EditCalibration:
    """Plants errors on top of the labels of held-out videos, and learns to tell their fixes."""
    videos = labelled_videos(annotations, groups)
    rehearsal = rehearse(
        videos,
        families_of(scorers, trajectory_of),
        OtherLabels(videos, num_classes=num_classes),
        num_classes=num_classes,
    )
    return EditCalibration(families=scorers, rehearsal=rehearsal)


def edit_flags(
    audited: Sequence[Annotation],
    others: OtherLabels,
    trajectory_of: TrajectoryOf,
    calibration: EditCalibration,
    config: FlagConfig,
    *,
    classes: tuple[str, ...],
) -> EditDecision:
    """Flags the videos to audit, one read at a time."""
    read = families_of(calibration.families, trajectory_of)
    labels = {annotation.video: annotation.labels_T for annotation in audited}
    found = [
        video_findings(
            annotation,
            emission_of(read(annotation.video), calibration.rehearsal.temperatures),
            others.about(annotation.video),
            calibration,
            config,
            classes=classes,
            labels=labels,
        )
        for annotation in audited
    ]
    every_N = np.concatenate([np.empty(0), *(own.step_log_odds_N for own in found)])
    reviewed = [one for own in found for one in own.reviewed]
    num_segments = sum(own.num_segments for own in found)
    probability_of = _probability(every_N, num_segments, reviewed, config)
    flags = [flag for own in found for flag in _chosen(own.flags, probability_of, calibration)]
    counts = Counter(flag.list for flag in flags)
    promise = Promise.of(
        [flag for flag in flags if flag.probability is not None],
        probability_of(every_N),
        {name: counts[name] for name in LEVELS},
    )
    gains = {a.video: own.file_gains for a, own in zip(audited, found, strict=True)}
    return EditDecision(
        flags=flags,
        calibration=replace(calibration, promise=promise),
        mixed_up={m.video: m.other for m in best_files(gains).values() if m.takes_back},
    )


def _chosen(
    flags: Sequence[Flag],
    probability_of: Callable[[FloatArray], FloatArray],
    calibration: EditCalibration,
) -> list[Flag]:
    """Of one video's flags the likely steps, and those of other lists that these do not explain.

    What reviewers found to be right goes, and what they found to be wrong is sure.
    """
    wrong = {id(flag): calibration.is_wrong(_key(flag), flag.label) for flag in flags}
    flags = [flag for flag in flags if wrong[id(flag)] is not False]
    steps = [flag for flag in flags if flag.list == ListName.STEPS]
    probability_N = probability_of(np.array([flag.score for flag in steps]))
    probability_N[np.array([wrong[id(flag)] is True for flag in steps], dtype=bool)] = 1.0
    likely = [
        replace(flag, probability=float(probability))
        for flag, probability in zip(steps, probability_N, strict=True)
        if probability >= LEAST_PROBABILITY
    ]
    # A wrong name makes the order around it odd, too: told once, as what it is.
    others = [
        flag
        for flag in flags
        if flag.list != ListName.STEPS
        and all(_shared_of_shorter(flag.span, step.span) <= SHARED for step in likely)
    ]
    return likely + others


def _key(flag: Flag) -> ReviewedSpan:
    return flag.video, flag.span.start, flag.span.stop


def _shared_of_shorter(a: Span, b: Span) -> float:
    return max(0, min(a.stop, b.stop) - max(a.start, b.start)) / min(len(a), len(b))


def _probability(
    every_N: FloatArray,
    num_segments: int,
    reviewed: Sequence[tuple[float, bool]],
    config: FlagConfig,
) -> Callable[[FloatArray], FloatArray]:
    """From log-odds of steps to the probability of an error, by all that were found."""
    excess = SHIPPED_CALIBRATION.excess(every_N) if len(every_N) else 0.0

    def estimated(log_odds_N: FloatArray) -> FloatArray:
        return SHIPPED_CALIBRATION.probability(log_odds_N, excess=excess)

    move = 0.0
    if config.expected_error_rate is not None and len(every_N):
        share = min(config.expected_error_rate * num_segments / len(every_N), 1 - 1e-6)
        move = move_to_share(estimated(every_N), share)
    if reviewed:
        log_odds_R, wrong_R = (np.array(values) for values in zip(*reviewed, strict=True))
        move += move_by_reviews(sigmoid(logit(estimated(log_odds_R)) + move), wrong_R)
    return lambda log_odds_N: sigmoid(logit(estimated(log_odds_N)) + move)


def video_findings(
    annotation: Annotation,
    emission: Emission,
    statistics: Statistics,
    calibration: EditCalibration,
    config: FlagConfig,
    *,
    classes: tuple[str, ...],
    labels: Mapping[str, IntArray],
) -> VideoFindings:
    """Findings of one video, each as a flag that has no probability yet.

    `labels` of all audited videos, to see whether another one's would fit better.
    """
    fps = rate_of(annotation)
    num_segments = sum(s.label != UNLABELLED for s in segments_of(annotation.labels_T))
    edits, evidence_NK = weighed_edits(annotation.labels_T, emission, statistics, fps=fps)
    log_odds_N = log_odds_of(edits, evidence_NK, calibration.rehearsal.models)
    found = resolved(
        edits,
        evidence_NK,
        log_odds_N,
        fps=fps,
        tolerance_seconds=config.tolerance_seconds,
    )
    steps = [f for f in found if f.list_name is ListName.STEPS]

    def span_of(finding: Finding) -> ReviewedSpan:
        return annotation.video, finding.edit.start, finding.edit.stop

    others = [_by_shipped(f) for f in found if f.list_name is not ListName.STEPS]
    kept = [f for f in steps if f.log_odds > LEAST_LOG_ODDS]
    kept += [f for f in others if f.log_odds >= LEVELS[f.list_name]]
    return VideoFindings(
        flags=[
            _flag(f, annotation, emission, classes, near_rival(f, edits, log_odds_N)) for f in kept
        ],
        step_log_odds_N=np.array([f.log_odds for f in steps]),
        reviewed=[
            (f.log_odds, wrong)
            for f in steps
            if (wrong := calibration.is_wrong(span_of(f), classes[f.edit.label])) is not None
        ],
        num_segments=num_segments,
        file_gains=(
            file_gains(annotation.video, emission.logp_TC, labels)
            if fits_badly(emission.logp_TC, annotation.labels_T)
            else {}
        ),
    )


def _by_shipped(finding: Finding) -> Finding:
    """A finding with the log-odds that its level is about."""
    log_odds = SHIPPED[finding.edit.kind].log_odds(finding.evidence_K[None])
    return replace(finding, log_odds=float(log_odds[0]))


def near_rival(finding: Finding, edits: Sequence[Edit], log_odds_N: FloatArray) -> Edit | None:
    """The surest other edit of the place, where it is hardly less sure."""
    known = {id(edit): float(odds) for edit, odds in zip(edits, log_odds_N, strict=True)}
    for rival in alternatives(finding, edits, log_odds_N, most=1):
        if known[id(rival)] > known[id(finding.edit)] - NEAR:
            return rival
    return None


def _flag(
    finding: Finding,
    annotation: Annotation,
    emission: Emission,
    classes: tuple[str, ...],
    rival: Edit | None,
) -> Flag:
    edit, times_T = finding.edit, annotation.times_T
    why = describe(finding, classes, fps=rate_of(annotation))
    if rival is not None:
        words = alternative_words(rival, classes, fps=rate_of(annotation))
        why = f"{why} It could also be {words}."
    new_T = _labels_after(edit)
    probability_T = np.exp(emission.logp_TC[np.arange(edit.start, edit.stop), new_T])
    return Flag(
        video=annotation.video,
        span=Span(edit.start, edit.stop),
        start_seconds=float(times_T[edit.start]),
        stop_seconds=float(times_T[edit.stop - 1]) + frame_seconds(times_T),
        score=finding.log_odds,
        kind=KIND_OF[edit.kind],
        kind_confidence=None,
        label=classes[edit.label],
        suggested=classes[edit.new_label],
        suggested_probability=float(probability_T.mean()),
        why=why,
        fix=fix_of(edit),
        fix_label=None if edit.kind is EditKind.SWAP else classes[edit.new_label],
        fix_start=edit.start,
        fix_stop=edit.stop,
        list=LIST_OF[edit.kind],
    )


def _labels_after(edit: Edit) -> IntArray:
    """Labels (n,) of the edit's frames once it is made."""
    if edit.kind is not EditKind.SWAP:
        return np.full(edit.num_frames, edit.new_label)
    return np.repeat(
        [edit.new_label, edit.label], [edit.stop - edit.place, edit.place - edit.start]
    )


def fix_of(edit: Edit) -> str:
    """An edit as a word and frames: `rename 10 20`, `boundary 50 43` (from, to), `swap 0 30 50`.

    `rename`, `delete` and `insert` give the frames that get another label; `boundary` where it is
    and where it should be; `swap` where the two segments begin, meet and end.
    """
    match edit.kind:
        case EditKind.BOUNDARY:
            old = edit.stop if edit.place == edit.start else edit.start
            numbers = [old, edit.place]
        case EditKind.SWAP:
            numbers = [edit.start, edit.place, edit.stop]
        case _:
            numbers = [edit.start, edit.stop]
    return " ".join([str(edit.kind), *map(str, numbers)])
