"""EgoPER's `annotation.json`: for each task and video, lists of times, actions and action types.

As its authors' code reads it: times are frames at 10 fps, cut off and not rounded; a segment of no
length counts for nothing; an action of the number `len(action2idx)` is an addition, which no name
stands for.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from csl_dist.data.documents.document import About, Parsed
from csl_dist.data.documents.edits import Change
from csl_dist.data.documents.json_text import JsonText, Node, Part
from csl_dist.data.documents.segment import Segment
from csl_dist.data.documents.text import SourceText, decoded
from csl_dist.data.documents.times import Times
from csl_dist.errors import DataError

ADDITION = "addition"
FRAMES_FPS = 10


class EgoperFormat:
    """One file for all tasks."""

    name: ClassVar[str] = "egoper"
    patterns: ClassVar[tuple[str, ...]] = ("annotation.json",)
    needs_rate: ClassVar[bool] = False

    def looks_like(self, head: str) -> bool:
        return '"segments"' in head and '"time_stamp"' in head

    def parse(self, data: bytes, file: str, config: Any) -> "EgoperDocument":
        return EgoperDocument(decoded(data, file), config.task)


FORMAT = EgoperFormat()


class EgoperDocument:
    """The segments of one task."""

    def __init__(self, source: SourceText, task: str | None):
        self.json = JsonText(source)
        self.times = Times(unit="s")
        self.notes: list[str] = []
        self.about: dict[str, About] = {}
        root = self.json.root
        if not isinstance(root.value, dict) or task not in root.value:
            names = ", ".join(root.value) if isinstance(root.value, dict) else "none"
            raise DataError(f"{source.file} has no task {task!r}; it has {names}")
        content = root[str(task)]
        actions = content.value.get("action2idx") if isinstance(content.value, dict) else None
        entries = content.get("segments") if actions else None
        if not isinstance(actions, dict) or entries is None or not isinstance(entries.value, list):
            raise DataError(f"{source.file}: task {task!r} has no action2idx or no segments")
        try:
            self.names = {int(number): name for name, number in actions.items()}
        except (TypeError, ValueError) as error:
            raise DataError(
                f"{source.file}: task {task!r}: action2idx must have a number for each name "
                f"({error})"
            ) from error
        self._addition = len(self.names)
        self._lists: list[tuple[Node, int]] = []
        """Labels of each segment's video, and its place in them."""
        self.action_types: list[int] = []
        parsed = Parsed(source.file)
        for entry in entries:
            self._read(entry, parsed)
        self.segments: Sequence[Segment] = parsed.segments

    @property
    def classes(self) -> tuple[str, ...]:
        """Names by their numbers; additions come last, where there are any."""
        return tuple(self.names[number] for number in sorted(self.names))

    def _read(self, entry: Node, parsed: Parsed) -> None:
        value = entry.value
        where = self.json.where(entry)
        labels = value.get("labels") if isinstance(value, dict) else None
        if not isinstance(labels, dict) or "video_id" not in value:
            raise DataError(f"{where}: expected a video_id and labels, got {value!r:.60}")
        video = str(value["video_id"])
        columns = ("time_stamp", "action", "action_type")
        lists: list[Any] = [labels.get(name) for name in columns]
        if not all(isinstance(one, list) for one in lists):
            raise DataError(f"{where}: video {video!r} lacks time_stamp, action or action_type")
        times, actions, types = lists
        if not len(times) == len(actions) == len(types):
            raise DataError(
                f"{where}: video {video!r} has {len(times)} time stamps but {len(actions)} actions "
                f"and {len(types)} action types"
            )
        self.about[video] = About()
        node = entry["labels"]
        for number, (pair, action, kind) in enumerate(zip(times, actions, types, strict=True)):
            line = self.json.line(node["time_stamp"][number])
            try:
                start, stop = (int(float(seconds) * FRAMES_FPS) / FRAMES_FPS for seconds in pair)
                label, kind = self._name(int(action)), int(kind)
            except (TypeError, ValueError) as error:
                raise DataError(
                    f"{parsed.file}:{line}: video {video!r}, segment {number}: expected two "
                    f"seconds, an action and its type, got {pair!r}, {action!r}, {kind!r}"
                ) from error
            except KeyError:
                raise DataError(
                    f"{parsed.file}:{line}: video {video!r} has an action {action!r} that "
                    "action2idx lacks"
                ) from None
            parsed.add(
                video=video,
                start_seconds=start,
                stop_seconds=stop,
                label=label,
                line=line,
                may_be_empty=True,
            )
            self._lists.append((node, number))
            self.action_types.append(kind)

    def _name(self, number: int) -> str:
        if number == self._addition:
            self.names.setdefault(number, ADDITION)
        return self.names[number]

    def edited(self, changes: Sequence[Change]) -> bytes:
        """All lists of a video change alike. A segment with a new action was done rightly."""
        values: dict[Node, Any] = {}
        removed: dict[Node, set[int]] = {}
        added: dict[Node, dict[int, list[tuple[Segment, Segment]]]] = {}
        touched: dict[Node, None] = {}
        for change in changes:
            node, number = self._lists[change.old.key]
            if change.new is None:
                removed.setdefault(node, set()).add(number)
                touched[node] = None
            elif change.added:
                own = added.setdefault(node, {}).setdefault(number, [])
                own.append((change.old, change.new))
                touched[node] = None
            else:
                values |= self._values(node, number, change.old, change.new)
        parts: dict[Node, list[Part]] = {}
        for node in touched:
            length = len(node["time_stamp"].value)
            for column in node:
                if not isinstance(column.value, list) or len(column.value) != length:
                    continue
                parts[column] = []
                for number, member in enumerate(column.members or ()):
                    if number not in removed.get(node, ()):
                        parts[column].append(member)
                    for old, new in added.get(node, {}).get(number, ()):
                        own_values = self._values(node, number, old, new)
                        parts[column].append(self.json.rendered(member.node, own_values))
        return self.json.edited(values, parts)

    def _values(self, node: Node, number: int, old: Segment, new: Segment) -> dict[Node, Any]:
        values: dict[Node, Any] = {}
        pair = node["time_stamp"][number]
        if new.start_seconds != old.start_seconds:
            values[pair[0]] = self.times.start_number(new.start_seconds)
        if new.stop_seconds != old.stop_seconds:
            values[pair[1]] = self.times.stop_number(new.stop_seconds)
        if new.label != old.label:
            index = next(n for n, name in self.names.items() if name == new.label)
            for name, value in (("action", index), ("action_type", 0)):
                own = node[name][number]
                values[own] = str(value) if isinstance(own.value, str) else value
            descriptions = node.get("error_description")
            if descriptions is not None and number < len(descriptions.members or ()):
                values[descriptions[number]] = ""
        return values
