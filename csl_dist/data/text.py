"""Label and list files as people write them: with a BOM, CRLF, trailing blanks."""

import os
import stat

import numpy as np

from csl_dist.errors import DataError
from csl_dist.storage.files import AnyPath, read_bytes
from csl_dist.types import UNLABELLED, IntArray

UNLABELLED_NAMES = ("", "-")
"""What stands for a frame without a label; at the end of a file, where blank lines do not count,
only the second does."""


def require_file(path: str | AnyPath) -> None:
    """Refuses a pipe or a device, which reading would wait for, perhaps for ever."""
    try:
        mode = os.stat(str(path)).st_mode
    except OSError:
        return  # whoever opens it says what is wrong
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        raise DataError(f"{path} is a pipe, a socket or a device; give a file")


def read_lines(path: str | AnyPath) -> list[str]:
    """The stripped lines of a file; blank lines at its end do not count."""
    require_file(path)
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text ({error}); convert it") from error
    lines = [line.strip() for line in text.splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def class_ids(
    names: list[str], classes: tuple[str, ...], path: str, *, first_line: int = 1
) -> IntArray:
    """Ids of class names; an unknown one is named with its line."""
    ids = dict.fromkeys(UNLABELLED_NAMES, UNLABELLED) | {name: i for i, name in enumerate(classes)}
    try:
        return np.array([ids[name] for name in names], dtype=np.int64)
    except KeyError as error:
        unknown = error.args[0]
        known = ", ".join(classes[:12]) + (", …" if len(classes) > 12 else "")
        raise DataError(
            f"{path}:{names.index(unknown) + first_line}: unknown class {unknown!r}; "
            f"the classes are {known}"
        ) from None
