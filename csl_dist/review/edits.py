"""Edits: spans of a video that get another label, which is what a decision comes down to.

Whoever shows, exports or learns from decisions reads their edits and nothing else, so that a page
and the corrected labels can't disagree.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from csl_dist.types import EditKind, Fix, IntArray, Span, runs_of

MAX_SLIVER = 3
"""Frames of an old label that an edit leaves at a segment's edge, and that go with the edit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanEdit:
    """Frames [start, stop) get a label."""

    start: int
    stop: int
    label: str
    start_seconds: float | None = None
    """The exact time of the edge, where it was set between two frames."""
    stop_seconds: float | None = None

    @property
    def span(self) -> Span:
        return Span(self.start, self.stop)

    def as_json(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


def edited(labels_T: IntArray, edits: Iterable[SpanEdit], classes: Sequence[str]) -> IntArray:
    """A video's class ids (T,) after edits; a later one overwrites an earlier one."""
    edited_T = labels_T.copy()
    for edit in edits:
        edited_T[edit.start : edit.stop] = classes.index(edit.label)
    return edited_T


def without_slivers(edit: SpanEdit, labels_T: IntArray) -> SpanEdit:
    """An edit that also takes the few frames that it would leave between itself and a boundary.

    A flag starts where its score does, often some frames after the segment that it is about.
    """
    most = min(MAX_SLIVER, edit.stop - edit.start - 1)
    segments = runs_of(labels_T)
    first = next(segment for segment in segments if segment.stop > edit.start)
    last = next(segment for segment in segments if segment.stop >= edit.stop)
    if 0 < edit.start - first.start <= most:
        edit = replace(edit, start=first.start, start_seconds=None)
    if 0 < last.stop - edit.stop <= most:
        edit = replace(edit, stop=last.stop, stop_seconds=None)
    return edit


def proposal(flag: Mapping[str, Any], labels_T: IntArray) -> tuple[SpanEdit, ...]:
    """What a flag proposes; empty where it says where to look and not what to do.

    By rules that only compare a score with a threshold, the suggested label for the whole span: but
    not for a step that comes at the wrong time, as its frames do show what the label says.
    """
    fix = Fix.parse(flag.get("fix"))
    if fix is not None and fix.kind is EditKind.SWAP:
        start, middle, stop = fix.frames
        place = start + stop - middle
        return (
            SpanEdit(start=start, stop=place, label=str(flag["suggested"])),
            SpanEdit(start=place, stop=stop, label=str(flag["label"])),
        )
    if fix is not None and flag.get("fix_label"):
        start, stop = int(flag["fix_start"]), int(flag["fix_stop"])
        return (SpanEdit(start=start, stop=stop, label=str(flag["fix_label"])),)
    if flag["kind"] != "mislabel" or flag["suggested"] == flag["label"]:
        return ()
    whole = SpanEdit(start=int(flag["start"]), stop=int(flag["stop"]), label=str(flag["suggested"]))
    return (without_slivers(whole, labels_T),)
