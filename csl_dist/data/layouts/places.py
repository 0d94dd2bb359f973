"""Where corrected label files stand in a folder: no two label files become one."""

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from csl_dist.storage.files import AnyPath, is_url


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
