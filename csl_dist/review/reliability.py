"""Predicted against found: whether flags that were said to be errors in so many of 100 cases were.

Of all findings with a probability that reviewers decided for sure, in groups of similar
probability.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd

from csl_dist.audit.reader import Audit
from csl_dist.audit.revision import AuditStore
from csl_dist.review.learning import verdicts
from csl_dist.review.store import Review, SpanKey

MOST_GROUPS = 6
LEAST_IN_GROUP = 5
NORMAL_95 = 1.96


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityPoint:
    """Decided findings of similar probability."""

    predicted: float
    """Mean probability of an error, as the audit said."""
    found: float
    """Share that reviewers found to be errors."""
    low: float
    high: float
    """Wilson's 95 % interval of that share."""
    decided: int


def reliability(
    audit: Audit, current: Mapping[SpanKey, Sequence[Review]]
) -> list[ReliabilityPoint]:
    """Points by rising probability; empty before anything was decided.

    A decision is compared with what the audit said that the reviewer looked at: later ones know it.
    """
    known = verdicts(current)
    by_revision: dict[int, dict[SpanKey, bool]] = {}
    for span, reviews in current.items():
        if span in known:
            by_revision.setdefault(reviews[-1].revision, {})[reviews[-1].span] = known[span]
    store = AuditStore(audit.paths)
    pairs = sorted(
        pair
        for number in by_revision.keys() & set(store.numbers())
        for table in (store.flags(number), store.below(number))
        for pair in _decided(table, by_revision[number])
    )
    if not pairs:
        return []
    num_groups = min(MOST_GROUPS, max(1, len(pairs) // LEAST_IN_GROUP))
    return [_point(group) for group in _cut(pairs, num_groups)]


def _decided(findings: pd.DataFrame, known: Mapping[SpanKey, bool]) -> Iterator[tuple[float, bool]]:
    """What was predicted of findings, and whether each was an error."""
    spans = zip(findings.video, findings.start, findings.stop, strict=True)
    for span, probability in zip(spans, findings.probability.astype(float), strict=True):
        if span in known and not math.isnan(probability):
            yield probability, known[span]


def _cut(
    pairs: Sequence[tuple[float, bool]], num_groups: int
) -> list[Sequence[tuple[float, bool]]]:
    edges = np.linspace(0, len(pairs), num_groups + 1).round().astype(int).tolist()
    return [pairs[a:b] for a, b in pairwise(edges)]


def _point(group: Sequence[tuple[float, bool]]) -> ReliabilityPoint:
    hits = sum(is_wrong for _, is_wrong in group)
    low, high = wilson_interval(hits, len(group))
    return ReliabilityPoint(
        predicted=float(np.mean([probability for probability, _ in group])),
        found=hits / len(group),
        low=low,
        high=high,
        decided=len(group),
    )


def wilson_interval(hits: int, total: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share of at least one case."""
    share, z = hits / total, NORMAL_95
    middle = (share + z**2 / (2 * total)) / (1 + z**2 / total)
    half = z * math.sqrt(share * (1 - share) / total + z**2 / (4 * total**2)) / (1 + z**2 / total)
    return max(0.0, middle - half), min(1.0, middle + half)
