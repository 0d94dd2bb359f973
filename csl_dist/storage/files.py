"""Files of a dataset, in a folder or in a bucket: `place` gives a path that layouts walk alike.

A bucket is listed once for a dataset, however many of its files are asked for.
"""

import fnmatch
import os
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import IO, Any

from csl_dist.errors import DataError, StorageError
from csl_dist.storage.url import Storage

LISTABLE = ("s3", "gs", "az", "memory")
"""Kinds of URLs that can be listed; others, such as https://, are asked file by file."""


class Listing:
    """All keys below a URL, listed when first asked for."""

    def __init__(self, url: str):
        self.storage = Storage(url)

    @cached_property
    def facts(self) -> dict[str, tuple[int, str]]:
        """Size and version of each key."""
        return self.storage.list_facts()

    @cached_property
    def folders(self) -> dict[str, list[str]]:
        """Names in each folder, by its key; "" is the URL itself."""
        found: dict[str, dict[str, None]] = {"": {}}
        for key in sorted(self.facts):
            path = PurePosixPath(key)
            for inner, outer in zip((path, *path.parents), path.parents, strict=False):
                name = "" if str(outer) == "." else str(outer)
                found.setdefault(name, {})[inner.name] = None
        return {folder: list(names) for folder, names in found.items()}

    @property
    def is_listable(self) -> bool:
        return self.storage.url.partition("://")[0] in LISTABLE


_listings: dict[str, Listing] = {}


def _listing(url: str) -> Listing:
    return _listings.setdefault(url, Listing(url))


class UrlPath:
    """A path below a URL, with the part of pathlib's interface that datasets need."""

    def __init__(self, listing: Listing, key: str = ""):
        self._listing = listing
        self._key = key

    def __repr__(self) -> str:
        return f"UrlPath({str(self)!r})"

    def __str__(self) -> str:
        url = self._listing.storage.url
        return f"{url}/{self._key}" if self._key else url

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UrlPath) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __lt__(self, other: "UrlPath") -> bool:
        return str(self) < str(other)

    def __truediv__(self, name: "str | PurePosixPath") -> "UrlPath":
        if "://" in str(name):
            return UrlPath(_listing(str(name).rpartition("/")[0]), str(name).rpartition("/")[2])
        key = os.path.normpath(PurePosixPath(self._key) / str(name))
        return UrlPath(self._listing, "" if key == "." else key)

    @property
    def name(self) -> str:
        return str(self).rpartition("/")[2]

    @property
    def stem(self) -> str:
        return PurePosixPath(self.name).stem

    @property
    def suffix(self) -> str:
        return PurePosixPath(self.name).suffix

    @property
    def parent(self) -> "UrlPath":
        if not self._key:
            return UrlPath(_listing(str(self).rpartition("/")[0]))
        parent = str(PurePosixPath(self._key).parent)
        return UrlPath(self._listing, "" if parent == "." else parent)

    def exists(self) -> bool:
        return self.is_file() or self.is_dir()

    def is_file(self) -> bool:
        if not self._listing.is_listable:
            return bool(self._key) and self._listing.storage.exists(self._key)
        return self._key in self._listing.facts

    def is_dir(self) -> bool:
        return self._listing.is_listable and self._key in self._listing.folders

    def iterdir(self) -> Iterator["UrlPath"]:
        self._refuse_unlisted()
        return (self / name for name in self._listing.folders.get(self._key, ()))

    def rglob(self, pattern: str) -> Iterator["UrlPath"]:
        """Files below whose last parts match, at any depth."""
        self._refuse_unlisted()
        start = f"{self._key}/" if self._key else ""
        for key in self._listing.facts:
            if key.startswith(start) and fnmatch.fnmatchcase(f"/{key}", f"*/{pattern}"):
                yield UrlPath(self._listing, key)

    def glob(self, pattern: str) -> Iterator["UrlPath"]:
        """Files and folders below whose path matches, part by part."""
        found = [self]
        for part in pattern.split("/"):
            found = [
                inner
                for folder in found
                for inner in folder.iterdir()
                if fnmatch.fnmatchcase(inner.name, part)
            ]
        return iter(found)

    def listed_facts(self) -> tuple[int, str] | None:
        """Size and version, if its folder has been listed and has it; no request."""
        listed: dict[str, tuple[int, str]] = vars(self._listing).get("facts", {})
        return listed.get(self._key)

    def relative_to(self, other: object) -> PurePosixPath:
        return PurePosixPath(str(self)).relative_to(PurePosixPath(str(other)))

    def read_bytes(self) -> bytes:
        return self._listing.storage.read(self._key)

    def read_text(self, errors: str = "strict") -> str:
        return self.read_bytes().decode(errors=errors)

    def absolute(self) -> "UrlPath":
        return self

    def _refuse_unlisted(self) -> None:
        if not self._listing.is_listable:
            raise DataError(f"{self} can't be listed; name its files in a manifest")


