"""Where a command may write what it was asked for: always below the folder that was named.

No file that the dataset or the run is read from is ever written to, whatever links and `..` its
path goes through. Everything that writes to a path of the user's asks an OutputFolder for it.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from csl_dist.errors import ConfigError, DataError


class OutputFolder:
    """A folder to write to, and what must stay as it is."""

    def __init__(self, path: Path, inputs: Iterable[str], kept: Iterable[str] = ()):
        """`inputs` are files and folders that are read, `kept` others that stay as they are.

        Of folders, all that is in them stays.
        """
        files = {*inputs, *kept}
        self.path = path
        self._real_inputs = {os.path.realpath(file) for file in files}
        # Two names of one file, by a hard link or in another case, have one identity.
        self._identities = {found for file in files if (found := _identity(file)) is not None}

    def __repr__(self) -> str:
        return f"OutputFolder({str(self.path)!r}, {len(self._real_inputs)} inputs)"

    def file(self, place: str | Path) -> Path:
        """The path of a file in the folder; DataError where writing there would do harm."""
        path = self.path / place
        self._refuse_input(path)
        self._refuse_outside(path, os.path.realpath(path))
        return path

    def link(self, place: str | Path, target: str) -> None:
        """Makes a link in the folder to a file elsewhere; replaces another link, and no file."""
        path = self.path / place
        self._refuse_outside(path, os.path.join(os.path.realpath(path.parent), path.name))
        if path.is_symlink():
            path.unlink()
        elif path.exists():
            raise DataError(
                f"{path} is a file, and is not replaced by a link; give another folder than "
                f"{self.path}"
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)

    def _refuse_input(self, path: Path) -> None:
        real = Path(os.path.realpath(path))
        is_read = any(str(part) in self._real_inputs for part in (real, *real.parents))
        if is_read or _identity(path) in self._identities:
            raise DataError(
                f"{path} is a file that the audit reads, and is not overwritten; give another "
                f"folder than {self.path}"
            )

    def _refuse_outside(self, path: Path, real: str) -> None:
        if not Path(real).is_relative_to(os.path.realpath(self.path)):
            raise DataError(
                f"{path} leads to {real}, which is outside {self.path}; remove the link, or give "
                "another folder"
            )


def output_file(path: Path, inputs: Iterable[str], *, begins: bytes = b"") -> Path:
    """A file that was named to be written; DataError where it is read, or a link leads away.

    Where `begins` is given, a file is replaced only if it begins like what is to be written.
    """
    require_parent(path)
    out = OutputFolder(path.parent, inputs).file(path.name)
    if out.is_file() and out.stat().st_size:
        with out.open("rb") as file:
            if file.read(len(begins)) != begins:
                raise DataError(
                    f"{path} is a file of another kind, and is not overwritten; give another name"
                )
    return out


def require_parent(path: Path) -> None:
    """ConfigError where the folder to write into does not exist: its name may be mistyped."""
    if not path.parent.is_dir():
        raise ConfigError(f"can't write {path}: there is no folder {path.parent}; make it first")


def _identity(file: str | Path) -> tuple[int, int] | None:
    try:
        facts = os.stat(file)
    except OSError:
        return None
    return facts.st_dev, facts.st_ino
