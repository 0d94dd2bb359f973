"""What could be flagged in one video: its findings by the rule `edits`, each as a flag.

`video_findings` needs a video's labels, its emission and what was learnt, and could run anywhere.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from csl_dist.config import FlagConfig
from csl_dist.flag.edit_calibration import EditCalibration
from csl_dist.flag.edits.edit import Edit
from csl_dist.flag.edits.emission import Emission
from csl_dist.flag.edits.evidence import COLUMNS
from csl_dist.flag.edits.files import file_gains, fits_badly
from csl_dist.flag.edits.findings import (
    PREFERENCE_WEIGHT,
    Finding,
    alternative_words,
    describe,
    frame_log_odds,
    is_swap,
    log_odds_of,
    resolved,
)
from csl_dist.flag.edits.fitting import weighed_edits
from csl_dist.flag.edits.lists import LIST_OF, ListName
from csl_dist.flag.edits.probability import LEAST_LOG_ODDS
from csl_dist.flag.edits.statistics import Statistics
from csl_dist.flag.edits.surprise import Surprise, surprise_of
from csl_dist.types import (
    UNLABELLED,
    Annotation,
    EditKind,
    ErrorKind,
    Fix,
    Flag,
    FloatArray,
    IntArray,
    Span,
    frame_seconds,
    rate_of,
    run_starts,
)

OPPOSED = -1.0
"""Mean gain per frame below which a scorer is against an edit that the committee proposes."""
LEAST_AGREEING = 0.6
"""Share of later checkpoints that must favour an edit."""
AMBIGUOUS_DISCOUNT = 1.2
"""Log-odds that an edit loses by such a disagreement, as planted errors in five datasets have it:
see docs/findings_study.md."""
KIND_OF = {
    EditKind.RENAME: ErrorKind.MISLABEL,
    EditKind.DELETE: ErrorKind.INSERT,
    EditKind.INSERT: ErrorKind.MISSING,
    EditKind.BOUNDARY: ErrorKind.BOUNDARY,
    EditKind.SWAP: ErrorKind.DISORDER,
}
"""The kind of error that an edit puts right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PossibleFlag:
    """A finding that is worth a look, whether it will be flagged or lies below the line."""

    flag: Flag
    """Without a probability; its score are the log-odds of the finding."""
    is_wrong: bool | None
    """Whether reviewers found that the labels are wrong there; None where they did not say."""
    is_open: bool
    """Whether labels are still those that reviewers saw, where they saw any."""

    def moved(self, by: float) -> "PossibleFlag":
        """The same with other log-odds."""
        log_odds = self.flag.score + by
        return replace(self, flag=replace(self.flag, score=log_odds, evidence=log_odds))


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoFindings:
    """What could be flagged in one video, before it is known how many errors there are."""

    video: str
    possible: list[PossibleFlag]
    suspicion_T: FloatArray
    """The score of its frames: the largest log-odds of a change of steps or boundaries there, and
    how much models prefer another label. NaN without a label."""
    log_odds: dict[ListName, FloatArray]
    """Of every finding (N,), by list."""
    num_segments: int
    """Labelled ones."""
    file_gains: dict[str, float]
    """What the video gains by the labels of others; empty where its own fit."""
    surprise: Surprise

    def moved(self, by: float) -> "VideoFindings":
        """The same with other log-odds of steps."""
        steps = {ListName.STEPS: self.log_odds[ListName.STEPS] + by}
        possible = [p.moved(by) if p.flag.list == ListName.STEPS else p for p in self.possible]
        return replace(self, possible=possible, log_odds={**self.log_odds, **steps})

    def reviewed(self, name: ListName) -> list[tuple[float, bool]]:
        """Log-odds of a list's findings that were reviewed, and whether each is an error.

        Only of those whose labels are still as reviewers saw them.
        """
        return [
            (one.flag.score, one.is_wrong)
            for one in self.possible
            if one.flag.list == name and one.is_open and one.is_wrong is not None
        ]


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
    """Findings of one video, those that are worth a look as flags that have no probability yet.

    `labels` of all audited videos, to see whether another one's would fit better.
    """
    video, labels_T = annotation.video, annotation.labels_T
    fps, frame_length = rate_of(annotation), frame_seconds(annotation.times_T)
    edits, evidence_NK = weighed_edits(labels_T, emission, statistics, fps=fps)
    log_odds_N = log_odds_of(edits, evidence_NK, calibration.learnt.models)
    kept = resolved(
        edits, evidence_NK, log_odds_N, fps=fps, tolerance_seconds=config.tolerance_seconds
    )
    found = [with_doubt(finding, statistics) for finding in kept]
    lists = {name: [f for f in found if f.list_name is name] for name in ListName}
    worth_a_look = [f for own in lists.values() for f in own if f.log_odds > LEAST_LOG_ODDS]
    preferred_T = calibration.learnt.preference.of(emission.logp_TC, labels_T)

    def possible(finding: Finding) -> PossibleFlag:
        edit, name = finding.edit, finding.list_name
        verdict = calibration.reviews.get((video, edit.start, edit.stop))
        return PossibleFlag(
            flag=_flag(finding, annotation, emission, classes, fps=fps, frame_length=frame_length),
            is_wrong=None if verdict is None else verdict.is_wrong(name, labels_T, classes),
            is_open=verdict is None or verdict.is_open(labels_T, classes),
        )

    is_misfit = fits_badly(emission.logp_TC, labels_T)
    return VideoFindings(
        video=video,
        possible=[possible(finding) for finding in worth_a_look],
        suspicion_T=_suspicion(edits, log_odds_N, preferred_T, labels_T),
        log_odds={name: np.array([f.log_odds for f in own]) for name, own in lists.items()},
        num_segments=int(np.count_nonzero(labels_T[run_starts(labels_T)] != UNLABELLED)),
        file_gains=file_gains(video, emission.logp_TC, labels) if is_misfit else {},
        surprise=surprise_of(emission.logp_TC, labels_T),
    )


