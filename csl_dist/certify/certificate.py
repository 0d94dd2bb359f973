"""Certificate: what a reviewed sample says of a dataset, in numbers and sentences."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from csl_dist.certify.estimate import Estimate, Judged, estimate, estimated_recall, judged
from csl_dist.certify.sample import Sample, draws_of, population_of
from csl_dist.review.edits import SpanEdit
from csl_dist.review.store import Decision, Review, SpanKey
from csl_dist.types import IntArray

MOST_TIMES = 64.0
"""So many times the reviews is as far as a forecast goes."""
STEP = 1.1


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassEstimate:
    label: str
    segments: int
    """Of the class that were judged."""
    wrong: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """What follows from the segments judged so far."""

    sample: Sample
    segments: int
    """In the whole dataset."""
    hours: float
    judged: int
    wrong: Estimate
    """Share of wrong seconds."""
    recall: Estimate
    """Share of the wrong seconds that are in flagged segments."""
    classes: tuple[ClassEstimate, ...]
    claim: float
    """Share of right seconds that is to be claimed, such as 0.97."""
    still_needed: int | None
    """Reviews until the claim can be made, if things stay as they are; 0 where it can be made now,
    None where it can't."""

    @property
    def holds(self) -> bool:
        return self.still_needed == 0

    @property
    def is_complete(self) -> bool:
        return self.judged == len(self.sample.spans)

    def sentence(self) -> str:
        sample = self.sample
        if self.judged == 0:
            return f"none of {len(sample.spans)} sampled segments is reviewed yet"
        right, low, high = 1 - self.wrong.share, 1 - self.wrong.high, 1 - self.wrong.low
        found = (
            f"{right:.1%} of seconds are right ({low:.1%} to {high:.1%} at "
            f"{sample.confidence:.0%}), from {self.judged} of {len(sample.spans)} sampled segments"
        )
        if self.holds:
            return f"{found}; so the claim of {self.claim:.1%} holds"
        if self.still_needed is None:
            return f"{found}; the claim of {self.claim:.1%} can't be made: correct labels first"
        return (
            f"{found}; the claim of {self.claim:.1%} needs about {self.still_needed} reviews more"
        )


def certificate(
    sample: Sample,
    segments: pd.DataFrame,
    current: Mapping[SpanKey, Sequence[Review]],
    *,
    claim: float,
) -> Certificate:
    """The certificate of a sample, by the decisions on its segments."""
    people = population_of(segments)
    wrong_of = wrong_shares(segments, current, within_seconds=sample.within_seconds)
    drawn = draws_of(sample, people)
    chosen = {int(i) for one in drawn for i in one}
    wrong_of = {i: share for i, share in wrong_of.items() if i in chosen}
    strata = [
        judged(one, wrong_of, people.seconds_N, own, suspicion)
        for one, own, suspicion in zip(drawn, people.own(), people.suspicion(), strict=True)
    ]
    found = estimate(strata, confidence=sample.confidence, seed=sample.seed)
    return Certificate(
        sample=sample,
        segments=len(segments),
        hours=float(people.seconds_N.sum() / 3600),
        judged=len(wrong_of),
        wrong=found,
        recall=estimated_recall(
            strata, people.num_flagged, confidence=sample.confidence, seed=sample.seed
        ),
        classes=tuple(_classes(sample, segments, drawn, wrong_of)),
        claim=claim,
        still_needed=_still_needed(strata, sample, claim, len(wrong_of)),
    )


def wrong_shares(
    segments: pd.DataFrame,
    current: Mapping[SpanKey, Sequence[Review]],
    *,
    within_seconds: float,
) -> dict[int, float]:
    """Wrong share of each segment that was decided for sure, by its row.

    A boundary that moves by less than `within_seconds` is right.
    """
    shares = {}
    for i, row in enumerate(segments.itertuples()):
        reviews = current.get((str(row.video), int(row.start), int(row.stop)), ())  # type: ignore[arg-type]
        sure = [review for review in reviews if review.decision is not Decision.UNSURE]
        if sure:
            seconds = float(row.stop_seconds) - float(row.start_seconds)  # type: ignore[arg-type]
            rate = seconds / (int(row.stop) - int(row.start))  # type: ignore[arg-type]
            span = int(row.start), int(row.stop)  # type: ignore[arg-type]
            changes = [edit for edit in sure[-1].changes if edit.label != row.label]
            frames = _wrong_frames(span, changes, within_seconds / rate)
            shares[i] = frames / (span[1] - span[0])
    return shares


def _wrong_frames(span: tuple[int, int], edits: Sequence[SpanEdit], within: float) -> int:
    """Frames of a segment that get another label, but for boundaries that move a little."""
    start, stop = span
    wrong = 0
    for edit in edits:
        first, last = max(start, edit.start), min(stop, edit.stop)
        is_boundary = (first == start) != (last == stop)
        if last > first and not (is_boundary and last - first <= within):
            wrong += last - first
    return wrong


def _classes(
    sample: Sample,
    segments: pd.DataFrame,
    drawn: Sequence[IntArray],
    wrong_of: Mapping[int, float],
) -> list[ClassEstimate]:
    """The share of wrong seconds of each class that was judged at all."""
    people = population_of(segments)
    found = []
    for label in segments.label.unique():
        is_own_N = (segments.label == label).to_numpy(dtype=bool)
        strata = [
            judged(one[is_own_N[one]], wrong_of, people.seconds_N, own[is_own_N[own]], suspicion)
            for one, own, suspicion in zip(drawn, people.own(), people.suspicion(), strict=True)
        ]
        num_judged = sum(bool(is_own_N[i]) for i in wrong_of)
        if num_judged:
            wrong = estimate(
                [one for one in strata if one.seconds],
                confidence=sample.confidence,
                seed=sample.seed,
            )
            found.append(ClassEstimate(label=label, segments=num_judged, wrong=wrong))
    return sorted(found, key=lambda one: -one.wrong.share)


def _still_needed(
    strata: Sequence[Judged], sample: Sample, claim: float, num_judged: int
) -> int | None:
    factor = 1.0
    while factor <= MOST_TIMES and num_judged:
        scaled = [one.scaled(factor) if factor > 1 else one for one in strata]
        found = estimate(scaled, confidence=sample.confidence, seed=sample.seed)
        if 1 - found.high >= claim:
            return round(num_judged * (factor - 1))
        if all(one.known_seconds >= one.seconds * (1 - 1e-9) for one in scaled):
            return None
        factor *= STEP
    return None
