"""Anvil: XML; `<el start end>` of a `<track>`, in seconds, with an `<attribute>` as label."""

from collections.abc import Sequence
from typing import Any, ClassVar

from csl_dist.data.documents.document import About, Parsed
from csl_dist.data.documents.edits import Change
from csl_dist.data.documents.segment import Segment
from csl_dist.data.documents.text import Patch, SourceText, decoded
from csl_dist.data.documents.times import Times, decimals_of
from csl_dist.data.documents.xml_text import Element, XmlText
from csl_dist.data.formats.format import stem_of
from csl_dist.errors import DataError


class AnvilFormat:
    """One file for a video and an annotator."""

    name: ClassVar[str] = "anvil"
    patterns: ClassVar[tuple[str, ...]] = ("*.anvil",)
    needs_rate: ClassVar[bool] = False

    def looks_like(self, head: str) -> bool:
        return "<annotation" in head

    def parse(self, data: bytes, file: str, config: Any) -> "AnvilDocument":
        return AnvilDocument(decoded(data, file))


FORMAT = AnvilFormat()


class AnvilDocument:
    """The elements of all primary tracks; others have no times of their own."""

    def __init__(self, source: SourceText):
        self.xml = XmlText(source)
        root = self.xml.root
        if root.tag != "annotation":
            raise DataError(f"{source.file} is no Anvil file: it begins with <{root.tag}>")
        body = root.find("body")
        tracks = body.find_all("track") if body else []
        if not tracks:
            raise DataError(f"{source.file} has no <track> in its <body>")
        head = root.find("head")
        video, media = self._video(head)
        coder = self._coder(head)
        elements = [(track, el) for track in tracks for el in track.find_all("el") if _timed(el)]
        texts = [
            value for _, el in elements for n in ("start", "end") if (value := el.attributes.get(n))
        ]
        self.times = Times(unit="s", decimals=decimals_of(texts))
        self.about = {video: About(media=media)}
        self.notes: list[str] = []
        self._places: list[tuple[Element, Element]] = []
        parsed = Parsed(source.file)
        for track, element in elements:
            self._read(track, element, parsed, video, coder)
        self.segments = parsed.segments
        if not self.segments:
            raise DataError(f"{source.file} has no <el> with a start, an end and an <attribute>")

    def _video(self, head: Element | None) -> tuple[str, str | None]:
        for video in head.find_all("video") if head else ():
            if video.attributes.get("src"):
                return stem_of(video.attributes["src"]), video.attributes["src"]
        return stem_of(self.xml.source.file), None

    @staticmethod
    def _coder(head: Element | None) -> str | None:
        infos = head.find_all("info") if head else []
        names = (i.text.strip() for i in infos if i.attributes.get("key") in ("coder", "annotator"))
        return next((name for name in names if name), None)

    def _read(
        self, track: Element, element: Element, parsed: Parsed, video: str, coder: str | None
    ) -> None:
        name = self.xml.attribute(track, "name")
        start = self.xml.attribute(element, "start")
        stop = self.xml.attribute(element, "end")
        attributes = element.find_all("attribute")
        if not attributes:
            raise DataError(f"{self.xml.where(element)}: <el> has no <attribute>, so no label")
        several = (
            len(
                {
                    a.attributes.get("name")
                    for el in track.find_all("el")
                    for a in el.find_all("attribute")
                }
            )
            > 1
        )
        for attribute in attributes:
            own = f"{name}/{self.xml.attribute(attribute, 'name')}" if several else name
            parsed.add(
                video=video,
                start_seconds=parsed.seconds(self.times.start, start, "start", element.line),
                stop_seconds=parsed.seconds(self.times.stop, stop, "end", element.line),
                label=attribute.text,
                line=element.line,
                track=own,
                annotator=coder,
            )
            self._places.append((element, attribute))

    def edited(self, changes: Sequence[Change]) -> bytes:
        patches: list[Patch] = []
        indices = [int(e.attributes.get("index", 0)) for e, _ in self._places]
        next_index = max(indices, default=-1) + 1
        for change in changes:
            element, attribute = self._places[change.old.key]
            if change.new is None:
                patches.append(self.xml.without(element))
                continue
            own = self._own_patches(element, attribute, change.old, change.new)
            if change.added:
                if "index" in element.attributes:
                    own.append(self.xml.set_attribute(element, "index", str(next_index)))
                    next_index += 1
                patches.append(Patch(element.stop, element.stop, self.xml.copy(element, own)))
            else:
                patches += own
        return self.xml.source.patched(patches)

    def _own_patches(
        self, element: Element, attribute: Element, old: Segment, new: Segment
    ) -> list[Patch]:
        patches = []
        if new.start_seconds != old.start_seconds:
            text = self.times.start_text(new.start_seconds)
            patches.append(self.xml.set_attribute(element, "start", text))
        if new.stop_seconds != old.stop_seconds:
            text = self.times.stop_text(new.stop_seconds)
            patches.append(self.xml.set_attribute(element, "end", text))
        if new.label != old.label:
            patches.append(self.xml.set_text(attribute, new.label))
        return patches


def _timed(element: Element) -> bool:
    """Elements of singleton and subdivision tracks point to others instead."""
    return "start" in element.attributes or "end" in element.attributes
