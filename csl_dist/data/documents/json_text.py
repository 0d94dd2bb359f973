"""JSON with places: values know where they stand, so that single ones can be written anew."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from json import decoder
from typing import Any

from csl_dist.data.documents.text import SourceText
from csl_dist.errors import DataError

SCAN_STRING: Any = decoder.scanstring  # type: ignore[attr-defined]
"""Reads a string from behind its first quote, as `json` itself does."""
BLANK = re.compile(r"[ \t\r\n]*")
SCALAR = re.compile(r"[^,\]}\s]+")


@dataclass(slots=True, eq=False)
class Node:
    """A value and where it stands; of an object or a list, its members."""

    value: Any
    start: int
    stop: int
    members: "list[Member] | None" = None

    def __getitem__(self, name: str | int) -> "Node":
        assert self.members is not None
        if isinstance(name, int):
            return self.members[name].node
        return next(member.node for member in self.members if member.name == name)

    def __iter__(self) -> Iterator["Node"]:
        return (member.node for member in self.members or ())

    def get(self, name: str) -> "Node | None":
        return next((m.node for m in self.members or () if m.name == name), None)


@dataclass(slots=True, eq=False)
class Member:
    """An item of a list, or a name and value of an object, from `start`."""

    start: int
    node: Node
    name: str | None = None


Part = Member | str
"""A member as it is, or the text of a new one."""


class JsonText:
    """A JSON file that can be edited."""

    def __init__(self, source: SourceText):
        self.source = source
        self.text = source.text
        try:
            json.loads(self.text)
        except ValueError as error:
            raise DataError(f"{source.file} is not valid JSON: {error}") from error
        except RecursionError:
            raise DataError(
                f"{source.file} is not JSON that can be read: it nests too deep"
            ) from None
        self.root, _ = self._node(self._after_blank(0))

    def where(self, node: Node) -> str:
        return self.source.where(node.start)

    def line(self, node: Node) -> int:
        return self.source.line(node.start)

    def rendered(
        self,
        node: Node,
        values: Mapping[Node, Any],
        parts: Mapping[Node, Sequence[Part]] | None = None,
    ) -> str:
        """The text of a node with other values, and with other members of some containers."""
        if node in values:
            return json.dumps(values[node], ensure_ascii=self.text.isascii())
        if node.members is None:
            return self.text[node.start : node.stop]
        wanted = (parts or {}).get(node)
        if wanted is not None:
            return self._with_parts(node, wanted, values, parts)
        pieces, at = [], node.start
        for member in node.members:
            pieces += [self.text[at : member.node.start], self.rendered(member.node, values, parts)]
            at = member.node.stop
        return "".join([*pieces, self.text[at : node.stop]])

    def edited(
        self, values: Mapping[Node, Any], parts: Mapping[Node, Sequence[Part]] | None = None
    ) -> bytes:
        """The whole file."""
        head, tail = self.text[: self.root.start], self.text[self.root.stop :]
        return self.source.encoded(head + self.rendered(self.root, values, parts) + tail)

    def _with_parts(
        self,
        node: Node,
        wanted: Sequence[Part],
        values: Mapping[Node, Any],
        parts: Mapping[Node, Sequence[Part]] | None,
    ) -> str:
        members = node.members
        assert members
        lead = self.text[node.start + 1 : members[0].start]
        tail = self.text[members[-1].node.stop : node.stop - 1]
        between = "," + lead
        if len(members) > 1:
            between = self.text[members[0].node.stop : members[1].start]
        texts = [
            part
            if isinstance(part, str)
            else self.text[part.start : part.node.start] + self.rendered(part.node, values, parts)
            for part in wanted
        ]
        opening, closing = self.text[node.start], self.text[node.stop - 1]
        if not texts:
            return opening + closing
        return opening + lead + between.join(texts) + tail + closing

    def _after_blank(self, at: int) -> int:
        found = BLANK.match(self.text, at)
        assert found is not None
        return found.end()

    def _node(self, at: int) -> tuple[Node, int]:
        """The value at a place, and the place after it. The text is known to be valid."""
        first = self.text[at]
        if first in "[{":
            return self._container(at, named=first == "{")
        if first == '"':
            value, stop = SCAN_STRING(self.text, at + 1, True)
            return Node(value, at, stop), stop
        found = SCALAR.match(self.text, at)
        assert found is not None
        return Node(json.loads(found.group()), at, found.end()), found.end()

    def _container(self, start: int, *, named: bool) -> tuple[Node, int]:
        members: list[Member] = []
        at = self._after_blank(start + 1)
        while self.text[at] not in "]}":
            first, name = at, None
            if named:
                name, at = SCAN_STRING(self.text, at + 1, True)
                at = self._after_blank(self._after_blank(at) + 1)
            node, at = self._node(at)
            members.append(Member(first, node, name))
            at = self._after_blank(at)
            if self.text[at] == ",":
                at = self._after_blank(at + 1)
        value: Any = [m.node.value for m in members]
        if named:
            value = {member.name: member.node.value for member in members}
        return Node(value, start, at + 1, members), at + 1
