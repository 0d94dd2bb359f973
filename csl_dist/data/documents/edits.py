"""Which segments of a document change when spans of a video get another label.

As few as possible: a segment that is touched by no span keeps its object, and so its bytes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf

from csl_dist.data.documents.segment import Segment


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """Where a renamed span begins or ends, in seconds: between two frames."""

    after: float
    """The frame before the edge; an edge that the file has already after it is kept."""
    at: float
    """The frame that comes after the edge."""
    middle: float
    """Entries of a file before it belong to the frame before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Renaming:
    """A span of a video that gets another label."""

    start: Edge
    stop: Edge
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What becomes of one segment of a document, or a new one beside it."""

    old: Segment
    """Of the document; a new segment is written beside it, in its form."""
    new: Segment | None
    """None: it is removed."""
    added: bool = False
    """Whether `new` is one more segment, and `old` stays as another change has it."""


def changes_of(
    segments: Sequence[Segment],
    renamings: Sequence[Renaming],
    snapped: Callable[[Edge], float],
) -> list[Change]:
    """Changes to the segments of one video and track.

    `snapped` gives a time that the file can express. A new segment is written beside the one that
    it was cut from, or else beside the nearest.
    """
    now = [(segment, segment) for segment in segments]
    """Each segment as it is now, and that of the document that it comes from."""
    for renaming in renamings:
        now = _renamed(now, renaming, snapped)
    by_key = {segment.key: segment for segment in segments}
    kept: dict[int, Segment] = {}
    added: list[Change] = []
    for segment, origin in now:
        if segment.key in by_key and segment.key not in kept:
            kept[segment.key] = segment
        else:
            added.append(Change(old=origin, new=segment, added=True))
    changed = [
        Change(old=old, new=kept.get(key)) for key, old in by_key.items() if kept.get(key) != old
    ]
    return changed + added


Pairs = list[tuple[Segment, Segment]]


def _renamed(now: Pairs, renaming: Renaming, snapped: Callable[[Edge], float]) -> Pairs:
    """A span is cut out of all segments and becomes one, joined to neighbours of its label."""
    edges = [s for segment, _ in now for s in (segment.start_seconds, segment.stop_seconds)]
    start = _kept_edge(edges, renaming.start, snapped)
    stop = _kept_edge(edges, renaming.stop, snapped)
    if renaming.stop.middle == inf:
        # The span goes on to the last frame, and what lies behind that frame goes with it.
        stop = max(stop, *edges)
    low, high = start, stop
    same: Pairs = []
    inside: Pairs = []
    rest: Pairs = []
    for segment, origin in now:
        a, b = segment.start_seconds, segment.stop_seconds
        if a == b:
            rest.append((segment, origin))
        elif segment.label == renaming.label and a <= stop and start <= b:
            same.append((segment, origin))
            low, high = min(low, a), max(high, b)
        elif start <= a and b <= stop:
            inside.append((segment, origin))
        else:
            if a < start:
                rest.append((replace(segment, stop_seconds=min(b, start)), origin))
            if b > stop:
                key = segment.key if a >= start else -1
                rest.append((replace(segment, start_seconds=max(a, stop), key=key), origin))
    if same or inside:
        segment, origin = (same or inside)[0]
    else:
        origin = min(now, key=lambda pair: _distance(pair[0], start, stop))[1]
        segment = replace(origin, key=-1)
    made = replace(segment, start_seconds=low, stop_seconds=high, label=renaming.label)
    return sorted([*rest, (made, origin)], key=lambda pair: pair[0].start_seconds)


def _distance(segment: Segment, start: float, stop: float) -> float:
    """How far a segment is from a span; the more they share, the less."""
    return max(segment.start_seconds, start) - min(segment.stop_seconds, stop)


def _kept_edge(edges: Sequence[float], edge: Edge, snapped: Callable[[Edge], float]) -> float:
    """An edge that lies between the same two frames already, or else the frame after."""
    return next((second for second in edges if edge.after < second <= edge.at), snapped(edge))
