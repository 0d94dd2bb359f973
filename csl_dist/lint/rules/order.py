"""Findings about the order of steps: out of order, missing, repeated, where none is expected.

A place is told once. A step out of order also looks inserted where it stands and missing where it
belongs, so that order comes first, then missing steps, and neighbours of what was told are settled.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from csl_dist.lint.findings import Finding, Kind
from csl_dist.lint.reading import SCORES, Reading, about_place
from csl_dist.lint.statistics.evidence import (
    ALWAYS,
    insertion_gains,
    padded,
    precedence_shares,
    precedence_table,
    precedence_weight,
    repeat_weight,
    steps_left_out,
    swap_gains,
    usual_steps,
)
from csl_dist.lint.statistics.grammar import Grammar, first_occurrences
from csl_dist.types import FloatArray, IntArray
from csl_dist.words import counted

UNCALIBRATED = {Kind.ORDER: 5.0, Kind.MISSING: 4.0, Kind.INSERTED: 8.0}
"""Least scores where there are too few videos for probabilities."""
UNCALIBRATED_FACTOR = 2.0
"""There, a score must also be so many times that of all but a twentieth of the segments."""
MIN_SUPPORT = 5
"""Other videos, or places in them, that must speak for a sentence with counts."""
RARE_TRANSITION = 0.01
"""A step is told where a transition to or from it is at most this share of those from its step."""
UNUSUAL_TRANSITION = 0.1
"""Two steps are told as swapped where the second follows the first at most this often; set with
the findings on clean 50Salads and needle passing in view."""
UNANIMOUS_STEPS = 2
"""A step is told that all other videos contradict at so many other steps, however probable.

