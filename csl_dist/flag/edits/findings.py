"""Findings: of all candidate edits of a video those that explain most, one for each place."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from csl_dist.data.mistakes import PlantedKind, PlantedSpan
from csl_dist.flag.edits.edit import Edit
from csl_dist.flag.edits.evidence import COLUMNS
from csl_dist.flag.edits.lists import LIST_OF, ListName
from csl_dist.flag.edits.probability import EditModel
from csl_dist.types import BoolArray, EditKind, FloatArray, IntArray, Span

NO_EDIT = -8.0
"""Log-odds of a frame that no candidate covers, and the least of any frame."""
PREFERENCE_WEIGHT = 0.3
"""Of what models prefer, in deviations: it ranks frames that no change of the labels tells apart.
"""
SHARED = 0.3
"""Of the shorter of two spans: sharing more, the one with lower log-odds goes."""
NEAR = 1.0
"""Log-odds by which another edit of the place may be less sure and is still told of."""

RIGHT_KINDS: dict[PlantedKind, tuple[EditKind, ...]] = {
    PlantedKind.MISLABEL: (EditKind.RENAME, EditKind.DELETE),
    PlantedKind.RENAME: (EditKind.RENAME, EditKind.DELETE),
    PlantedKind.CONFUSABLE: (EditKind.RENAME, EditKind.DELETE),
    PlantedKind.PLAUSIBLE: (EditKind.RENAME, EditKind.DELETE),
    PlantedKind.OCCURRENCE: (EditKind.RENAME, EditKind.DELETE),
    PlantedKind.INSERT: (EditKind.RENAME, EditKind.DELETE),
    PlantedKind.MERGE: (EditKind.INSERT,),
    PlantedKind.MISSING: (EditKind.INSERT,),
    PlantedKind.SHIFT: (EditKind.BOUNDARY,),
    PlantedKind.JITTER: (EditKind.BOUNDARY,),
    PlantedKind.SWAP: (EditKind.SWAP,),
}
"""Which edit undoes which planted error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """An edit that was kept, its log-odds and evidence (K,)."""

    edit: Edit
    log_odds: float
    evidence_K: FloatArray
    rival: Edit | None = None
    """The surest other edit of the place, where it is hardly less sure."""
    doubt: str | None = None
    """Why models can't be relied on there; None where they can."""

    @property
    def list_name(self) -> ListName:
        return LIST_OF[self.edit.kind]


def log_odds_of(
    edits: Sequence[Edit], evidence_NK: FloatArray, models: Mapping[EditKind, EditModel]
) -> FloatArray:
    """Log-odds (N,) of candidates, each under the model of its kind."""
    result_N = np.zeros(len(edits))
    for kind, model in models.items():
        rows = [i for i, edit in enumerate(edits) if edit.kind is kind]
        result_N[rows] = model.log_odds(evidence_NK[rows])
    return result_N


def resolved(
    edits: Sequence[Edit],
    evidence_NK: FloatArray,
    log_odds_N: FloatArray,
    *,
    fps: float,
    tolerance_seconds: float,
) -> list[Finding]:
    """Findings of a video, surest first; of two that overlap the surer stays.

    Swaps overlap with swaps alone. A boundary that would move within the tolerance is none.
    """
    kept: list[Finding] = []
    places, taken_N = EditPlaces.of(edits), np.zeros(len(edits), dtype=bool)
    for i in np.argsort(-log_odds_N, kind="stable").tolist():
        edit = edits[i]
        if taken_N[i]:
            continue
        if edit.kind is EditKind.BOUNDARY and edit.num_frames / fps <= tolerance_seconds:
            continue
        rival_N = places.rivals_of(edit)
        taken_N |= rival_N
        rival_N[i] = False
        kept.append(
            Finding(
                edit=edit,
                log_odds=float(log_odds_N[i]),
                evidence_K=evidence_NK[i],
                rival=_near_rival(i, rival_N, edits, log_odds_N),
            )
        )
    return kept


@dataclass(frozen=True, slots=True)
class EditPlaces:
    """Where the edits of a video are, as columns (N,)."""

    start_N: IntArray
    stop_N: IntArray
    swap_N: BoolArray

    @classmethod
    def of(cls, edits: Sequence[Edit]) -> "EditPlaces":
        rows = [(edit.start, edit.stop, is_swap(edit)) for edit in edits]
        start_N, stop_N, swap_N = np.array(rows, dtype=int).reshape(-1, 3).T.copy()
        return cls(start_N, stop_N, swap_N.astype(bool))

    def rivals_of(self, edit: Edit) -> BoolArray:
        """Which edits (N,) overlap with one, itself among them; swaps with swaps alone.

        One row at a time: videos of animals have thousands of segments, and a table of all pairs of
        their edits would not fit memory.
        """
        shared_N = np.minimum(self.stop_N, edit.stop) - np.maximum(self.start_N, edit.start)
        shorter_N = np.minimum(self.stop_N - self.start_N, edit.num_frames)
        rival_N: BoolArray = (shared_N / shorter_N > SHARED) & (self.swap_N == is_swap(edit))
        return rival_N


