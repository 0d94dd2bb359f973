"""BORIS: projects (.boris, JSON with an event for each start and stop) and aggregated TSV.

A subject is a track. An observation of one media file is a video. State events of one subject and
behaviour come in pairs: the first starts it, the second ends it. Points have no length.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from csl_dist.data.documents.document import About, Document, Parsed
from csl_dist.data.documents.edits import Change
from csl_dist.data.documents.json_text import JsonText, Member, Node, Part
from csl_dist.data.documents.text import SourceText, decoded
from csl_dist.data.documents.times import Times
from csl_dist.data.formats.format import stem_of
from csl_dist.data.formats.table import TableDocument
from csl_dist.data.formats.tables import BORIS_TABLE
from csl_dist.errors import DataError

NO_SUBJECT = "No focal subject"
"""As BORIS names it in its tables; in projects the subject is empty."""


class BorisFormat:
    """Projects, or exports of aggregated events."""

    name: ClassVar[str] = "boris"
    patterns: ClassVar[tuple[str, ...]] = ("*.boris", "*.tsv")
    needs_rate: ClassVar[bool] = False

    def looks_like(self, head: str) -> bool:
        table = head.startswith("Observation id\t") and "Behavior type\t" in head
        return table or head.lstrip("\ufeff \r\n").startswith("{")

    def parse(self, data: bytes, file: str, config: Any) -> Document:
        source = decoded(data, file)
        if file.lower().endswith(".tsv"):
            return TableDocument(source, BORIS_TABLE)
        return BorisProject(source)


FORMAT = BorisFormat()


@dataclass(frozen=True, slots=True)
class Event:
    """One line of an observation's list of events."""

    member: Member
    seconds: float
    subject: str
    code: str
    modifiers: str


class BorisProject:
    """The state events of all observations of a media file."""

    def __init__(self, source: SourceText):
        self.json = JsonText(source)
        self.times = Times(unit="s", decimals=3)
        self.about: dict[str, About] = {}
        self.notes: list[str] = []
        root = self.json.root
        if not isinstance(root.value, dict) or not isinstance(root.value.get("observations"), dict):
            raise DataError(f"{source.file} is no BORIS project: it has no observations")
        kinds = self._behaviours(root)
        self._pairs: list[tuple[Event, Event]] = []
        self._lists: dict[str, Node] = {}
        parsed = Parsed(source.file)
        for member in root["observations"].members or ():
            self._read_observation(str(member.name), member.node, kinds, parsed)
        self.segments = parsed.segments
        if not self.segments:
            raise DataError(f"{source.file} has no state event in an observation of one media file")

    def _behaviours(self, root: Node) -> dict[str, bool]:
        """Whether a behaviour is a state, by its code."""
        found = root.value.get("behaviors_conf")
        if not isinstance(found, dict) or not found:
            raise DataError(
                f"{self.json.source.file} is no BORIS project: it has no behaviors_conf"
            )
        try:
            return {one["code"]: "state" in one["type"].lower() for one in found.values()}
        except (KeyError, TypeError, AttributeError) as error:
            where = self.json.where(root["behaviors_conf"])
            raise DataError(f"{where}: expected a code and a type in every behavior") from error

    def _read_observation(
        self, name: str, node: Node, kinds: Mapping[str, bool], parsed: Parsed
    ) -> None:
        content = node.value
        where = self.json.where(node)
        if not isinstance(content, dict) or not isinstance(content.get("events"), list):
            raise DataError(f"{where}: observation {name!r} has no list of events")
        media = (
            [file for own in (content.get("file") or {}).values() for file in own]
            if isinstance(content.get("file"), dict)
            else []
        )
        if not content["events"]:
            return
        if len(media) != 1:
            kind = "no media file" if not media else f"{len(media)} media files"
            self.notes.append(f"{where}: observation {name!r} has {kind} and is left out")
            return
        video = stem_of(media[0])
        if video in self.about:
            video = f"{video} {name}"
        lengths = (content.get("media_info") or {}).get("length") or {}
        self.about[video] = About(media=media[0], seconds=lengths.get(media[0]))
        self._lists[video] = node["events"]
        events = [self._event(member) for member in node["events"].members or ()]
        offset = float(content.get("time offset") or 0)
        open_events: dict[tuple[str, str, str], Event] = {}
        for event in sorted(events, key=lambda event: event.seconds):
            if event.code not in kinds:
                raise DataError(
                    f"{self.json.where(event.member.node)}: behavior {event.code!r} is not among "
                    "the project's behaviors"
                )
            if not kinds[event.code]:
                continue
            key = event.subject, event.code, event.modifiers
            start = open_events.pop(key, None)
            if start is None:
                open_events[key] = event
                continue
            parsed.add(
                video=video,
                start_seconds=start.seconds - offset,
                stop_seconds=event.seconds - offset,
                label=event.code,
                line=self.json.line(start.member.node),
                track=event.subject or NO_SUBJECT,
            )
            self._pairs.append((start, event))
        for event in open_events.values():
            raise DataError(
                f"{self.json.where(event.member.node)}: {event.code!r} of observation {name!r} "
                f"starts at {event.seconds:g} s and is never stopped; end it in BORIS"
            )

    def _event(self, member: Member) -> Event:
        value = member.node.value
        if (
            not isinstance(value, list)
            or len(value) < 3
            or isinstance(value[0], bool)
            or not isinstance(value[0], int | float)
            or not all(isinstance(part, str) for part in value[1:3])
        ):
            raise DataError(
                f"{self.json.where(member.node)}: expected an event [time, subject, code, …], got "
                f"{value!r}"
            )
        modifiers = str(value[3]) if len(value) > 3 else ""
        return Event(member, float(value[0]), value[1], value[2], modifiers)

    def edited(self, changes: Sequence[Change]) -> bytes:
        """Events stay where they are; new ones come in by their time."""
        values: dict[Node, Any] = {}
        removed: set[int] = set()
        added: dict[str, list[tuple[float, str]]] = {}
        for change in changes:
            events = self._pairs[change.old.key]
            if change.new is None:
                removed |= {event.member.start for event in events}
                continue
            new = change.new
            texts = []
            for event, seconds, before in (
                (events[0], new.start_seconds, change.old.start_seconds),
                (events[1], new.stop_seconds, change.old.stop_seconds),
            ):
                own: dict[Node, Any] = {}
                if seconds != before:
                    own[event.member.node[0]] = round(event.seconds + seconds - before, 6)
                if new.label != change.old.label:
                    own[event.member.node[2]] = new.label
                values |= {} if change.added else own
                at = event.seconds + seconds - before
                texts.append((at, self.json.rendered(event.member.node, own)))
            if change.added:
                added.setdefault(new.video, []).extend(texts)
        parts: dict[Node, list[Part]] = {}
        for video, events_node in self._lists.items():
            members = events_node.members or []
            kept: list[Part] = [m for m in members if m.start not in removed]
            for seconds, text in sorted(added.get(video, ())):
                after = [
                    i + 1
                    for i, part in enumerate(kept)
                    if not isinstance(part, str) and part.node.value[0] <= seconds
                ]
                kept.insert(after[-1] if after else 0, text)
            if len(kept) != len(members) or added.get(video):
                parts[events_node] = kept
        return self.json.edited(values, parts)
