"""Open a URL, put, get, list: the only module that knows file systems.

A key is written whole or not at all: a reader, or a run that resumes after a kill, never sees half
of one. On local disk that is a temporary file and a rename, on object stores it is how a put works;
obstore does both.

Object stores take their settings from the environment, as obstore reads them: AWS_ACCESS_KEY_ID,
AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION and AWS_ENDPOINT_URL for `s3://`,
GOOGLE_APPLICATION_CREDENTIALS for `gs://`, or else the role of the machine. Requests that are
throttled, answered with 5xx, cut or too slow are repeated with growing, random pauses.
"""

import hashlib
import io
import json
import os
import random
import re
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import LocalStore, ObjectStore, from_url
from typing_extensions import Buffer

from csl_dist.errors import StorageError, damaged
from csl_dist.storage.failures import is_cut, reason_of
from csl_dist.types import names_folder

Result = TypeVar("Result")

MAX_KEY_PART = 120
"""Letters of a name that a key keeps; file systems allow 255 bytes a part."""

MAX_RETRIES = 10
MAX_RETRY_TIME = timedelta(minutes=3)
FIRST_PAUSE = timedelta(milliseconds=200)
REQUEST_TIMEOUT = timedelta(minutes=2)
"""A whole request; larger than obstore's 30 s, because a checkpoint is one request to read."""
STALL_TIMEOUT = timedelta(seconds=30)
"""Between two pieces of an answer."""
CONNECT_TIMEOUT = timedelta(seconds=10)

MAX_TRIES = 4
PAUSE_SECONDS = 1.0
"""Tries of what obstore does not repeat itself, and the first pause between them."""

DIGEST = "#digest"
"""Key of a JSON file that tells whether the others are as they were written."""

KEYS_PER_PAGE = 1000
"""Keys that a listing takes at once, which is what S3 gives in one answer."""

READ_AHEAD_BYTES = 1 << 20
"""Bytes that reading a part of a key fetches at once."""


