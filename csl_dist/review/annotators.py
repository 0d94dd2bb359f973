"""How often decisions went against the labels of each annotator, by class and by boundary.

Reviewers look at what models doubt, so that these are shares of doubted places and no error rates.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from csl_dist.audit.reader import Audit
from csl_dist.review.store import (
    ERRORS,
    Decision,
    Review,
    SpanKey,
    is_disputed,
)
from csl_dist.types import UNLABELLED, IntArray

BOUNDARY = "boundary"
"""The kind of a flag that is about a boundary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Decisions on the labels of one class, or on one boundary."""

    name: str
    decided: int
    against: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorRecord:
    annotator: str
    videos: int
    decided: int
    """Spans on which reviewers were sure."""
    against: int
    """Of these, those whose label was wrong."""
    disputed: int
    classes: tuple[Part, ...]
    boundaries: tuple[Part, ...]


def annotator_records(
    audit: Audit, current: Mapping[SpanKey, Sequence[Review]]
) -> list[AnnotatorRecord]:
    """One for each annotator of an audited video, in the order of names."""
    annotators = {video.id: video.annotator for video in audit.held_out_videos()}
    flags = audit.flags()
    spans = zip(flags.video, flags.start, flags.stop, strict=True)
    kinds = dict(zip(spans, flags.kind, strict=True))
    records = []
    for name in sorted({name for name in annotators.values() if name}):
        own = {span: held for span, held in current.items() if annotators.get(span[0]) == name}
        sure = {
            span: last
            for span, held in own.items()
            if (last := held[-1]).decision is not Decision.UNSURE
        }
        classes: Counter[tuple[str, bool]] = Counter()
        boundaries: Counter[tuple[str, bool]] = Counter()
        for span, review in sure.items():
            labels_T = audit.annotation(span[0]).labels_T
            is_wrong = review.decision in ERRORS
            boundary = _boundary(review, span, labels_T, audit.classes, kinds.get(span))
            if boundary is None:
                classes[_label(labels_T[span[1] : span[2]], audit.classes), is_wrong] += 1
            else:
                boundaries[boundary, is_wrong] += 1
        records.append(
            AnnotatorRecord(
                annotator=name,
                videos=sum(one == name for one in annotators.values()),
                decided=len(sure),
                against=sum(review.decision in ERRORS for review in sure.values()),
                disputed=sum(is_disputed(held) for held in own.values()),
                classes=_parts(classes),
                boundaries=_parts(boundaries),
            )
        )
    return records


def _parts(counts: Counter[tuple[str, bool]]) -> tuple[Part, ...]:
    """The worst first."""
    names = {name for name, _ in counts}
    parts = [
        Part(name=n, decided=counts[n, True] + counts[n, False], against=counts[n, True])
        for n in names
    ]
    return tuple(sorted(parts, key=lambda part: (-part.against, -part.decided, part.name)))


def _label(labels_T: IntArray, classes: tuple[str, ...]) -> str:
    """The label that most frames of a span have."""
    known_T = labels_T[labels_T != UNLABELLED]
    return classes[int(np.bincount(known_T).argmax())] if len(known_T) else "unlabelled"


def _boundary(
    review: Review, span: SpanKey, labels_T: IntArray, classes: tuple[str, ...], kind: str | None
) -> str | None:
    """The boundary that a decision is about, as `a → b`; None where it is about a name."""
    edits = review.changes
    if len(edits) == 1:
        start, stop, new = edits[0].start, edits[0].stop, classes.index(edits[0].label)
        if start > 0 and labels_T[start - 1] == new and _is_inside(labels_T, stop):
            return _pair(labels_T, start, classes)
        if stop < len(labels_T) and labels_T[stop] == new and _is_inside(labels_T, start):
            return _pair(labels_T, stop, classes)
        return None
    if not edits and kind == BOUNDARY:
        edges = np.flatnonzero(np.diff(labels_T)) + 1
        near = edges[(edges >= span[1] - 1) & (edges <= span[2] + 1)]
        if len(near):
            return _pair(labels_T, int(near[0]), classes)
    return None


def _is_inside(labels_T: IntArray, frame: int) -> bool:
    """Whether an edge that is set before this frame cuts a segment."""
    return 0 < frame < len(labels_T) and labels_T[frame - 1] == labels_T[frame]


def _pair(labels_T: IntArray, frame: int, classes: tuple[str, ...]) -> str:
    names = [classes[c] if c >= 0 else "unlabelled" for c in labels_T[[frame - 1, frame]]]
    return " → ".join(names)
