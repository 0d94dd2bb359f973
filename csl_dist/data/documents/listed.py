"""JSON documents whose segments are members of lists or objects, each with its own times."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from csl_dist.data.documents.document import About
from csl_dist.data.documents.edits import Change
from csl_dist.data.documents.json_text import JsonText, Member, Node, Part
from csl_dist.data.documents.segment import Segment
from csl_dist.data.documents.times import Times


@dataclass(frozen=True, slots=True)
class Place:
    """Where a segment stands: in which container, as which member, and its values."""

    container: Node
    member: Member
    start: Node
    stop: Node
    label: Node


class ListedDocument:
    """What such documents share: how segments are changed, removed and added."""

    segments: Sequence[Segment]

    def __init__(self, json: JsonText, times: Times):
        self.json = json
        self.times = times
        self.about: dict[str, About] = {}
        self.notes: list[str] = []
        self.places: list[Place] = []

    def label_values(self, place: Place, label: str) -> dict[Node, Any]:
        """Values that change with a segment's label."""
        return {place.label: label}

    def new_values(self, place: Place, new: Segment) -> dict[Node, Any]:
        """Values of a new segment that no other may share, such as an id."""
        return {}

    def new_name(self, place: Place, new: Segment) -> str | None:
        """The name of a new member, in an object."""
        return None

    def edited(self, changes: Sequence[Change]) -> bytes:
        values: dict[Node, Any] = {}
        removed: set[int] = set()
        added: dict[int, list[str]] = {}
        containers: dict[Node, None] = {}
        for change in changes:
            place = self.places[change.old.key]
            if change.new is None:
                removed.add(place.member.start)
                containers[place.container] = None
                continue
            own = self._values(place, change.old, change.new)
            if change.added:
                own |= self.new_values(place, change.new)
                text = self.json.rendered(place.member.node, own)
                name = self.new_name(place, change.new)
                prefix = "" if name is None else self._name_text(place.member, name)
                added.setdefault(place.member.start, []).append(prefix + text)
                containers[place.container] = None
            else:
                values |= own
        parts: dict[Node, list[Part]] = {}
        for container in containers:
            parts[container] = []
            for member in container.members or ():
                if member.start not in removed:
                    parts[container].append(member)
                parts[container] += added.get(member.start, ())
        return self.json.edited(values, parts)

    def _values(self, place: Place, old: Segment, new: Segment) -> dict[Node, Any]:
        values: dict[Node, Any] = {}
        if new.start_seconds != old.start_seconds:
            values[place.start] = self.times.start_number(new.start_seconds)
        if new.stop_seconds != old.stop_seconds:
            values[place.stop] = self.times.stop_number(new.stop_seconds)
        if new.label != old.label:
            values |= self.label_values(place, new.label)
        return values

    def _name_text(self, member: Member, name: str) -> str:
        between = self.json.text[member.start : member.node.start]
        return between.replace(f'"{member.name}"', f'"{name}"', 1)
