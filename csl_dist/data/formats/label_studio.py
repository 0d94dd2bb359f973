"""Label Studio: an export of tasks (JSON) with TimelineLabels, in frames from 1, the end inside.

Each annotation of a task is one annotator's. The tag that made a label (`from_name`) is its track.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from csl_dist.data.documents.document import About, Parsed
from csl_dist.data.documents.edits import Change
from csl_dist.data.documents.json_text import JsonText, Member, Node, Part
from csl_dist.data.documents.segment import Segment
from csl_dist.data.documents.text import SourceText, decoded
from csl_dist.data.documents.times import Times
from csl_dist.data.formats.format import stem_of
from csl_dist.errors import DataError
from csl_dist.types import fingerprint

KIND = "timelinelabels"


class LabelStudioFormat:
    """One file with all tasks."""

    name: ClassVar[str] = "label_studio"
    patterns: ClassVar[tuple[str, ...]] = ("*.json",)
    needs_rate: ClassVar[bool] = True

    def looks_like(self, head: str) -> bool:
        return head.lstrip("\ufeff \r\n").startswith("[") and f'"{KIND}"' in head

    def parse(self, data: bytes, file: str, config: Any) -> "LabelStudioDocument":
        if config.labels_fps is None:
            raise DataError(
                f"{file} counts frames and does not say how many there are in a second; set "
                "dataset.labels_fps to the frameRate of the labelling config (Label Studio's own "
                "default is 24)"
            )
        times = Times(unit="frames", fps=config.labels_fps, base=1, inclusive=True)
        return LabelStudioDocument(decoded(data, file), times)


FORMAT = LabelStudioFormat()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a segment stands."""

    results: Node
    """The list of an annotation's results."""
    result: Member
    range_: Node
    label: Node


