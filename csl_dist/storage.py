"""Open a URL, put, get, list: the only module that knows file systems.

A key is written whole or not at all: a reader, or a run that resumes after a kill, never sees half
of one. On local disk that is a temporary file and a rename, on object stores it is how a put works;
obstore does both.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import obstore
from obstore.exceptions import BaseError
from obstore.store import LocalStore, ObjectStore, from_url
from typing_extensions import Buffer

from csl_dist.errors import StorageError

Result = TypeVar("Result")

MAX_KEY_PART = 120
"""Letters of a name that a key keeps; file systems allow 255 bytes a part."""


class Storage:
    """A folder of keys at a URL: a local path, `s3://`, `gs://`, or anything obstore knows."""

    def __init__(self, url: str):
        # Workers run in other folders, so a local path is made absolute here.
        self.url = url.rstrip("/") if "://" in url else str(Path(url).absolute())

    def __repr__(self) -> str:
        return f"Storage({self.url!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Storage) and self.url == other.url

    def __hash__(self) -> int:
        return hash(self.url)

    def child(self, key: str) -> "Storage":
        """The storage whose keys are those below `key` of this one."""
        return Storage(f"{self.url}/{key}")

    def store(self, *, create: bool = True) -> ObjectStore:
        """The obstore object behind this storage; what Zarr wraps.

        Without `create`, a local folder that does not exist raises FileNotFoundError, so that
        looking at a mistyped path leaves nothing behind.
        """
        if "://" in self.url:
            return from_url(self.url)
        path = Path(self.url)
        if not create and not path.is_dir():
            raise FileNotFoundError(path)
        return LocalStore(path, mkdir=create)

    def read(self, key: str) -> bytes:
        """The bytes of a key; StorageError where there is none."""
        return self._try("read", key, lambda: self._get(key))

    def reader(self) -> Callable[[str], Buffer | None]:
        """Reads keys through a store that is opened once; None where there is no such key."""
        store = self.store(create=False)

        def read(key: str) -> Buffer | None:
            try:
                return obstore.get(store, key).bytes()
            except FileNotFoundError:
                return None
            except (BaseError, OSError) as error:
                raise StorageError(f"can't read {self.url}/{key}: {_reason(error)}") from error

        return read

    def read_json(self, key: str) -> Any:
        try:
            return json.loads(self.read(key))
        except ValueError as error:
            raise StorageError(
                f"{self.url}/{key} is not valid JSON ({error}); delete it and run again"
            ) from error

    def put(self, key: str, data: bytes) -> None:
        """Writes a key whole."""
        self._try("write", key, lambda: obstore.put(self.store(), key, data))

    def put_json(self, key: str, value: Any) -> None:
        self.put(key, (json.dumps(value, indent=2) + "\n").encode())

    def list_keys(self, prefix: str = "") -> Iterator[str]:
        """Every key below a prefix that is a whole path part, relative to this storage."""
        return (key for key, _ in self.list_sizes(prefix))

    def list_sizes(self, prefix: str = "") -> Iterator[tuple[str, int]]:
        """Every key below a prefix, and its number of bytes."""
        pages = self._try("list", prefix, lambda: self._list(prefix))
        return ((entry["path"], entry["size"]) for page in pages for entry in page)

    def exists(self, key: str) -> bool:
        try:
            obstore.head(self.store(create=False), key)
        except FileNotFoundError:
            return False
        except (BaseError, OSError) as error:
            raise StorageError(f"can't read {self.url}/{key}: {_reason(error)}") from error
        return True

    def delete(self, key: str) -> None:
        """Removes a key; nothing happens where there is none."""
        try:
            obstore.delete(self.store(), key)
        except FileNotFoundError:
            pass
        except (BaseError, OSError) as error:
            raise StorageError(f"can't delete {self.url}/{key}: {_reason(error)}") from error

    def delete_folder(self, prefix: str = "") -> None:
        """Removes every key below a prefix."""
        keys = list(self.list_keys(prefix))
        if keys:
            self._try("delete", prefix, lambda: obstore.delete(self.store(), keys))

    def _get(self, key: str) -> bytes:
        return bytes(obstore.get(self.store(create=False), key).bytes())

    def _list(self, prefix: str) -> list[Any]:
        try:
            return list(obstore.list(self.store(create=False), prefix or None))
        except FileNotFoundError:
            return []

    def _try(self, verb: str, key: str, action: Callable[[], Result]) -> Result:
        try:
            return action()
        except (BaseError, OSError) as error:
            raise StorageError(f"can't {verb} {self.url}/{key}: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """One line of what went wrong; obstore adds a page of its own internals."""
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    return str(error).split("\n")[0]


def key_part(name: str) -> str:
    """A name as one safe part of a key: letters, digits, `._-` stay, the rest becomes `=XX`."""
    safe = re.sub(
        r"[^A-Za-z0-9._-]", lambda m: "".join(f"={b:02X}" for b in m.group().encode()), name
    )
    if len(safe) > MAX_KEY_PART:
        safe = f"{safe[:MAX_KEY_PART]}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    # A leading dot would make a hidden file, or the folder itself, or its parent.
    return "=2E" + safe[1:] if safe.startswith(".") else safe