def _near_rival(
    i: int, rival_N: BoolArray, edits: Sequence[Edit], log_odds_N: FloatArray
) -> Edit | None:
    """The surest of the edits that overlap with one, where it is hardly less sure."""
    surest = int(np.where(rival_N, log_odds_N, -np.inf).argmax())
    is_near = rival_N[surest] and log_odds_N[surest] > log_odds_N[i] - NEAR
    return edits[surest] if is_near else None


def frame_log_odds(edits: Sequence[Edit], log_odds_N: FloatArray, num_frames: int) -> FloatArray:
    """The largest log-odds (T,) of a candidate that covers each frame; at least NO_EDIT."""
    result_T = np.full(num_frames, NO_EDIT)
    for edit, log_odds in zip(edits, log_odds_N, strict=True):
        part = result_T[edit.start : edit.stop]
        np.maximum(part, log_odds, out=part)
    return result_T


def is_swap(edit: Edit) -> bool:
    return edit.kind is EditKind.SWAP


def overlap_of_shorter(a: Edit | Span, b: Edit | Span) -> float:
    """Frames that two places share, of the shorter one's; 0 to 1."""
    shared = min(a.stop, b.stop) - max(a.start, b.start)
    return max(0, shared) / min(a.stop - a.start, b.stop - b.start)


def overlap(edit: Edit, error: PlantedSpan) -> float:
    """Shared frames over frames of either, 0 to 1; 0 between a swap and what is none."""
    if is_swap(edit) != (error.kind is PlantedKind.SWAP):
        return 0.0
    shared = max(0, min(edit.stop, error.stop) - max(edit.start, error.start))
    return shared / (edit.num_frames + error.stop - error.start - shared)


def is_right_fix(edit: Edit, error: PlantedSpan) -> bool:
    """Whether an edit covers an error and undoes it: the span by half, the name exactly."""
    if edit.kind not in RIGHT_KINDS[error.kind] or overlap(edit, error) < 0.5:
        return False
    return error.label is None or edit.new_label == error.label


def describe(finding: Finding, names: Sequence[str], *, fps: float) -> str:
    """A sentence for the reviewer: what seems wrong, the fix, and what speaks for it."""
    edit = finding.edit
    when = f"from {edit.start / fps:.1f} to {edit.stop / fps:.1f} s"
    old, new = names[edit.label], names[edit.new_label]
    match edit.kind:
        case EditKind.RENAME:
            claim = f"Labelled {old} {when}, but {new} fits better"
        case EditKind.DELETE:
            claim = f"Labelled {old} {when}, but seems to be part of {new}"
        case EditKind.INSERT if edit.last_label != edit.label:
            last = names[edit.last_label]
            claim = (
                f"Labelled {old} and then {last} {when}, but a step {new} seems to be missing "
                "between them"
            )
        case EditKind.INSERT:
            claim = f"Labelled {old} {when}, but a step {new} seems to be missing here"
        case EditKind.BOUNDARY:
            moves = "later" if edit.place == edit.stop else "earlier"
            claim = (
                f"The boundary seems to be {edit.num_frames / fps:.1f} s {moves}, at "
                f"{edit.place / fps:.1f} s: labelled {old} {when}, but {new} fits better"
            )
        case EditKind.SWAP:
            claim = f"{old} and then {new}, {when}, is an unusual order"
    return f"{claim} ({', '.join(_reasons(finding))})."


def alternative_words(edit: Edit, names: Sequence[str], *, fps: float) -> str:
    """What else a finding could be, in a few words."""
    when = f"from {edit.start / fps:.1f} to {edit.stop / fps:.1f} s"
    match edit.kind:
        case EditKind.RENAME:
            return f"{names[edit.new_label]} {when}"
        case EditKind.DELETE:
            return f"part of {names[edit.new_label]} {when}"
        case EditKind.INSERT:
            return f"a missing {names[edit.new_label]} {when}"
        case EditKind.BOUNDARY:
            return f"a boundary that belongs at {edit.place / fps:.1f} s"
        case EditKind.SWAP:
            return f"{names[edit.label]} and {names[edit.new_label]} in the wrong order {when}"


def _reasons(finding: Finding) -> list[str]:
    value = dict(zip(COLUMNS, finding.evidence_K.tolist(), strict=True))
    reasons = []
    if not is_swap(finding.edit):
        reasons.append(f"{value['late_share']:.0%} of later checkpoints agree")
    if value["bigram"] > 1:
        reasons.append(f"the order becomes {_times(value['bigram'])} as usual")
    if value["duration"] > 1:
        reasons.append(f"durations become {_times(value['duration'])} as usual")
    if value["count"] > 1:
        reasons.append("the number of times that steps occur becomes more usual")
    return reasons or ["weak evidence from several sides"]


def _times(nats: float) -> str:
    """A ratio of probabilities in words; what lies beyond a thousand is no number to weigh."""
    return f"{np.exp(nats):.0f} times" if nats < np.log(1000) else "over 1,000 times"