def _suspicion(
    edits: Sequence[Edit], log_odds_N: FloatArray, preferred_T: FloatArray, labels_T: IntArray
) -> FloatArray:
    """The score (T,) of frames, by their best edit but swaps, and by what models prefer."""
    rows = [i for i, edit in enumerate(edits) if not is_swap(edit)]
    best_T = frame_log_odds([edits[i] for i in rows], log_odds_N[rows], len(labels_T))
    return np.where(labels_T == UNLABELLED, np.nan, best_T + PREFERENCE_WEIGHT * preferred_T)


def doubt_of(finding: Finding, statistics: Statistics) -> str | None:
    """Why models can't be relied on at a step: they disagree, or can't know its label.

    None of boundaries and order.
    """
    if finding.list_name is not ListName.STEPS:
        return None
    present = [finding.edit.label, finding.edit.last_label]
    if (statistics.number_C[present] == 0).any():
        return "No other person's labels have this step, so that models never saw it"
    value = dict(zip(COLUMNS, finding.evidence_K.tolist(), strict=True))
    if value["least_family"] < OPPOSED or value["late_share"] < LEAST_AGREEING:
        return "Models disagree with each other here"
    return None


def with_doubt(finding: Finding, statistics: Statistics) -> Finding:
    """A finding with what makes it ambiguous, if anything, and the log-odds that are left then."""
    doubt = doubt_of(finding, statistics)
    if doubt is None:
        return finding
    return replace(finding, doubt=doubt, log_odds=finding.log_odds - AMBIGUOUS_DISCOUNT)


def _flag(
    finding: Finding,
    annotation: Annotation,
    emission: Emission,
    classes: tuple[str, ...],
    *,
    fps: float,
    frame_length: float,
) -> Flag:
    """`frame_length` in seconds, which takes a sort of all times, as `fps` does."""
    edit, doubt = finding.edit, finding.doubt
    why = describe(finding, classes, fps=fps)
    if doubt is not None:
        why = f"{why} {doubt}: look, but take no fix for granted."
    elif finding.rival is not None:
        words = alternative_words(finding.rival, classes, fps=fps)
        why = f"{why} It could also be {words}."
    new_T = _labels_after(edit)
    probability_T = np.exp(emission.logp_TC[np.arange(edit.start, edit.stop), new_T])
    return Flag(
        video=annotation.video,
        span=Span(edit.start, edit.stop),
        start_seconds=float(annotation.times_T[edit.start]),
        stop_seconds=float(annotation.times_T[edit.stop - 1]) + frame_length,
        score=finding.log_odds,
        evidence=finding.log_odds,
        kind=KIND_OF[edit.kind] if doubt is None else ErrorKind.AMBIGUOUS,
        kind_confidence=None,
        label=classes[edit.label],
        suggested=classes[edit.new_label],
        suggested_probability=float(probability_T.mean()),
        why=why,
        fix=fix_of(edit) if doubt is None else None,
        fix_label=classes[edit.new_label] if doubt is None and not is_swap(edit) else None,
        fix_start=edit.start if doubt is None else None,
        fix_stop=edit.stop if doubt is None else None,
        list=LIST_OF[edit.kind],
    )


def _labels_after(edit: Edit) -> IntArray:
    """Labels (n,) of the edit's frames once it is made."""
    if edit.kind is not EditKind.SWAP:
        return np.full(edit.num_frames, edit.new_label)
    return np.repeat(
        [edit.new_label, edit.label], [edit.stop - edit.place, edit.place - edit.start]
    )


def fix_of(edit: Edit) -> Fix:
    """What a flag keeps of an edit."""
    match edit.kind:
        case EditKind.BOUNDARY:
            old = edit.stop if edit.place == edit.start else edit.start
            return Fix(edit.kind, (old, edit.place))
        case EditKind.SWAP:
            return Fix(edit.kind, (edit.start, edit.place, edit.stop))
    return Fix(edit.kind, (edit.start, edit.stop))
