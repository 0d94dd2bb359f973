"""The rule `edits`: flags that are the edit of the labels that explains most, with the fix.

Videos are looked at one after the other; only probabilities need all videos' findings.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from csl_dist.config import FlagConfig
from csl_dist.flag.edit_calibration import EditCalibration, Promise, ReviewedSpan
from csl_dist.flag.edit_findings import LEVELS, rate_of, video_findings
from csl_dist.flag.edits.emission import emission_of
from csl_dist.flag.edits.files import best_files
from csl_dist.flag.edits.findings import SHARED, ListName
from csl_dist.flag.edits.labelled import LabelledVideo, OtherLabels
from csl_dist.flag.edits.probability import (
    SHIPPED_CURVE,
    logit,
    move_by_reviews,
    move_to_share,
    sigmoid,
)
from csl_dist.flag.edits.rehearsal import ReadFamilies, rehearse
from csl_dist.predict.trajectories import Trajectory
from csl_dist.types import Annotation, Flag, FloatArray, Span

LEAST_PROBABILITY = 0.5
"""Steps are flagged as long as a flag is likelier right than wrong."""
TrajectoryOf = Callable[[str, str], Trajectory]
"""The trajectory of a scorer, of a video."""


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
    excess = SHIPPED_CURVE.excess(every_N) if len(every_N) else 0.0

    def estimated(log_odds_N: FloatArray) -> FloatArray:
        return SHIPPED_CURVE.probability(log_odds_N, excess=excess)

    move = 0.0
    if config.expected_error_rate is not None and len(every_N):
        share = min(config.expected_error_rate * num_segments / len(every_N), 1 - 1e-6)
        move = move_to_share(estimated(every_N), share)
    if reviewed:
        log_odds_R, wrong_R = (np.array(values) for values in zip(*reviewed, strict=True))
        move += move_by_reviews(sigmoid(logit(estimated(log_odds_R)) + move), wrong_R)
    return lambda log_odds_N: sigmoid(logit(estimated(log_odds_N)) + move)
