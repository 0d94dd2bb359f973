"""Who reviews which flag: dealt out by share, by video or by kind, a part of them to two people."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from itertools import combinations
from typing import Any

import pandas as pd

from csl_dist.errors import DataError
from csl_dist.review.store import ERRORS, Decision, Review, SpanKey


class DealtBy(StrEnum):
    SHARE = "share"
    """Flag after flag, so that everybody gets as many of each rank."""
    VIDEO = "video"
    """All flags of a video to one person."""
    KIND = "kind"
    """All flags of a kind to one person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """A rule that tells who reviews a flag; nobody has to keep a list."""

    reviewers: tuple[str, ...]
    by: DealtBy = DealtBy.SHARE
    double: float = 0.0
    """Share of the flags that two people review."""

    def __post_init__(self) -> None:
        if not self.reviewers or len(set(self.reviewers)) < len(self.reviewers):
            raise DataError("an assignment needs reviewers, each named once")
        if not 0 <= self.double <= 1:
            raise DataError(f"the share that two people review is {self.double:g}; give 0 to 1")
        if self.double and len(self.reviewers) < 2:
            raise DataError("two people can review a flag only where there are two reviewers")

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, rule: Mapping[str, Any]) -> "Assignment":
        return cls(**{**rule, "reviewers": tuple(rule["reviewers"]), "by": DealtBy(rule["by"])})

    def of(self, flags: pd.DataFrame) -> list[tuple[str, ...]]:
        """Who reviews each flag of an audit's whole table, one person or two."""
        keys = {
            DealtBy.SHARE: range(len(flags)),
            DealtBy.VIDEO: flags.video,
            DealtBy.KIND: flags.kind,
        }[self.by]
        places: dict[object, int] = {}
        dealt = []
        for key, video, start, stop in zip(keys, flags.video, flags.start, flags.stop, strict=True):
            place = places.setdefault(key, len(places))
            num = 2 if _lot(video, start, stop) < self.double else 1
            dealt.append(
                tuple(self.reviewers[(place + i) % len(self.reviewers)] for i in range(num))
            )
        return dealt


def _lot(video: str, start: int, stop: int) -> float:
    """A number from 0 to 1 that follows from a span alone."""
    digest = hashlib.sha256(f"{video}\0{start}\0{stop}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How far reviewers agree where two or more looked."""

    pairs: int
    """Of decisions on the same span by two people."""
    agree: float | None
    """Share of the pairs that say the same; None without a pair."""
    kappa: float | None
    """Cohen's, of error or no error: 1 is full agreement, 0 what chance gives."""


def agreement(current: Mapping[SpanKey, Sequence[Review]]) -> Agreement:
    """The agreement of all pairs of sure decisions."""
    pairs = [
        pair
        for reviews in current.values()
        for pair in combinations([r for r in reviews if r.decision is not Decision.UNSURE], 2)
    ]
    if not pairs:
        return Agreement(pairs=0, agree=None, kappa=None)
    same = sum(a.verdict == b.verdict for a, b in pairs) / len(pairs)
    errors = [(a.decision in ERRORS, b.decision in ERRORS) for a, b in pairs]
    observed = sum(a == b for a, b in errors) / len(errors)
    share = sum(a + b for a, b in errors) / (2 * len(errors))
    chance = share**2 + (1 - share) ** 2
    kappa = (observed - chance) / (1 - chance) if chance < 1 else None
    return Agreement(pairs=len(pairs), agree=same, kappa=kappa)