AnyPath = Path | UrlPath


def is_url(path: object) -> bool:
    return "://" in str(path)


def place(path: "str | AnyPath") -> AnyPath:
    """A path on this machine or below a URL; of a file in a bucket, its folder is listed."""
    if not is_url(path):
        return path if isinstance(path, Path) else Path(str(path))
    if isinstance(path, UrlPath):
        return path
    url = Storage(str(path)).url  # refuses what names no bucket
    folder, _, name = url.rpartition("/")
    above = folder
    while not above.endswith(":/"):  # a folder above that is listed lists this one too
        if above in _listings and _listings[above].is_listable:
            return UrlPath(_listings[above], url.removeprefix(f"{above}/"))
        above = above.rpartition("/")[0]
    if PurePosixPath(name).suffix and not folder.endswith("/"):
        return UrlPath(_listing(folder), name)
    return UrlPath(_listing(url))


def forget_listings() -> None:
    """Lists buckets anew from now on: a dataset may have grown."""
    _listings.clear()


def joined(folder: AnyPath, name: str) -> str:
    """A file as a list in a folder names it: relative to that folder, or by a URL."""
    return name if is_url(name) else str(folder / name)


def beside(file: str, name: str) -> str:
    """Another file in the same folder."""
    return f"{file.rpartition('/')[0]}/{name}" if "/" in file else name


def split_url(file: str) -> tuple[Storage, str]:
    """The storage of a file and its key."""
    folder, _, name = file.rpartition("/")
    return Storage(folder or "."), name


def read_bytes(file: "str | AnyPath", *, default: bytes | None = None) -> bytes:
    """What a file holds; `default` where there is none."""
    try:
        if is_url(file):
            storage, key = split_url(str(file))
            if default is None:
                return storage.read(key)
            found = storage.reader()(key)  # says that there is none without a second request
            return default if found is None else bytes(found)
        return Path(str(file)).read_bytes()
    except FileNotFoundError as error:
        if default is not None:
            return default
        raise DataError(f"can't read {file}: {error.strerror}") from error
    except OSError as error:
        raise DataError(f"can't read {file}: {error.strerror}") from error
    except StorageError as error:
        raise DataError(str(error)) from error


def open_file(file: str) -> IO[Any]:
    """A file to read from any place of; of a URL, only the bytes that are read are fetched."""
    if is_url(file):
        storage, key = split_url(file)
        return storage.open(key)
    return Path(file).open("rb")


def exists(file: str) -> bool:
    """Whether there is a file or folder; of a URL, one request."""
    if not is_url(file):
        return Path(file).exists()
    storage, key = split_url(file)
    return storage.exists(key) or bool(is_folder(file))


def is_folder(file: str) -> bool:
    return place(file).is_dir()


def signature(file: str) -> tuple[int, str]:
    """Size of a file, and what changes when it is written anew."""
    if not is_url(file):
        facts = Path(file).stat()
        # The time of change can't be kept by whoever writes, as that of the content can.
        return facts.st_size, f"{facts.st_mtime_ns} {facts.st_ctime_ns}"
    storage, key = split_url(file)
    return storage.facts(key)


def listed_signature(file: str) -> tuple[int, str]:
    """The same as of when the dataset was listed: of a bucket, no request for each file."""
    path = place(file) if is_url(file) else None
    known = path.listed_facts() if isinstance(path, UrlPath) else None
    return known or signature(file)


def real_path(path: str) -> str:
    """Where a path leads, links followed; a URL as it is."""
    return path if is_url(path) else os.path.realpath(path)


def is_below(path: str, folders: Iterable[str]) -> bool:
    """Whether a path or URL lies in one of some folders, links and `..` followed."""

    def is_in(folder: str) -> bool:
        if is_url(path) or is_url(folder):
            return f"{path}/".startswith(f"{folder.rstrip('/')}/") and ".." not in path.split("/")
        return Path(real_path(path)).is_relative_to(real_path(folder))

    return any(map(is_in, folders))
