"""Where corrected label files stand in a folder: no two label files become one."""

import os
from collections.abc import Iterable
from pathlib import Path


def places(files: Iterable[str], folder: Path) -> dict[str, Path]:
    """Where each label file stands in a folder of corrected ones.

    As deep as below the dataset's folder, or, of files elsewhere, as below their common parent.
    Where that would make one of two files, as deep as below the common parent of all.
    """
    folders = (_without_dots(str(folder)), Path(os.path.realpath(folder)))
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
