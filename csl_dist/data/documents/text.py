"""Text of a label file, with its encoding, so that what is not edited is written as it was read."""

import codecs
import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from csl_dist.errors import DataError

BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
DECLARED = re.compile(rb"""^\s*<\?xml[^>]*encoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")


@dataclass(frozen=True, slots=True)
class Patch:
    """Another text in place of `[start, stop)`."""

    start: int
    stop: int
    text: str


@dataclass(frozen=True)
class SourceText:
    """What a file holds."""

    file: str
    text: str
    encoding: str = "utf-8"
    bom: bytes = b""

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(found.end() for found in re.finditer(r"\r\n|\n|\r", self.text))]

    def line(self, place: int) -> int:
        """Line number of a place, from 1."""
        return bisect_right(self._line_starts, place)

    def where(self, place: int) -> str:
        """File and line, as errors name them."""
        return f"{self.file}:{self.line(place)}"

    @cached_property
    def newline(self) -> str:
        found = re.search(r"\r\n|\n|\r", self.text)
        return found.group() if found else "\n"

    def patched(self, patches: Iterable[Patch]) -> bytes:
        """The file with some places changed, which must not overlap."""
        pieces: list[str] = []
        at = 0
        for patch in sorted(patches, key=lambda patch: (patch.start, patch.stop)):
            assert patch.start >= at, "two edits of one place"
            pieces += [self.text[at : patch.start], patch.text]
            at = patch.stop
        return self.encoded("".join([*pieces, self.text[at:]]))

    def encoded(self, text: str) -> bytes:
        try:
            return self.bom + text.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise DataError(
                f"{self.file} is written in {self.encoding}, which has no {text[error.start]!r}; "
                "convert the file to UTF-8"
            ) from error


def decoded(data: bytes, file: str) -> SourceText:
    """The text of a file: UTF-8, or what a byte-order mark or an XML declaration says."""
    for bom, encoding in BOMS:
        if data.startswith(bom):
            return SourceText(file, _text(data[len(bom) :], encoding, file), encoding, bom)
    declared = DECLARED.match(data[:200])
    encoding = declared.group(1).decode().lower() if declared else "utf-8"
    return SourceText(file, _text(data, encoding, file), encoding)


def _text(data: bytes, encoding: str, file: str) -> str:
    try:
        return data.decode(encoding)
    except (UnicodeDecodeError, LookupError) as error:
        raise DataError(f"{file} is not {encoding.upper()} text ({error}); convert it") from error