class Storage:
    """A folder of keys at a URL: a local path, `s3://`, `gs://`, or anything obstore knows."""

    def __init__(self, url: str, *, top: str | None = None):
        """`top` is the folder that this is a child of; nothing outside it is deleted."""
        if not names_folder(url):
            raise StorageError(f"{url!r} names no folder; expected a path, or s3://bucket/folder")
        # Workers run in other folders, so a local path is made absolute here.
        self.url = url.rstrip("/") if "://" in url else str(Path(url).absolute())
        self._top = top or self.url

    def __repr__(self) -> str:
        return f"Storage({self.url!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Storage) and self.url == other.url

    def __hash__(self) -> int:
        return hash(self.url)

    @property
    def is_local(self) -> bool:
        """Whether this is a folder of this machine."""
        return "://" not in self.url

    def child(self, key: str) -> "Storage":
        """The storage whose keys are those below `key` of this one."""
        return Storage(f"{self.url}/{key}", top=self._top)

    def store(self, *, create: bool = True) -> ObjectStore:
        """The obstore object behind this storage; what Zarr wraps.

        Without `create`, a local folder that does not exist raises FileNotFoundError, so that
        looking at a mistyped path leaves nothing behind.
        """
        if not self.is_local:
            return remote_store(self.url)
        path = Path(self.url)
        if not create and not path.is_dir():
            raise FileNotFoundError(path)
        return LocalStore(path, mkdir=create)

    def read(self, key: str) -> bytes:
        """The bytes of a key; StorageError where there is none."""
        if self.is_local:
            return self.attempt("read", key, lambda: _file_bytes(f"{self.url}/{key}"))
        return self.attempt("read", key, lambda: bytes(obstore.get(self.store(), key).bytes()))

    def open(self, key: str) -> io.BufferedReader:
        """A key to read from any place of; only what is read, and some ahead, is fetched."""
        return self.attempt(
            "read", key, lambda: io.BufferedReader(_RangeReader(self, key), READ_AHEAD_BYTES)
        )

    def facts(self, key: str) -> tuple[int, str]:
        """Bytes of a key, and its version; StorageError where there is none."""

        return self.attempt(
            "read", key, lambda: _size_and_version(obstore.head(self.store(create=False), key))
        )

    def reader(self) -> Callable[[str], Buffer | None]:
        """Reads keys through a store that is opened once; None where there is no such key."""
        store = None if self.is_local else self.store()

        def read(key: str) -> Buffer | None:
            try:
                if store is None:
                    return _file_bytes(f"{self.url}/{key}")
                return obstore.get(store, key).bytes()
            except FileNotFoundError:
                return None
            except (BaseError, OSError) as error:
                raise StorageError(f"can't read {self.url}/{key}: {reason_of(error)}") from error

        return read

    def read_json(self, key: str, build: Callable[[dict[str, Any]], Result]) -> Result:
        """What `build` makes of the JSON that `put_json` wrote; DamagedError if it is not that."""
        place = f"{self.url}/{key}"
        try:
            content = json.loads(self.read(key))
            # Deep nesting is not ours either.
        except (ValueError, RecursionError) as error:
            raise damaged(place, f"not valid JSON: {error}") from error
        if not isinstance(content, dict):
            raise damaged(place, f"it holds {type(content).__name__} instead of keys")
        written = content.pop(DIGEST, None)
        if written is not None and written != _digest(content):
            raise damaged(place, "its content is not what was written")
        try:
            return build(content)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise damaged(place, f"{type(error).__name__}: {error}") from error

    def put(self, key: str, data: bytes) -> None:
        """Writes a key whole."""
        self.attempt("write", key, lambda: obstore.put(self.store(), key, data))

    def put_json(self, key: str, value: Mapping[str, Any]) -> None:
        """Writes keys and values, with a digest that tells later whether they changed."""
        self.put(key, _json(value))

    def create(self, key: str, data: bytes) -> bool:
        """Writes a key that does not exist; False where it does, also if another was faster."""
        try:
            self.attempt("write", key, lambda: obstore.put(self.store(), key, data, mode="create"))
        except StorageError as error:
            if isinstance(error.__cause__, AlreadyExistsError):
                return False
            raise
        return True

    def replace(self, key: str, data: bytes, version: str) -> bool:
        """Writes a key whose version is the given one; False where it is another by now."""
        if self.is_local:
            # A rename has one winner; whoever lost finds another version, or none.
            path = Path(self.url) / key
            aside = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
            if self.version(key) != version:
                return False
            try:
                path.rename(aside)
            except FileNotFoundError:
                return False
            aside.unlink(missing_ok=True)
            return self.create(key, data)
        mode: Any = {"e_tag": version}
        try:
            self.attempt("write", key, lambda: obstore.put(self.store(), key, data, mode=mode))
        except StorageError as error:
            if isinstance(error.__cause__, PreconditionError | FileNotFoundError):
                return False
            raise
        return True

    def put_if_changed(self, key: str, data: bytes) -> None:
        """Writes a key unless it holds these very bytes, so that its version stays."""
        if not self.exists(key) or self.read(key) != data:
            self.put(key, data)

    def put_json_if_changed(self, key: str, value: Mapping[str, Any]) -> None:
        self.put_if_changed(key, _json(value))

    def list_keys(self, prefix: str = "") -> list[str]:
        """Every key below a prefix that is a whole path part, relative to this storage."""
        return [key for key, _ in self.list_sizes(prefix)]

    def list_sizes(self, prefix: str = "") -> list[tuple[str, int]]:
        """Every key below a prefix, and its number of bytes."""
        return [(key, size) for key, (size, _) in self.list_facts(prefix).items()]

    def list_facts(self, prefix: str = "") -> dict[str, tuple[int, str]]:
        """`facts` of every key below a prefix."""

        def listed() -> dict[str, tuple[int, str]]:
            store = self.store(create=False)
            pages = obstore.list(store, prefix or None, chunk_size=KEYS_PER_PAGE)
            return {entry["path"]: _size_and_version(entry) for page in pages for entry in page}

        return self.attempt("list", prefix, lambda: _unless_missing(listed, {}))

    def exists(self, key: str) -> bool:
        def found() -> bool:
            obstore.head(self.store(create=False), key)
            return True

        return self.attempt("read", key, lambda: _unless_missing(found, False))

    def version(self, key: str) -> str | None:
        """What changes whenever a key is written anew; None where there is none."""

        def found() -> str | None:
            return _size_and_version(obstore.head(self.store(create=False), key))[1]

        return self.attempt("read", key, lambda: _unless_missing(found, None))

    def delete(self, key: str) -> None:
        """Removes a key; nothing happens where there is none."""
        self._delete([key], key)

    def delete_folder(self, prefix: str = "") -> None:
        """Removes every key below a prefix."""
        keys = self.list_keys(prefix)
        if keys:
            self._delete(keys, prefix)

    def refuse_outside(self, keys: Iterable[str]) -> None:
        """StorageError where a link leads a key out of the folder: that is not ours to delete."""
        if not self.is_local:
            return
        top = os.path.realpath(self._top)
        for folder in sorted({os.path.dirname(f"{self.url}/{key}") for key in keys}):
            real = os.path.realpath(folder)
            if not Path(real).is_relative_to(top):
                raise StorageError(
                    f"can't delete {folder}: a link leads to {real}, which is outside {self._top}; "
                    "remove the link, and what is there by hand"
                )

    def refuse_unwritable(self) -> None:
        """StorageError where nothing can be written to a folder of this machine; nothing is made.

        obstore tries forever where a file system has no new files, as /proc.
        """
        if not self.is_local:
            return
        path = Path(self.url)
        there = next(folder for folder in (path, *path.parents) if os.path.lexists(folder))
        try:
            handle, probe = tempfile.mkstemp(dir=there, prefix=".csl-")
        except OSError as error:
            raise StorageError(
                f"can't write to {self.url}: no file can be made in {there} ({error.strerror}); "
                "choose another folder"
            ) from error
        os.close(handle)
        os.unlink(probe)

    def _delete(self, keys: list[str], what: str) -> None:
        self.refuse_outside(keys)
        self.attempt(
            "delete",
            what,
            lambda: _unless_missing(lambda: obstore.delete(self.store(), keys), None),
        )

    def attempt(
        self, verb: str, key: str, action: Callable[[], Result], *, tries: int = MAX_TRIES
    ) -> Result:
        """The result of an action that may be done twice; a failure is a one-line StorageError.

        obstore repeats most requests itself, but no listing whose answer is cut, and no deletion.
        """
        try:
            return action()
        except (BaseError, OSError) as error:
            if tries == 1 or not is_cut(error):
                raise StorageError(f"can't {verb} {self.url}/{key}: {reason_of(error)}") from error
        time.sleep(PAUSE_SECONDS * 2 ** (MAX_TRIES - tries) * random.uniform(0.5, 1.5))
        return self.attempt(verb, key, action, tries=tries - 1)


