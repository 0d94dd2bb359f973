"""The rule `edits`: flags that are the edit of the labels that explains most, with the fix.

Videos are looked at one after the other; only probabilities need all videos' findings.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from csl_dist.config import FlagConfig
from csl_dist.errors import DataError
from csl_dist.flag.edit_calibration import EditCalibration, Promise, ReviewedSpan
from csl_dist.flag.edit_findings import LEVELS, VideoFindings, video_findings
from csl_dist.flag.edits.conventions import Convention, conventions_of
from csl_dist.flag.edits.emission import LateView, emission_of, first_late, late_view
from csl_dist.flag.edits.files import best_files
from csl_dist.flag.edits.findings import SHARED, ListName
from csl_dist.flag.edits.labelled import LabelledVideo, OtherLabels
from csl_dist.flag.edits.order import order_scores
from csl_dist.flag.edits.probability import (
    DATASET_DEVIATION,
    SHIPPED_CURVE,
    marginal,
    move_by_reviews,
    move_to_share,
    sigmoid,
)
from csl_dist.flag.edits.rehearsal import rehearse
from csl_dist.predict.published import Trajectory
from csl_dist.score.formulas import trajectory_blocks
from csl_dist.types import UNLABELLED, Annotation, Flag, FloatArray, IntArray, Span, rate_of

RULE_VERSION = 2
"""Goes up with every change of what the rule makes of the same input: whoever audits a root of
before gets another audit, and not the findings of an earlier csl_dist."""
LEAST_PROBABILITY = 0.5
"""Steps are flagged as long as a flag is likelier right than wrong."""
TrajectoryOf = Callable[[str, str], Trajectory]
"""The trajectory of a scorer, of a video."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditDecision:
    """What the rule makes of all videos."""

    flags: list[Flag]
    below: list[Flag]
    """Findings that are likelier right labels than wrong ones, but next to be looked at; and those
    that belong to a convention."""
    conventions: list[Convention]
    """Disagreements that are the same in most videos."""
    frames: dict[str, FloatArray]
    """Scores (2, T) of the frames, by video; rows as in `measures.FRAME_SCORES`."""
    calibration: EditCalibration
    """With what the flags promise."""
    mixed_up: dict[str, str]
    """Videos whose labels seem to have changed places, each with the one whose labels it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoLook:
    """Findings of a video, with all that they need beside its annotation; can go to a worker."""

    others: OtherLabels
    trajectory_of: TrajectoryOf
    calibration: EditCalibration
    config: FlagConfig
    classes: tuple[str, ...]
    labels: dict[str, IntArray]
    """Of all audited videos."""

    def __call__(self, annotation: Annotation) -> VideoFindings:
        families = read_families(annotation.video, self.calibration.families, self.trajectory_of)
        return video_findings(
            annotation,
            emission_of(families, self.calibration.rehearsal.temperatures),
            self.others.about(annotation.video),
            self.calibration,
            self.config,
            classes=self.classes,
            labels=self.labels,
        )


EachVideo = Callable[[VideoLook, Sequence[Annotation]], list[VideoFindings]]
"""How a look is taken at each of some videos; findings come in the videos' order."""


def one_by_one(look: VideoLook, audited: Sequence[Annotation]) -> list[VideoFindings]:
    return [look(annotation) for annotation in audited]


def labelled_videos(
    annotations: Iterable[Annotation], groups: Mapping[str, str]
) -> list[LabelledVideo]:
    """Labels as they are compared with each other; `groups` by video."""
    return [
        LabelledVideo(id=a.video, group=groups[a.video], labels_T=a.labels_T, fps=rate_of(a))
        for a in annotations
    ]


def read_families(
    video: str, scorers: Sequence[str], trajectory_of: TrajectoryOf
) -> list[LateView]:
    """What later checkpoints of all scorers say of a video, read block by block."""
    trajectories = [trajectory_of(scorer, video) for scorer in scorers]
    return [
        late_view((logp_ETC for _, logp_ETC in trajectory_blocks(own)), first_late(own.epochs))
        for own in trajectories
    ]


def learnt_edits(
    videos: Sequence[LabelledVideo],
    others: OtherLabels,
    trajectory_of: TrajectoryOf,
    *,
    scorers: tuple[str, ...],
    num_classes: int,
) -> EditCalibration:
    """Plants errors on top of the labels of held-out videos, and learns to tell their fixes."""
    if num_classes < 2:
        raise DataError("the dataset has one class alone, so that no label can be another's")
    if not any((video.labels_T != UNLABELLED).any() for video in videos):
        raise DataError("the videos to audit have no labelled frame, so that nothing has a score")
    rehearsal = rehearse(
        videos,
        lambda video: read_families(video, scorers, trajectory_of),
        others,
        num_classes=num_classes,
    )
    return EditCalibration(families=scorers, rehearsal=rehearsal)


