"""The frames and labels that a request names, checked against the audit."""

from csl_dist.audit.reader import Audit
from csl_dist.errors import DataError
from csl_dist.service.forms import FramesQuery, UnderLabels
from csl_dist.types import UNLABELLED, Annotation, IntArray, Span


def requested_span(query: FramesQuery, num_frames: int) -> Span:
    """The frames from start to stop; without stop, to the end."""
    stop = num_frames if query.stop is None else query.stop
    return span_within(query.start, stop, num_frames, query.video)


def span_within(start: int, stop: int, num_frames: int, video: str) -> Span:
    """A range of a video's frames; DataError if the video has no such range."""
    if not 0 <= start < stop <= num_frames:
        raise DataError(
            f"frames {start} to {stop} are not a range of video {video!r}, which has "
            f"{num_frames:,} frames"
        )
    return Span(start, stop)


def requested_labels(audit: Audit, annotation: Annotation, query: UnderLabels) -> IntArray | None:
    """The class ids (T,) that a request gives; None for the annotated labels."""
    if query.labels is None and not query.edits:
        return None
    labels_T = annotation.labels_T
    if query.labels is not None:
        labels_T = audit.label_ids(query.labels, query.video)
    edited_T = labels_T.copy()
    for edit in query.edits:
        span = span_within(edit.start, edit.stop, len(edited_T), query.video)
        edited_T[span.start : span.stop] = class_id(audit, edit.label) if edit.label else UNLABELLED
    return edited_T


def class_id(audit: Audit, name: str) -> int:
    """The id of a class; DataError if the run has no class of that name."""
    return audit.classes.index(audit.known_class(name))
