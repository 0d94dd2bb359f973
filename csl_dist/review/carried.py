"""Which decisions hold in an audit: its own, and earlier ones on labels that did not change since.

Labels that are corrected make a new audit. What reviewers said of other places, that a label is
right or that it is wrong and not corrected yet, is not asked again.
"""

from collections.abc import Callable
from functools import cache

from csl_dist.audit.reader import Audit, open_audit
from csl_dist.errors import CslError
from csl_dist.review.store import CurrentDecisions, Review, ReviewStore, SpanKey

SAME_PLACE = 0.5
"""Shared frames, of the frames of either, from which on two spans are the same place."""


def decisions_on(audit: Audit, store: ReviewStore) -> CurrentDecisions:
    """The decisions that count in an audit, each at the flag that it is about."""
    return CurrentDecisions(store, place_in(audit))


def place_in(audit: Audit) -> Callable[[Review], SpanKey | None]:
    """Where a decision stands in an audit; None where its labels were others."""
    table = audit.flags() if audit.has_flags else None
    flags: dict[str, list[SpanKey]] = {}
    if table is not None:
        for video, start, stop in zip(table.video, table.start, table.stop, strict=True):
            flags.setdefault(video, []).append((video, int(start), int(stop)))

    @cache
    def earlier(revision: int) -> Audit | None:
        try:
            return open_audit(audit.paths.root.url, revision=revision)
        except CslError:  # it was removed
            return None

    def place(review: Review) -> SpanKey | None:
        if review.revision == audit.revision:
            return review.span
        before = earlier(review.revision) if review.revision < audit.revision else None
        if before is None or not _has_same_labels(review, before, audit):
            return None
        return _same_flag(review.span, flags.get(review.video, []))

    return place


def _has_same_labels(review: Review, before: Audit, now: Audit) -> bool:
    """Whether the frames that a decision is about have the labels that the reviewer saw."""
    video, scorer = review.video, now.scorer
    made_before = before.record.scores.get(scorer, {}).get(video)
    made_now = now.record.scores.get(scorer, {}).get(video)
    if made_before is None or made_now is None:
        return False
    if made_before == made_now:
        return True
    old_T, new_T = (audit.annotation(video, scorer=scorer).labels_T for audit in (before, now))
    edges = [review.start, review.stop, *(e for c in review.changes for e in (c.start, c.stop))]
    inside = slice(min(edges), max(edges))
    same_classes = before.classes == now.classes
    return same_classes and len(old_T) == len(new_T) and bool((old_T == new_T)[inside].all())


def _same_flag(span: SpanKey, flags: list[SpanKey]) -> SpanKey:
    """The flag at the place of a span; the span itself where there is none."""
    if span in flags:
        return span
    best = max(flags, key=lambda flag: _overlap(span, flag), default=span)
    return best if _overlap(span, best) >= SAME_PLACE else span


def _overlap(a: SpanKey, b: SpanKey) -> float:
    """Shared frames over frames of either, 0 to 1."""
    shared = max(0, min(a[2], b[2]) - max(a[1], b[1]))
    return shared / (a[2] - a[1] + b[2] - b[1] - shared)
