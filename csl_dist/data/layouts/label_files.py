"""Which files at a path hold labels in a format."""

from pathlib import PurePosixPath

from csl_dist.data.documents.json_text import JsonText
from csl_dist.data.documents.text import decoded
from csl_dist.data.documents.xml_text import XmlText
from csl_dist.data.formats.format import Format
from csl_dist.errors import DataError
from csl_dist.storage.files import AnyPath, is_url, open_file, read_bytes

SHARED_SUFFIXES = (".json", ".xml", ".csv", ".tsv", ".txt")
"""Endings of which a folder may hold files of another kind; these are looked into."""
HEAD_BYTES = 1 << 18
"""Bytes of a file that tell its format."""


def files_at(path: AnyPath, format_: Format, *, looked_into: bool = False) -> list[AnyPath]:
    """Label files of a format: the one at a path, or all below it.

    With `looked_into`, all must look like the format. Else a file is left out only if others share
    its ending and it is well-formed but of another kind: one that is broken is not passed over.
    """
    if path.is_file():
        fits = any(PurePosixPath(path.name).match(PurePosixPath(p).name) for p in format_.patterns)
        return [path] if not looked_into or (fits and _looks_like(path, format_)) else []
    if not path.is_dir():
        return []
    unlike: list[AnyPath] = []
    for pattern in format_.patterns:
        files: list[AnyPath] = sorted(path.rglob(pattern), key=str)
        files = [file for file in files if file.is_file() and not file.name.startswith(".")]
        alike = [file for file in files if _looks_like(file, format_)]
        if alike and not looked_into:
            own_folder = "/" in pattern
            return [f for f in files if f in alike or own_folder or not _is_other_kind(f)]
        if alike:
            return alike
        unlike = unlike or files
    return [] if looked_into else unlike


def _looks_like(file: AnyPath, format_: Format) -> bool:
    return format_.looks_like(_head(file).decode("utf-8", errors="replace"))


def _head(file: AnyPath) -> bytes:
    if is_url(file):  # one request, where opening would ask for the length first
        return read_bytes(file)[:HEAD_BYTES]
    with open_file(str(file)) as opened:
        return bytes(opened.read(HEAD_BYTES))


def _is_other_kind(file: AnyPath) -> bool:
    """Whether a file that does not look like labels is a whole file of something else."""
    suffix = file.suffix.lower()
    if suffix not in SHARED_SUFFIXES:
        return False
    source = None
    try:
        source = decoded(read_bytes(file), str(file))
        if suffix == ".json":
            JsonText(source)
        elif suffix == ".xml":
            XmlText(source)
    except DataError:
        return False
    return bool(source.text.strip())
