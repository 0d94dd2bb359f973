"""Verdicts: what reviewers of a run agree on, with the labels and the flags that they looked at."""

from collections.abc import Sequence

from csl_dist.audit.revision import AuditStore
from csl_dist.audit.seen import SeenLabels
from csl_dist.flag.edit_reviews import NamedFrames, ReviewedSpan, Verdict, named_frames
from csl_dist.flag.edit_rule import EVIDENCE_VERSION
from csl_dist.flag.edits.lists import ListName
from csl_dist.review.edits import SpanEdit
from csl_dist.review.store import ERRORS, Decision, judged_spans


def verdicts_of(
    root: str, database: str | None, store: AuditStore, classes: Sequence[str]
) -> dict[ReviewedSpan, Verdict]:
    """By span; from the given database, or from that in the run root."""
    judged = judged_spans(root, database)
    seen: dict[int, SeenLabels | None] = {}
    flagged: dict[int, dict[ReviewedSpan, tuple[ListName, float]]] = {}
    for number in {one.revision for one in judged.values()} & set(store.numbers()):
        # Ids of an audit with other classes would be other names.
        same = store.record(number).classes == tuple(classes)
        seen[number] = store.seen(number) if same else None
        flagged[number] = _evidence_by_span(store, number)
    return {
        span: Verdict(
            is_error=one.decision in ERRORS,
            is_order_alone=one.decision is Decision.ORDER,
            changes=tuple((edit.start, edit.stop, edit.label) for edit in one.edits),
            seen=_seen(seen.get(one.revision), span, one.edits, classes),
            flagged=flagged.get(one.revision, {}).get(span),
        )
        for span, one in judged.items()
    }


def _seen(
    labels: SeenLabels | None,
    span: ReviewedSpan,
    edits: Sequence[SpanEdit],
    classes: Sequence[str],
) -> tuple[NamedFrames, ...] | None:
    """Labels of a span, and of all that edits would change, as an audit saw them."""
    video, start, stop = span
    if labels is None or video not in labels:
        return None
    first = min([start, *(edit.start for edit in edits)])
    last = max([stop, *(edit.stop for edit in edits)])
    return named_frames(labels.labels(video), first, last, classes)


def _evidence_by_span(store: AuditStore, number: int) -> dict[ReviewedSpan, tuple[ListName, float]]:
    """The list and the evidence of an audit's findings; none by an earlier rule."""
    found: dict[ReviewedSpan, tuple[ListName, float]] = {}
    if (store.record(number).rule_version or 0) < EVIDENCE_VERSION:
        return found
    for table in (store.flags(number), store.below(number)):
        known = table[table.evidence.notna()]
        spans = zip(known.video, known.start, known.stop, strict=True)
        for span, name, evidence in zip(spans, known.list, known.evidence, strict=True):
            found.setdefault(span, (ListName(name), float(evidence)))
    return found