def edit_flags(
    audited: Sequence[Annotation],
    videos: Sequence[LabelledVideo],
    others: OtherLabels,
    trajectory_of: TrajectoryOf,
    calibration: EditCalibration,
    config: FlagConfig,
    *,
    classes: tuple[str, ...],
    each: EachVideo = one_by_one,
) -> EditDecision:
    """Flags the videos to audit; `videos` are all held-out ones' labels.

    `each` looks at one video after the other, or at many at once on other machines.
    """
    look = VideoLook(
        others=others,
        trajectory_of=trajectory_of,
        calibration=calibration,
        config=config,
        classes=classes,
        labels={annotation.video: annotation.labels_T for annotation in audited},
    )
    with ThreadPoolExecutor(1) as beside:  # while others look at videos
        ordered = beside.submit(order_scores, others.videos)
        found = each(look, audited)
        order = ordered.result()
    every_N = np.concatenate([np.empty(0), *(own.step_log_odds_N for own in found)])
    reviewed = [one for own in found for one in own.reviewed]
    num_segments = sum(own.num_segments for own in found)
    belief = _belief(every_N, num_segments, reviewed, config)
    flags, below = [], []
    for own in found:
        chosen, left = _chosen(own.flags, belief, calibration)
        flags += chosen
        below += left
    conventions: list[Convention] = []
    if config.conventions == "once":
        conventions, members = conventions_of(flags, videos, classes)
        below += [flags[i] for i in sorted(members)]
        flags = [flag for i, flag in enumerate(flags) if i not in members]
    counts = Counter(flag.list for flag in flags)
    promise = Promise.of(
        [flag for flag in flags if flag.probability is not None],
        belief.probability(every_N),
        belief.deviation,
        {name: counts[name] for name in LEVELS},
    )
    gains = {a.video: own.file_gains for a, own in zip(audited, found, strict=True)}
    return EditDecision(
        flags=flags,
        below=below,
        conventions=conventions,
        frames={
            a.video: np.stack([own.suspicion_T, order[a.video]])
            for a, own in zip(audited, found, strict=True)
        },
        calibration=replace(calibration, promise=promise),
        mixed_up={m.video: m.other for m in best_files(gains).values() if m.takes_back},
    )


def _chosen(
    flags: Sequence[Flag],
    belief: "Belief",
    calibration: EditCalibration,
) -> tuple[list[Flag], list[Flag]]:
    """One video's findings in two: what is flagged, and what lies below the line.

    What reviewers found to be right goes, and what they found to be wrong is sure.
    """
    wrong = {id(flag): calibration.is_wrong(_key(flag), flag.label) for flag in flags}
    flags = [flag for flag in flags if wrong[id(flag)] is not False]
    steps = [flag for flag in flags if flag.list == ListName.STEPS]
    probability_N = belief.probability(np.array([flag.score for flag in steps]))
    probability_N[np.array([wrong[id(flag)] is True for flag in steps], dtype=bool)] = 1.0
    steps = [
        replace(flag, probability=float(probability))
        for flag, probability in zip(steps, probability_N, strict=True)
    ]
    likely = [flag for flag in steps if (flag.probability or 0.0) >= LEAST_PROBABILITY]
    # A wrong name makes the order around it odd, too: told once, as what it is.
    others = [
        flag
        for flag in flags
        if flag.list != ListName.STEPS
        and all(_shared_of_shorter(flag.span, step.span) <= SHARED for step in likely)
    ]
    high = [flag for flag in others if flag.score >= LEVELS[ListName(str(flag.list))]]
    chosen = likely + high
    kept = {id(flag) for flag in chosen}
    return chosen, [flag for flag in [*steps, *others] if id(flag) not in kept]


def _key(flag: Flag) -> ReviewedSpan:
    return flag.video, flag.span.start, flag.span.stop


def _shared_of_shorter(a: Span, b: Span) -> float:
    return max(0, min(a.stop, b.stop) - max(a.start, b.start)) / min(len(a), len(b))


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """How log-odds of steps become the probability of an error in one audit."""

    excess: float
    move: float
    """By which log-odds are higher than datasets elsewhere let expect."""
    deviation: float
    """Of that move, which nobody knows exactly."""

    def probability(self, log_odds_N: FloatArray) -> FloatArray:
        """(N,), 0 to 1."""
        return marginal(self._z(log_odds_N) + self.move, self.deviation)

    def _z(self, log_odds_N: FloatArray) -> FloatArray:
        return SHIPPED_CURVE.log_odds(log_odds_N, excess=self.excess)

    def told(self, rate: float, every_N: FloatArray, num_segments: int) -> "Belief":
        """The same where the share of wrong segments is known."""
        share = min(rate * num_segments / len(every_N), 1 - 1e-6)
        return replace(self, move=move_to_share(sigmoid(self._z(every_N)), share))

    def reviewed(self, decisions: Sequence[tuple[float, bool]]) -> "Belief":
        """The same after decisions on findings: their log-odds, and whether each is an error."""
        log_odds_R, wrong_R = (np.array(values) for values in zip(*decisions, strict=True))
        move, deviation = move_by_reviews(self._z(log_odds_R) + self.move, wrong_R)
        return replace(self, move=self.move + move, deviation=deviation)


def _belief(
    every_N: FloatArray,
    num_segments: int,
    decisions: Sequence[tuple[float, bool]],
    config: FlagConfig,
) -> Belief:
    """What all findings of steps, the config and reviewers say of how many errors there are."""
    excess = SHIPPED_CURVE.excess(every_N) if len(every_N) else 0.0
    belief = Belief(excess=excess, move=0.0, deviation=DATASET_DEVIATION)
    if config.expected_error_rate is not None and len(every_N):
        belief = belief.told(config.expected_error_rate, every_N, num_segments)
    return belief.reviewed(decisions) if decisions else belief
