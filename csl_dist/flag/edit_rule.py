"""The rule `edits`: flags that are the edit of the labels that explains most, with the fix.

Videos are looked at one after the other; only probabilities need all videos' findings.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from csl_dist.config import FlagConfig
from csl_dist.errors import DataError
from csl_dist.flag.edit_calibration import BY_HIGH_FINDINGS, EditCalibration, Promise
from csl_dist.flag.edit_findings import PossibleFlag, VideoFindings, video_findings
from csl_dist.flag.edit_reviews import Decisions, earlier_decisions
from csl_dist.flag.edits.conventions import Convention, conventions_of
from csl_dist.flag.edits.emission import LateView, emission_of, late_view
from csl_dist.flag.edits.files import best_files
from csl_dist.flag.edits.findings import SHARED, overlap_of_shorter
from csl_dist.flag.edits.fitting import learnt_from_planted
from csl_dist.flag.edits.labelled import LabelledVideo, OtherLabels
from csl_dist.flag.edits.lists import ListName
from csl_dist.flag.edits.order import order_scores
from csl_dist.flag.edits.probability import (
    DATASET_DEVIATION,
    SHIPPED_CURVES,
    ProbabilityCurve,
    logit,
    marginal,
    move_by_reviews,
    move_to_share,
)
from csl_dist.flag.edits.surprise import moves_by_surprise
from csl_dist.predict.published import Trajectory
from csl_dist.score.formulas import trajectory_blocks
from csl_dist.strategies import first_late
from csl_dist.types import UNLABELLED, Annotation, Flag, FloatArray, IntArray, rate_of

RULE_VERSION = 6
"""Goes up with every change of what the rule makes of the same input: whoever audits a root of
before gets another audit, and not the findings of an earlier csl_dist."""
EVIDENCE_VERSION = 6
"""The first version whose evidence of flags compares with that of today."""
LEAST_PROBABILITY = 0.5
"""A flag is likelier right than wrong."""
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
            emission_of(families, self.calibration.learnt.temperatures),
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
    learnt = learnt_from_planted(
        videos,
        lambda video: read_families(video, scorers, trajectory_of),
        others,
        num_classes=num_classes,
    )
    return EditCalibration(families=scorers, learnt=learnt)


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
    moves = moves_by_surprise(
        {own.video: own.surprise for own in found}, {video.id: video.group for video in videos}
    )
    found = [own.moved(moves[own.video]) for own in found]
    earlier = earlier_decisions(calibration.reviews, look.labels, classes)
    beliefs = {name: _belief(found, name, config, earlier) for name in ListName}
    flags, below = [], []
    for own in found:
        chosen, left = _chosen(own, beliefs)
        flags += chosen
        below += left
    conventions: list[Convention] = []
    if config.conventions == "once":
        conventions, members = conventions_of(flags, videos, classes)
        below += [flags[i] for i in sorted(members)]
        flags = [flag for i, flag in enumerate(flags) if i not in members]
    promise = Promise.of(
        flags,
        {name: belief.deviation for name, belief in beliefs.items()},
        expected_errors=_expected_errors(found, beliefs[ListName.STEPS]),
        errors_known_by=(
            BY_HIGH_FINDINGS if config.expected_error_rate is None else "by expected_error_rate"
        ),
    )
    gains = {own.video: own.file_gains for own in found}
    return EditDecision(
        flags=flags,
        below=below,
        conventions=conventions,
        frames={own.video: np.stack([own.suspicion_T, order[own.video]]) for own in found},
        calibration=replace(calibration, promise=promise),
        mixed_up={m.video: m.other for m in best_files(gains).values() if m.takes_back},
    )


def _chosen(
    found: VideoFindings, beliefs: Mapping[ListName, "Belief"]
) -> tuple[list[Flag], list[Flag]]:
    """One video's findings in two: what is flagged, and what lies below the line.

    What reviewers found to be right goes, and what they found to be wrong is sure.
    """
    judged = _with_probabilities([p for p in found.possible if p.is_wrong is not False], beliefs)
    steps = [p.flag for p in judged if p.flag.list == ListName.STEPS and _is_likely(p.flag)]
    # A wrong name makes the order around it odd, too: told once, as what it is.
    told = [
        p.flag
        for p in judged
        if p.flag.list == ListName.STEPS
        or p.is_wrong
        or all(overlap_of_shorter(p.flag.span, step.span) <= SHARED for step in steps)
    ]
    return [f for f in told if _is_likely(f)], [f for f in told if not _is_likely(f)]


def _is_likely(flag: Flag) -> bool:
    return (flag.probability or 0.0) >= LEAST_PROBABILITY


def _with_probabilities(
    judged: Sequence[PossibleFlag], beliefs: Mapping[ListName, "Belief"]
) -> list[PossibleFlag]:
    """The same whose score are the log-odds of an error: on one scale in every list."""
    log_odds_N = np.array([one.flag.score for one in judged])
    list_N = np.array([one.flag.list for one in judged], dtype=object)
    probability_N = np.array([bool(one.is_wrong) for one in judged], dtype=float)
    for name, belief in beliefs.items():
        open_N = (list_N == name) & (probability_N == 0)
        probability_N[open_N] = belief.probability(log_odds_N[open_N])
    return [
        replace(one, flag=replace(one.flag, probability=probability, score=score))
        for one, probability, score in zip(
            judged, probability_N.tolist(), logit(probability_N).tolist(), strict=True
        )
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """How log-odds of a list become the probability of an error in one audit."""

    curve: ProbabilityCurve
    excess: float
    move: float = 0.0
    """By which log-odds are higher than datasets elsewhere let expect."""
    deviation: float = DATASET_DEVIATION
    """Of that move, which nobody knows exactly."""

    def probability(self, log_odds_N: FloatArray) -> FloatArray:
        """(N,), 0 to 1."""
        return marginal(self._z(log_odds_N) + self.move, self.deviation)

    def _z(self, log_odds_N: FloatArray) -> FloatArray:
        return self.curve.log_odds(log_odds_N, excess=self.excess)

    def told(self, rate: float, every_N: FloatArray, num_segments: int) -> "Belief":
        """The same where the share of wrong segments is known."""
        share = min(rate * num_segments / len(every_N), 1 - 1e-6)
        return replace(self, move=move_to_share(self._z(every_N), share))

    def reviewed(self, decisions: Sequence[tuple[float, bool]]) -> "Belief":
        """The same after decisions on findings: their log-odds, and whether each is an error."""
        log_odds_R, wrong_R = np.array(decisions).reshape(-1, 2).T
        move, deviation = move_by_reviews(self._z(log_odds_R) + self.move, wrong_R > 0)
        return replace(self, move=self.move + move, deviation=deviation)


def _belief(
    found: Sequence[VideoFindings], name: ListName, config: FlagConfig, earlier: Decisions
) -> Belief:
    """What all findings of a list, the config and reviewers say of how many errors there are."""
    every_N, curve = _log_odds(found, name), SHIPPED_CURVES[name]
    # Errors that are corrected by now tell as much of the others as they did before.
    corrected = [evidence for evidence, is_error in earlier[name] if is_error]
    belief = Belief(curve=curve, excess=curve.excess(np.array([*every_N, *corrected])))
    rate = config.expected_error_rate
    if rate is not None and name is ListName.STEPS and len(every_N):
        belief = belief.told(rate, every_N, sum(own.num_segments for own in found))
    decisions = [*earlier[name], *(one for own in found for one in own.reviewed(name))]
    return belief.reviewed(decisions) if decisions else belief


def _expected_errors(found: Sequence[VideoFindings], steps: Belief) -> float:
    """Wrong steps: by probability, and where reviewers decided, by what they found."""
    decisions = [one for own in found for one in own.reviewed(ListName.STEPS)]
    by_model_R = steps.probability(np.array([log_odds for log_odds, _ in decisions]))
    right = sum(wrong for _, wrong in decisions)
    every_N = steps.probability(_log_odds(found, ListName.STEPS))
    return float(every_N.sum() - by_model_R.sum()) + right


def _log_odds(found: Sequence[VideoFindings], name: ListName) -> FloatArray:
    """Of all findings of a list (N,)."""
    return np.concatenate([np.empty(0), *(own.log_odds[name] for own in found)])