class _RangeReader(io.RawIOBase):
    """A key as a file: each read is a request for the bytes that are asked for."""

    def __init__(self, storage: Storage, key: str):
        self._storage, self._key = storage, key
        self._size = storage.facts(key)[0]
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        length = min(len(buffer), self._size - self._at)
        if length <= 0:
            return 0
        store, start = self._storage.store(create=False), self._at
        data = self._storage.attempt(
            "read",
            self._key,
            lambda: bytes(obstore.get_range(store, self._key, start=start, length=length)),
        )
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def _size_and_version(facts: Mapping[str, Any]) -> tuple[int, str]:
    return facts["size"], facts["e_tag"] or str(facts["last_modified"])


def _file_bytes(path: str) -> bytes:
    """A file of this machine; through obstore it takes ten times as long, as other threads work."""
    with open(path, "rb") as file:
        return file.read()


@lru_cache(maxsize=256)
def remote_store(url: str) -> ObjectStore:
    """One store, with its pool of connections, for each URL in this process."""
    endpoints = (value for name, value in os.environ.items() if name.startswith("AWS_ENDPOINT"))
    return from_url(
        url,
        client_options={
            # obstore reads AWS_ALLOW_HTTP only where no options are given. Whoever names an
            # http:// endpoint means it.
            "allow_http": any(named.startswith("http://") for named in (url, *endpoints)),
            "timeout": REQUEST_TIMEOUT,
            "read_timeout": STALL_TIMEOUT,
            "connect_timeout": CONNECT_TIMEOUT,
        },
        retry_config={
            "max_retries": MAX_RETRIES,
            "retry_timeout": MAX_RETRY_TIME,
            "backoff": {"init_backoff": FIRST_PAUSE},
        },
    )


def _json(value: Mapping[str, Any]) -> bytes:
    content = dict(value) | {DIGEST: _digest(value)}
    return (json.dumps(content, indent=2) + "\n").encode()


def _digest(value: Mapping[str, Any]) -> str:
    """Of what JSON keeps of a value, whatever the order of its keys."""
    kept = json.loads(json.dumps(value))
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()[:16]


def _unless_missing(action: Callable[[], Result], otherwise: Result) -> Result:
    try:
        return action()
    except FileNotFoundError as error:
        if "NoSuchBucket" in str(error):
            raise
        return otherwise


def key_part(name: str) -> str:
    """A name as one safe part of a key: letters, digits, `._-` stay, the rest becomes `=XX`."""
    safe = re.sub(
        r"[^A-Za-z0-9._-]", lambda m: "".join(f"={b:02X}" for b in m.group().encode()), name
    )
    if len(safe) > MAX_KEY_PART:
        safe = f"{safe[:MAX_KEY_PART]}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    # A leading dot would make a hidden file, or the folder itself, or its parent.
    return "=2E" + safe[1:] if safe.startswith(".") else safe
