"""XML with places: elements know where their tags and attributes stand."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from csl_dist.data.documents.text import Patch, SourceText
from csl_dist.errors import DataError

START_TAG = re.compile(r"<(?:[^<>\"']|\"[^\"]*\"|'[^']*')*>")


@dataclass(slots=True, eq=False)
class Element:
    """An element: its tag, attributes and text, and where it stands."""

    tag: str
    attributes: dict[str, str]
    line: int
    start: int
    opened: int = 0
    """End of its start tag."""
    closing: int = 0
    """Start of its end tag; where it has none, as `<a/>`, the end of its start tag."""
    stop: int = 0
    children: list["Element"] = field(default_factory=list)
    text: str = ""

    def find(self, tag: str) -> "Element | None":
        return next((child for child in self.children if child.tag == tag), None)

    def find_all(self, tag: str) -> list["Element"]:
        return [child for child in self.children if child.tag == tag]

    def walk(self) -> Iterator["Element"]:
        yield self
        for child in self.children:
            yield from child.walk()


class XmlText:
    """An XML file that can be edited."""

    def __init__(self, source: SourceText):
        self.source = source
        self.text = source.text
        data = self.text.encode()
        # Expat counts bytes; the places of all else are counted in characters.
        starts = np.flatnonzero((np.frombuffer(data, np.uint8) & 0xC0) != 0x80)
        parser = expat.ParserCreate("utf-8")
        parser.buffer_text = True
        top = Element("", {}, 0, 0)
        path = [top]

        def place() -> int:
            return int(np.searchsorted(starts, parser.CurrentByteIndex))

        def opened(tag: str, attributes: dict[str, str]) -> None:
            element = Element(tag, attributes, parser.CurrentLineNumber, place())
            found = START_TAG.match(self.text, element.start)
            assert found is not None
            element.opened = found.end()
            path[-1].children.append(element)
            path.append(element)

        def closed(_: str) -> None:
            element = path.pop()
            element.closing = element.stop = element.opened
            # Of <a/>, expat does not tell the end.
            if not self.text.endswith("/>", element.start, element.opened):
                element.closing = place()
                element.stop = self.text.index(">", element.closing) + 1

        def data_found(text: str) -> None:
            path[-1].text += text

        parser.StartElementHandler = opened
        parser.EndElementHandler = closed
        parser.CharacterDataHandler = data_found
        try:
            parser.Parse(data, True)
        except expat.ExpatError as error:
            raise DataError(f"{source.file} is not valid XML: {error}") from error
        self.root = top.children[0]

    def where(self, element: Element) -> str:
        return f"{self.source.file}:{element.line}"

    def attribute(self, element: Element, name: str) -> str:
        """An attribute that must be there."""
        if name not in element.attributes:
            raise DataError(f"{self.where(element)}: <{element.tag}> has no {name}")
        return element.attributes[name]

    def set_attribute(self, element: Element, name: str, value: str) -> Patch:
        """The change of one attribute, which is there."""
        found = re.compile(rf"\s{re.escape(name)}\s*=\s*(\"[^\"]*\"|'[^']*')").search(
            self.text, element.start, element.opened
        )
        assert found is not None
        return Patch(found.start(1), found.end(1), quoteattr(value))

    def set_text(self, element: Element, value: str) -> Patch:
        """The change of all text inside an element."""
        if element.stop == element.opened:
            start_tag = self.text[element.start : element.opened - 2].rstrip()
            return Patch(
                element.start, element.stop, f"{start_tag}>{escape(value)}</{element.tag}>"
            )
        return Patch(element.opened, element.closing, escape(value))

    def with_blank(self, element: Element) -> tuple[int, int]:
        """An element with the blanks before it: what to remove, or to repeat for one more."""
        start = element.start
        while start and self.text[start - 1] in " \t\r\n":
            start -= 1
        return start, element.stop

    def without(self, element: Element) -> Patch:
        start, stop = self.with_blank(element)
        return Patch(start, stop, "")

    def copy(self, element: Element, patches: list[Patch]) -> str:
        """The text of an element and the blanks before it, with patches inside it applied."""
        start, stop = self.with_blank(element)
        pieces, at = [], start
        for patch in sorted(patches, key=lambda patch: patch.start):
            pieces += [self.text[at : patch.start], patch.text]
            at = patch.stop
        return "".join([*pieces, self.text[at:stop]])
