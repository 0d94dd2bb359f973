"""Format: a form in which flags or trajectories are written for another tool."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from csl_dist.audit.reader import Audit
from csl_dist.storage.output import OutputFolder


def _no_bytes(audit: Audit) -> Iterator[int]:
    yield from ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One format, as its module defines it."""

    name: str
    """As `csl export --format` names it."""
    suffix: str
    """Of its file; empty if the format is a folder."""
    inside: str = ""
    """The suffix of the files in the folder, if it is one."""
    write: Callable[[Audit, OutputFolder, str], str]
    """Writes an audit to a folder, to the file of a name if the format is a file; returns a
    sentence that says what was written."""
    video_bytes: Callable[[Audit], Iterator[int]] = _no_bytes
    """Bytes of one video after the other, for formats that may be too large for a download."""
