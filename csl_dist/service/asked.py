"""What a request means in the audit that it asks of: which frames, and which labels."""

from csl_dist.audit.reader import Audit
from csl_dist.errors import DataError
from csl_dist.service.forms import AskedFrames, UnderLabels
from csl_dist.types import UNLABELLED, Annotation, IntArray, Span


def asked_span(asked: AskedFrames, num_frames: int) -> Span:
    """The frames from start to stop, which may be left out for the end."""
    stop = num_frames if asked.stop is None else asked.stop
    return span_within(asked.start, stop, num_frames, asked.video)


def span_within(start: int, stop: int, num_frames: int, video: str) -> Span:
    """A range of a video's frames; DataError where it has none such."""
    if not 0 <= start < stop <= num_frames:
        raise DataError(
            f"frames {start} to {stop} are not a range within the {num_frames:,} of {video!r}"
        )
    return Span(start, stop)


def asked_labels(audit: Audit, annotation: Annotation, asked: UnderLabels) -> IntArray | None:
    """The class ids (T,) that a request gives; None for the annotated ones."""
    if asked.labels is None and not asked.edits:
        return None
    labels_T = annotation.labels_T
    if asked.labels is not None:
        labels_T = audit.label_ids(asked.labels, asked.video)
    edited_T = labels_T.copy()
    for edit in asked.edits:
        span = span_within(edit.start, edit.stop, len(edited_T), asked.video)
        edited_T[span.start : span.stop] = class_id(audit, edit.label) if edit.label else UNLABELLED
    return edited_T


def class_id(audit: Audit, name: str) -> int:
    """The place of a class; DataError where the run has none of that name."""
    if name not in audit.classes:
        names = ", ".join(audit.classes)
        raise DataError(f"there is no class {name!r}; the classes are {names}")
    return audit.classes.index(name)
