"""Where corrected labels are written: always below the folder that was asked for.

No file that the dataset or the audit reads is ever written to, whatever links and `..` its path
goes through, and no two label files become one.
"""

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from csl_dist.data.files import AnyPath, is_url
from csl_dist.errors import DataError


class OutputFolder:
    """A folder to write to, and the files that must stay as they are."""

    def __init__(self, path: Path, inputs: Iterable[str]):
        files = set(inputs)
        self.path = path
        self._real_inputs = {os.path.realpath(file) for file in files}
        # Two names of one file, by a hard link or in another case, have one identity.
        self._identities = {found for file in files if (found := _identity(file)) is not None}

    def __repr__(self) -> str:
        return f"OutputFolder({str(self.path)!r}, {len(self._real_inputs)} inputs)"

    def file(self, place: Path) -> Path:
        """The path of a file in the folder; DataError where writing there would do harm."""
        path = self.path / place
        real = os.path.realpath(path)
        if real in self._real_inputs or _identity(path) in self._identities:
            raise DataError(
                f"{path} is a file that the audit reads, and is not overwritten; give another "
                f"folder than {self.path}"
            )
        if not Path(real).is_relative_to(os.path.realpath(self.path)):
            raise DataError(
                f"{path} leads to {real}, which is outside {self.path}; remove the link, or give "
                "another folder"
            )
        return path


def put_bytes(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def found_at(originals: Iterable[str], folder: AnyPath, path: Path) -> dict[str, Path]:
    """Corrected files at a path, by the original: at its place, or of its unique name."""
    where = places(set(originals), folder)
    num_named = Counter(place.name for place in where.values())
    only = {file: place.name for file, place in where.items() if num_named[place.name] == 1}
    if path.is_file():
        return {file: path for file, name in only.items() if name == path.name or len(where) == 1}
    found = {}
    for file, place in where.items():
        candidates = (path / place, path / only.get(file, str(place)))
        corrected = next((one for one in candidates if one.is_file()), None)
        if corrected is not None:
            found[file] = corrected
    return found


def places(files: Iterable[str], folder: AnyPath) -> dict[str, Path]:
    """Where each label file stands in a folder of corrected ones.

    As deep as below the dataset's folder, or, of files elsewhere, as below their common parent.
    Where that would make one of two files, as deep as below the common parent of all.
    """
    if is_url(folder):
        return {
            file: Path(str(PurePosixPath(file).relative_to(PurePosixPath(str(folder)))))
            for file in files
        }
    folders = (_without_dots(str(folder)), Path(os.path.realpath(str(folder))))
    inside: dict[str, Path] = {}
    outside: dict[str, Path] = {}
    for file in files:
        path = _without_dots(file)
        base = next((base for base in folders if path.is_relative_to(base)), None)
        if base is None:
            outside[file] = path
        else:
            inside[file] = path.relative_to(base)
    found = inside | _below_common_parent(outside)
    if _keeps_apart(found):
        return found
    return _below_common_parent({file: Path(os.path.realpath(file)) for file in found})


def _without_dots(file: str) -> Path:
    """The absolute path of a file; links are followed only where `..` makes that necessary."""
    path = Path(file).absolute()
    return Path(os.path.realpath(path)) if ".." in path.parts else path


def _below_common_parent(paths: dict[str, Path]) -> dict[str, Path]:
    if not paths:
        return {}
    parent = os.path.commonpath([path.parent for path in paths.values()])
    return {file: path.relative_to(parent) for file, path in paths.items()}


def _keeps_apart(found: dict[str, Path]) -> bool:
    """Whether every place is of one file; a file may be listed under several names."""
    num_places = len(set(found.values()))
    if num_places == len(found):
        return True
    return num_places == len({(place, os.path.realpath(file)) for file, place in found.items()})


def _identity(file: str | Path) -> tuple[int, int] | None:
    try:
        facts = os.stat(file)
    except OSError:
        return None
    return facts.st_dev, facts.st_ino
