"""VIA 3: a project (JSON) whose metadata have `z: [start, stop]` in seconds and values `av`.

An attribute of temporal segments is a track. Its value is the label itself, or the number of one of
the attribute's options.
"""

import json
from typing import Any, ClassVar

from csl_dist.data.documents.document import About, Parsed
from csl_dist.data.documents.json_text import JsonText, Member, Node
from csl_dist.data.documents.listed import ListedDocument, Place
from csl_dist.data.documents.segment import Segment
from csl_dist.data.documents.text import SourceText, decoded
from csl_dist.data.documents.times import Times
from csl_dist.data.formats.format import stem_of
from csl_dist.errors import DataError
from csl_dist.types import fingerprint

SECTIONS = ("attribute", "file", "metadata", "view")


class ViaFormat:
    """One project with several files."""

    name: ClassVar[str] = "via"
    patterns: ClassVar[tuple[str, ...]] = ("*.json",)
    needs_rate: ClassVar[bool] = False

    def looks_like(self, head: str) -> bool:
        return '"project"' in head and ('"vid_list"' in head or '"anchor_id"' in head)

    def parse(self, data: bytes, file: str, config: Any) -> "ViaDocument":
        return ViaDocument(decoded(data, file))


FORMAT = ViaFormat()


class ViaDocument(ListedDocument):
    """The temporal segments of all files of a project."""

    def __init__(self, source: SourceText):
        super().__init__(JsonText(source), Times(unit="s"))
        value = self.json.root.value
        missing = [
            n for n in SECTIONS if not (isinstance(value, dict) and isinstance(value.get(n), dict))
        ]
        if missing:
            raise DataError(f"{source.file} is no VIA 3 project: it has no {', '.join(missing)}")
        self.attributes: dict[str, dict[str, Any]] = value["attribute"]
        parsed = Parsed(source.file)
        num_others = 0
        for member in self.json.root["metadata"].members or ():
            num_others += self._read(member, parsed)
        self.segments = parsed.segments
        if num_others:
            self.notes.append(f"{source.file}: {num_others:,} regions and moments have no length")
        if not self.segments:
            raise DataError(f"{source.file} has no temporal segment")

    def _read(self, member: Member, parsed: Parsed) -> int:
        node = member.node
        where = self.json.where(node)
        value = node.value
        if not isinstance(value, dict) or not {"vid", "z", "av"} <= value.keys():
            raise DataError(f"{where}: expected vid, z and av, got {value!r:.80}")
        times = value["z"]
        if not isinstance(times, list) or not isinstance(value["av"], dict):
            raise DataError(f"{where}: z must be a list of seconds and av an object")
        if len(times) != 2:
            return 1
        media = self._media(str(value["vid"]), where)
        video = stem_of(media)
        self.about.setdefault(video, About(media=media))
        line = self.json.line(node)
        for own in node["av"].members or ():
            attribute = self.attributes.get(str(own.name))
            if attribute is None:
                raise DataError(f"{where}: there is no attribute {own.name!r}")
            options = attribute.get("options") or {}
            parsed.add(
                video=video,
                start_seconds=parsed.seconds(self.times.start, times[0], "the start", line),
                stop_seconds=parsed.seconds(self.times.stop, times[1], "the end", line),
                label=str(options.get(own.node.value, own.node.value)),
                line=line,
                track=str(attribute.get("aname") or own.name),
            )
            self.places.append(
                Place(self.json.root["metadata"], member, node["z"][0], node["z"][1], own.node)
            )
        return 0

    def _media(self, view: str, where: str) -> str:
        content = self.json.root.value
        files = (content["view"].get(view) or {}).get("fid_list") or [None]
        file = content["file"].get(str(files[0]))
        if not isinstance(file, dict) or not (file.get("src") or file.get("fname")):
            raise DataError(f"{where}: view {view!r} names no file")
        return str(file.get("fname") or file["src"])

    def label_values(self, place: Place, label: str) -> dict[Node, Any]:
        """The label, or the number of the option that it is."""
        name = next(m.name for m in place.member.node["av"].members or () if m.node is place.label)
        options = self.attributes[str(name)].get("options") or {}
        number = next((n for n, text in options.items() if text == label), None)
        return {place.label: label if number is None else number}

    def new_name(self, place: Place, new: Segment) -> str:
        view = place.member.node.value["vid"]
        digest = fingerprint(place.member.name, new.start_seconds, new.label)[:8]
        return json.dumps(f"{view}_{digest}")[1:-1]
