"""What a format is: one object that knows its files, reads them, and says what they look like."""

from pathlib import PurePosixPath
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from csl_dist.data.documents.document import Document
from csl_dist.data.media.sources import VIDEO_SUFFIXES


class Format(Protocol):
    """One kind of label file."""

    @property
    def name(self) -> str: ...

    @property
    def patterns(self) -> tuple[str, ...]:
        """Names of its files."""
        ...

    @property
    def needs_rate(self) -> bool:
        """Whether its files count frames and do not say how many there are in a second."""
        ...

    def looks_like(self, head: str) -> bool:
        """Whether a file of such a name that begins so is of this format."""
        ...

    def parse(self, data: bytes, file: str, config: Any) -> Document:
        """The labels in a file; DataError with its line where it has another form."""
        ...


def stem_of(name: str) -> str:
    """The last part of a path or URL, without its ending."""
    path = unquote(urlsplit(name).path) if "://" in name else name
    return PurePosixPath(path.replace("\\", "/")).stem


def without_media_suffix(name: str) -> str:
    """A name that may be that of a video file, without the ending of one."""
    stem, dot, ending = name.rpartition(".")
    return stem if stem and f"{dot}{ending}".lower() in VIDEO_SUFFIXES else name