Where many labels are odd, as in CaptainCook4D with 382 order errors in 2,828 steps, no place looks
improbable any more. There, 74 of 83 such steps are tagged as order errors by people; 1, 2 and 3
were compared with all of its recipes in view."""
KINDS = (Kind.ORDER, Kind.MISSING, Kind.INSERTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A segment of one video at which one kind is suspected."""

    kind: Kind
    place: int
    score: float
    probability: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What is said about a suspect: segments `first` to `last`, which are then settled."""

    kind: Kind
    first: int
    last: int
    label: str
    sentence: str
    evidence: dict[str, float | int | str]
    settled: frozenset[int]
    before: bool = False
    """The place is the boundary before the segment, not the segment."""
    after: bool = False
    """The place is the boundary after it."""


def order_findings(reading: Reading) -> Iterator[Finding]:
    """Everything that the order of steps gives away, video by video."""
    corpus, suspects = reading.grammar.corpus, _suspects(reading)
    if not suspects:
        return
    units = {int(corpus.unit_V[video]) for video in suspects}
    for unit in sorted(units):
        videos = np.flatnonzero(corpus.unit_V == unit)
        with reading.grammar.without(videos):
            for video in videos.tolist():
                if video in suspects:
                    yield from _video_findings(reading, video, suspects[video])


def _suspects(reading: Reading) -> dict[int, list[Suspect]]:
    """Suspects by video, worst first."""
    corpus, by_video = reading.grammar.corpus, dict[int, list[Suspect]]()
    for kind, (_, score) in SCORES.items():
        scores = score(reading.order)
        measured = reading.probabilities.get(kind)
        if measured is None:
            usual = UNCALIBRATED_FACTOR * float(np.quantile(scores, 0.95)) if len(scores) else 0.0
            suspicious = scores >= max(UNCALIBRATED[kind], usual)
        else:
            suspicious = measured >= reading.settings.probability
        if kind is Kind.ORDER:
            suspicious = suspicious | (reading.order.unanimous >= UNANIMOUS_STEPS)
        for segment in np.flatnonzero(suspicious).tolist():
            video = int(np.searchsorted(corpus.offsets_V, segment, side="right")) - 1
            by_video.setdefault(video, []).append(
                Suspect(
                    kind=kind,
                    place=segment - int(corpus.offsets_V[video]),
                    score=float(scores[segment]),
                    probability=_probability(measured, segment, reading.settings.probability),
                )
            )
    for suspects in by_video.values():
        suspects.sort(key=lambda s: (KINDS.index(s.kind), -s.score))
    return by_video


def _probability(measured: FloatArray | None, segment: int, level: float) -> float | None:
    """None where a place is told for another reason than its probability."""
    known = None if measured is None else float(measured[segment])
    return known if known is not None and known >= level else None


def _video_findings(reading: Reading, video: int, suspects: list[Suspect]) -> Iterator[Finding]:
    sentences = Sentences(reading, video)
    settled: set[int] = set()
    for suspect in suspects:
        told = None if suspect.place in settled else sentences.about(suspect)
        if told is None or settled & set(range(told.first, told.last + 1)):
            continue
        settled |= told.settled
        corpus = reading.grammar.corpus
        span = corpus.span(video)
        starts, stops = corpus.start_N[span], corpus.stop_N[span]
        yield Finding(
            kind=told.kind,
            **about_place(corpus.about[video]),
            start_seconds=float(stops[told.first] if told.after else starts[told.first]),
            stop_seconds=float(
                starts[told.first] if told.before else stops[told.first : told.last + 1].max()
            ),
            label=told.label,
            score=suspect.score,
            probability=suspect.probability,
            sentence=told.sentence,
            evidence=told.evidence,
        )


class Sentences:
    """Says in words and counts what is odd in one video; counts are those of other groups."""

    def __init__(self, reading: Reading, video: int) -> None:
        self.grammar: Grammar = reading.grammar
        self.order = reading.order
        corpus = reading.grammar.corpus
        self.span = corpus.span(video)
        self.names = [corpus.name(n) for n in range(self.span.start, self.span.stop)]
        self.codes: IntArray = reading.grammar.codes(video)
        self.tables = reading.grammar.tables_of(video)
        self.state_names = {
            int(reading.grammar.tables.code[label]): name
            for label, name in enumerate(corpus.labels)
        }

    def about(self, suspect: Suspect) -> Told | None:
        """None where too few other videos speak for it."""
        if suspect.kind is Kind.ORDER:
            return self._precedence(suspect.place) or self._swap(suspect.place)
        if suspect.kind is Kind.MISSING:
            return self._missing(suspect.place)
        return self._inserted(suspect.place)

    def _precedence(self, place: int) -> Told | None:
        classes, places = first_occurrences(self.codes)
        if place not in places or self._swap_speaks_louder(place):
            return None
        table = precedence_table(self.grammar, self.tables)
        here, total, share = precedence_shares(self.grammar, table, classes)
        row = int(np.flatnonzero(places == place)[0])
        terms = np.log((1 - share[row]) / share[row])
        terms[row] = 0
        worst = int(np.argmax(terms))
        least = self.grammar.constants.least_violation
        if terms[worst] < least or total[row, worst] < MIN_SUPPORT:
            return None
        other = int(places[worst])
        usual, both = int(total[row, worst] - here[row, worst]), int(total[row, worst])
        verb, opposite = ("after", "before") if place < other else ("before", "after")
        sentence = (
            f"`{self.names[place]}` comes {verb} `{self.names[other]}` in {usual} of {both} "
            f"other videos, here {opposite} it"
        )
        strong = np.flatnonzero(terms >= max(least, terms[worst] / 2)).tolist()
        if len(strong) > 1:
            more = len(strong) - 1
            sentence += f"; the same holds for {counted(more, 'more step')}"
        return Told(
            kind=Kind.ORDER,
            first=place,
            last=place,
            label=self.names[place],
            sentence=sentence + ".",
            evidence={"usual": usual, "videos": both, "pairs": len(strong)},
            settled=frozenset(
                near for at in (place, *places[strong].tolist()) for near in (at - 1, at, at + 1)
            ),
        )

    def _swap_speaks_louder(self, place: int) -> bool:
        at = self.span.start + place
        # Precedence is easier to understand, so that it speaks wherever steps hardly repeat.
        weight = repeat_weight(self.grammar, self.tables)
        precedence = precedence_weight(self.grammar, weight) * float(self.order.precedence[at])
        return weight * float(self.order.swap[at]) > precedence

    def _swap(self, place: int) -> Told | None:
        states = self._states()
        gains = swap_gains(self.grammar, self.tables, states)
        best = max((p for p in (place - 1, place) if 0 <= p < len(gains)), key=lambda p: gains[p])
        around = states[best + 1 : best + 5]
        here, total = self._transitions(around[:-1], around[1:])
        turned, _ = self._transitions(around[[0, 2, 1]], around[[2, 1, 3]])
        rarest = float((here / np.maximum(total, 1)).min())
        if total[1] < MIN_SUPPORT or gains[best] <= 0 or rarest > RARE_TRANSITION:
            return None
        # A sentence on a swap must convince: this order is unusual, the other one has been seen.
        if here[1] > UNUSUAL_TRANSITION * total[1] or turned.min() < 1:
            return None
        first, second = self.names[best], self.names[best + 1]
        return Told(
            kind=Kind.ORDER,
            first=best,
            last=best + 1,
            label=first,
            sentence=(
                f"`{second}` directly follows `{first}` here, in other videos {here[1]} of "
                f"{total[1]} times. The other way round, `{first}` directly after `{second}`, "
                f"was seen {_times(int(turned[1]))}."
            ),
            evidence={
                "here": int(here[1]),
                "swapped": int(turned[1]),
                "after": int(total[1]),
            },
            settled=frozenset(range(best - 1, best + 3)),
        )

    def _missing(self, place: int) -> Told | None:
        state = int(self.order.missing_label[self.span.start + place])
        table = self.tables[-1]
        if state < 0:
            return None
        if state in self.codes or state not in usual_steps(self.grammar, table):
            return self._left_out(place, state)
        states = self._states()
        gains = insertion_gains(self.grammar, self.tables, states, state)
        after = place == len(self.codes) - 1 and bool(gains[place + 1] > gains[place])
        videos = self.grammar.num_videos(table)
        present = int(self.grammar.present[self.grammar.rows(table, np.array([state]))[0]])
        if present < ALWAYS * videos:
            return self._left_out(place, state)
        name = self.state_names[state]
        return Told(
            kind=Kind.MISSING,
            first=place,
            last=place,
            label=name,
            sentence=(
                f"`{name}` is in {present} of {videos} other videos, not here; it would be "
                f"expected {self._between(place + after)}."
            ),
            evidence={"present": present, "videos": videos},
            settled=frozenset({place - 1, place, place + 1}),
            before=not after,
            after=after,
        )

    def _left_out(self, place: int, state: int) -> Told | None:
        """A step that always follows the one before, which here is followed by another."""
        if (place, state) not in steps_left_out(self.grammar, self.tables[-1], self._states()):
            return None
        (usual,), (total,) = self._transitions(
            self._states()[place + 1 : place + 2], np.array([state])
        )
        name, here = self.state_names[state], self.names[place]
        previous = "the start" if place == 0 else f"`{self.names[place - 1]}`"
        return Told(
            kind=Kind.MISSING,
            first=place,
            last=place,
            label=name,
            sentence=(
                f"`{name}` directly follows {previous} {usual} of {total} times in other videos, "
                f"here `{here}` does."
            ),
            evidence={"usual": int(usual), "after": int(total)},
            settled=frozenset({place - 1, place, place + 1}),
            before=True,
        )

    def _states(self) -> IntArray:
        """The video's classes with the start and the end, twice each."""
        return padded(self.grammar, self.codes)

    def _between(self, place: int) -> str:
        """The boundary before a segment in words."""
        if place == 0:
            return f"before `{self.names[0]}`"
        if place == len(self.names):
            return f"after `{self.names[-1]}`"
        return f"between `{self.names[place - 1]}` and `{self.names[place]}`"

    def _inserted(self, place: int) -> Told | None:
        before, own, after = self._states()[place + 1 : place + 4]
        (direct, inside), (total, _) = self._transitions(
            np.array([before, before]), np.array([after, own])
        )
        onward, leaving = self._transitions(np.array([own]), np.array([after]))
        rarest = min(inside / max(total, 1), onward[0] / max(leaving[0], 1))
        if total < MIN_SUPPORT or rarest > RARE_TRANSITION:
            return None
        name, occurrence = self.names[place], self.names[: place + 1].count(self.names[place])
        previous = "the start" if place == 0 else f"`{self.names[place - 1]}`"
        at_end = place == len(self.names) - 1
        following = "the end" if at_end else f"`{self.names[place + 1]}`"
        time = f" for the {_ordinal(occurrence)} time" if occurrence > 1 else ""
        sentence = f"`{name}` comes{time} between {previous} and {following}. In other videos "
        if before != after:
            sentence += f"{following} directly follows {previous} {direct} of {total} times, "
        sentence += f"`{name}` follows {previous} {inside} of {total} times."
        return Told(
            kind=Kind.REPEATED if occurrence > 1 else Kind.INSERTED,
            first=place,
            last=place,
            label=name,
            sentence=sentence,
            evidence={"direct": int(direct), "after": int(total), "inside": int(inside)},
            settled=frozenset({place - 1, place, place + 1}),
        )

    def _transitions(self, first: IntArray, second: IntArray) -> tuple[IntArray, IntArray]:
        """How often each `second` directly follows `first` in the procedure, and anything does."""
        return self.grammar.transitions(self.tables[-1], first, second)


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number:,} times")


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if 10 < number % 100 < 14 else ending}"
