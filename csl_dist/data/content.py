"""Contents: files are identified by what is in them, not by when they were written.

A dataset that was copied is the same dataset. Reading terabytes to know that would take an hour, so
of large videos some blocks are read, spread over the file; of everything else, all. A file whose
size and time are as noted is not read again.
"""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from csl_dist.errors import DataError, StorageError
from csl_dist.storage.files import listed_signature, open_file, place
from csl_dist.storage.paths import RunPaths
from csl_dist.storage.requests import at_once
from csl_dist.types import fingerprint

Shape = tuple[int, int]

BLOCK_BYTES = 1 << 16
NUM_BLOCKS = 16
"""Blocks of a large video that are read, the first and the last among them."""
SAMPLED_BYTES = 4 << 20
"""From this size on a video is large."""


class Contents:
    """Digests of files and folders, by path."""

    def __init__(
        self,
        noted: Mapping[str, tuple[str, str]] | None = None,
        shapes: Mapping[str, tuple[str, Shape]] | None = None,
    ):
        self._noted = dict(noted or {})
        """Size and time of what is at a path, and its digest."""
        self._shapes = dict(shapes or {})
        """The same of an array in a file, and its shape."""

    def __repr__(self) -> str:
        return f"Contents({len(self._noted)} paths)"

    def of_video(self, path: str) -> str:
        """Digest of a video file; of a large one, of its size and some blocks."""
        return self._known(path, [path], sampled=True)

    def of_file(self, path: str) -> str:
        """Digest of all of a file."""
        return self._known(path, [path])

    def of_folder(self, path: str) -> str:
        """Digest of the names and contents of all files below a folder."""
        try:
            files = [str(file) for file in place(path).rglob("*") if file.is_file()]
        except OSError as error:
            raise DataError(f"can't read {path}: {error.strerror}") from error
        return self._known(path, sorted(files))

    def shape(self, source: str, file: str, read: Callable[[str], Shape]) -> Shape:
        """Shape of the array that `source` names in a file; read again where the file changed."""
        try:
            seen = fingerprint(listed_signature(file))
        except (OSError, StorageError):
            return read(source)  # says what is wrong
        if self._shapes.get(source, ("", None))[0] != seen:
            self._shapes[source] = seen, read(source)
        return self._shapes[source][1]

    def put(self, paths: RunPaths) -> None:
        """Notes all that is known in a run root."""
        content = {"files": self._noted, "shapes": self._shapes}
        paths.root.put_json_if_changed(RunPaths.SOURCES, content)

    def _known(self, path: str, files: list[str], *, sampled: bool = False) -> str:
        try:
            # Callers ask for many files at once; threads of their own are for folders alone.
            each = at_once if len(files) > 1 else map
            found = list(each(listed_signature, files))
            seen = fingerprint(list(zip(files, found, strict=True)))
            if self._noted.get(path, ("", ""))[0] != seen:
                self._noted[path] = seen, self._digest(path, files, sampled)
        except OSError as error:
            raise DataError(f"can't read {path}: {error.strerror}") from error
        except StorageError as error:
            raise DataError(str(error)) from error
        return self._noted[path][1]

    @staticmethod
    def _digest(path: str, files: list[str], sampled: bool) -> str:
        digest = hashlib.blake2b(digest_size=16)
        for file in files:
            size = listed_signature(file)[0]
            name = "" if file == path else file.removeprefix(path).lstrip("/")
            digest.update(f"{name} {size} ".encode())
            with open_file(file) as opened:
                if not sampled or size < SAMPLED_BYTES:
                    while block := opened.read(1 << 20):
                        digest.update(block)
                    continue
                for number in range(NUM_BLOCKS):
                    opened.seek(number * (size - BLOCK_BYTES) // (NUM_BLOCKS - 1))
                    digest.update(opened.read(BLOCK_BYTES))
        return digest.hexdigest()


def read_contents(paths: RunPaths) -> Contents:
    """What a run root has noted; nothing where it has not, or it can't be read."""
    try:
        if not paths.root.exists(RunPaths.SOURCES):
            return Contents()
        return paths.root.read_json(RunPaths.SOURCES, _noted)
    except StorageError:
        return Contents()


def _noted(content: dict[str, Any]) -> Contents:
    return Contents(
        {path: (str(seen), str(made)) for path, (seen, made) in content["files"].items()},
        {
            source: (str(seen), (int(rows), int(columns)))
            for source, (seen, (rows, columns)) in content["shapes"].items()
        },
    )