class LabelStudioDocument:
    """The timeline labels of all annotations that were not cancelled."""

    def __init__(self, source: SourceText, times: Times):
        self.json = JsonText(source)
        self.times = times
        self.about: dict[str, About] = {}
        self.notes: list[str] = []
        self._places: list[Place] = []
        if not isinstance(self.json.root.value, list):
            raise DataError(f"{source.file} is no export of Label Studio: expected a list of tasks")
        parsed = Parsed(source.file)
        for task in self.json.root:
            self._read_task(task, parsed)
        self.segments = parsed.segments
        if not self.segments:
            raise DataError(f"{source.file} has no result of the type {KIND}")

    def _read_task(self, task: Node, parsed: Parsed) -> None:
        value = task.value
        where = self.json.where(task)
        if not isinstance(value, dict) or not isinstance(value.get("data"), dict):
            raise DataError(f"{where}: expected a task with data and annotations")
        if not isinstance(value.get("annotations"), list):
            raise DataError(
                f"{where}: the task has no list of annotations; export as JSON, not JSON-MIN"
            )
        media = next(
            (v for k, v in value["data"].items() if isinstance(v, str) and "video" in k.lower()),
            None,
        )
        media = media or next((v for v in value["data"].values() if isinstance(v, str)), None)
        if media is None:
            raise DataError(f"{where}: the task's data names no video")
        video = stem_of(media.rpartition("d=")[2] if "?d=" in media else media)
        self.about[video] = About(media=media)
        active = [a for a in task["annotations"] if not (a.value or {}).get("was_cancelled")]
        for number, annotation in enumerate(active):
            results = annotation.get("result")
            if results is None or not isinstance(results.value, list):
                raise DataError(
                    f"{self.json.where(annotation)}: the annotation has no list of results"
                )
            who = _annotator(annotation.value, number) if len(active) > 1 else None
            who = who or _annotator(annotation.value, None)
            for member in results.members or ():
                if isinstance(member.node.value, dict) and member.node.value.get("type") == KIND:
                    self._read_result(results, member, parsed, video, who)

    def _read_result(
        self, results: Node, member: Member, parsed: Parsed, video: str, who: str | None
    ) -> None:
        node = member.node
        value = node.value.get("value")
        where = self.json.where(node)
        if not (
            isinstance(value, dict)
            and isinstance(value.get("ranges"), list)
            and isinstance(value.get(KIND), list)
            and len(value[KIND]) == 1
            and isinstance(value[KIND][0], str)
        ):
            raise DataError(f"{where}: expected ranges and one label in {KIND}, got {value!r}")
        for one in node["value"]["ranges"]:
            if not isinstance(one.value, dict) or not {"start", "end"} <= one.value.keys():
                raise DataError(
                    f"{self.json.where(one)}: expected start and end, got {one.value!r}"
                )
            line = self.json.line(one)
            parsed.add(
                video=video,
                start_seconds=parsed.seconds(self.times.start, one.value["start"], "start", line),
                stop_seconds=parsed.seconds(self.times.stop, one.value["end"], "end", line),
                label=value[KIND][0],
                line=line,
                track=node.value.get("from_name"),
                annotator=who,
            )
            self._places.append(Place(results, member, one, node["value"][KIND][0]))

    def edited(self, changes: Sequence[Change]) -> bytes:
        """A result with several ranges that is changed in one of them becomes one result each."""
        values: dict[Node, Any] = {}
        touched: dict[Node, None] = {}
        new: dict[int, Segment | None] = {}
        added: dict[int, list[Segment]] = {}
        for change in changes:
            touched[self._places[change.old.key].results] = None
            if change.added and change.new:
                added.setdefault(self._places[change.old.key].result.start, []).append(change.new)
            else:
                new[change.old.key] = change.new
        parts: dict[Node, list[Part]] = {}
        for results in touched:
            kept: list[Part] = []
            for member in results.members or ():
                own = [
                    (key, place) for key, place in enumerate(self._places) if place.result is member
                ]
                changed = any(key in new for key, _ in own)
                if not own or not changed:
                    kept.append(member)
                elif len(own) == 1:
                    key, place = own[0]
                    segment = new[key]
                    if segment is not None:
                        values |= self._values(place, self.segments[key], segment)
                        kept.append(member)
                else:
                    left = [(k, p, new.get(k, self.segments[k])) for k, p in own]
                    kept += [
                        self._copy(p, s, first=n == 0) for n, (_, p, s) in enumerate(left) if s
                    ]
                for segment in added.get(member.start, ()):
                    kept.append(self._copy(own[0][1], segment, first=False))
            parts[results] = kept
        return self.json.edited(values, parts)

    def _values(self, place: Place, old: Segment, new: Segment) -> dict[Node, Any]:
        values: dict[Node, Any] = {}
        if new.start_seconds != old.start_seconds:
            values[place.range_["start"]] = self.times.start_number(new.start_seconds)
        if new.stop_seconds != old.stop_seconds:
            values[place.range_["end"]] = self.times.stop_number(new.stop_seconds)
        if new.label != old.label:
            values[place.label] = new.label
        return values

    def _copy(self, place: Place, segment: Segment, *, first: bool) -> str:
        """A result like another, of one range."""
        start = self.times.start_number(segment.start_seconds)
        stop = self.times.stop_number(segment.stop_seconds)
        node = place.result.node
        values: dict[Node, Any] = {
            node["value"]["ranges"]: [{"start": start, "end": stop}],
            place.label: segment.label,
        }
        own_id = node.get("id")
        if own_id is not None and not first:
            values[own_id] = fingerprint(own_id.value, start, stop, segment.label)[:10]
        return self.json.rendered(node, values)


def _annotator(annotation: dict[str, Any], number: int | None) -> str | None:
    """Who made an annotation: an id, or an e-mail address."""
    who = annotation.get("completed_by")
    if isinstance(who, dict):
        who = who.get("email") or who.get("id")
    if who is None and number is not None:
        return f"annotation {number + 1}"
    return None if who is None else str(who)
