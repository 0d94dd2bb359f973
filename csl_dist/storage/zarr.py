"""Zarr arrays in a Storage: how every store opens, makes and reads them.

Zarr has no locks. Two writers in one chunk lose data, so whoever calls `create_array` chooses
chunks such that each is written by one unit of work alone. Every chunk ends with a checksum, so
that a bit that flips is an error wherever the chunk is read, and never another number.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import google_crc32c
import numcodecs
import numpy as np
import numpy.typing as npt
import zarr
from zarr.codecs import Crc32cCodec, ZstdCodec
from zarr.core.attributes import Attributes
from zarr.storage import ObjectStore

from csl_dist.errors import StorageError, damaged
from csl_dist.storage.url import Storage

CHECKSUM_BYTES = 4
Result = TypeVar("Result")


class Array:
    """An array in a Storage, with its requests, repeats and errors."""

    def __init__(self, array: zarr.Array[Any], storage: Storage, key: str):
        self._array = array
        self._storage = storage
        self._key = key

    def __repr__(self) -> str:
        return f"Array({self._storage.url}/{self._key}, shape={self.shape}, dtype={self.dtype})"

    @property
    def name(self) -> str:
        return f"{self._storage.url}/{self._key}"

    @property
    def shape(self) -> tuple[int, ...]:
        return self._array.shape

    @property
    def ndim(self) -> int:
        return self._array.ndim

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._array.dtype

    @property
    def chunks(self) -> tuple[int, ...]:
        return self._array.chunks

    @property
    def shards(self) -> tuple[int, ...] | None:
        return self._array.shards

    @property
    def attrs(self) -> Attributes:
        return self._array.attrs

    @property
    def is_compressed(self) -> bool:
        """Whether chunks are compressed; the two ways in which `create_array` writes them."""
        return any(isinstance(codec, ZstdCodec) for codec in self._array.compressors)

    @property
    def has_checksums(self) -> bool:
        """Whether chunks end with one; those of an earlier csl_dist do not."""
        return any(isinstance(codec, Crc32cCodec) for codec in self._array.compressors)

    @property
    def nchunks(self) -> int:
        return self._array.nchunks

    @property
    def nchunks_initialized(self) -> int:
        """Chunks that were written; a listing."""
        return self._storage.attempt("list", self._key, lambda: self._array.nchunks_initialized)

    def __getitem__(self, selection: Any) -> npt.NDArray[Any]:
        return self._read(lambda: np.asarray(self._array[selection]))

    def take(self, places: slice | npt.NDArray[Any]) -> npt.NDArray[Any]:
        """What lies at these places of the first axis."""
        return self._read(lambda: np.asarray(self._array.oindex[places]))

    def block(self, rows: Sequence[int], start: int, stop: int) -> npt.NDArray[Any]:
        """Some places of the first axis, and of those a range of the second."""
        where = (np.array(rows), slice(start, stop))
        return self._read(lambda: np.asarray(self._array.oindex[where]))

    def _read(self, action: Callable[[], Result]) -> Result:
        try:
            return self._storage.attempt("read", self._key, action)
        except (RuntimeError, TypeError, ValueError) as error:  # of codecs, on other bytes
            raise damaged(self.name, str(error).strip().split("\n")[0]) from error

    def __setitem__(self, selection: Any, values: npt.NDArray[Any]) -> None:
        self._storage.attempt(
            "write", self._key, lambda: self._array.__setitem__(selection, values)
        )

    def resize(self, shape: tuple[int, ...]) -> None:
        self._storage.attempt("write", self._key, lambda: self._array.resize(shape))


def create_array(
    storage: Storage,
    key: str,
    *,
    shape: tuple[int, ...],
    chunks: tuple[int, ...],
    dtype: str,
    attributes: dict[str, Any] | None = None,
    shards: tuple[int, ...] | None = None,
    compressed: bool = True,
) -> Array:
    """Makes a new array, or replaces the one at the key; a shard is one file of many chunks."""
    array = storage.attempt(
        "write",
        key,
        lambda: zarr.create_array(
            # A store of its own: Zarr would read and write the metadata of every folder above.
            store=ObjectStore(storage.child(key).store()),
            shape=shape,
            # An empty axis still needs a chunk of at least one.
            chunks=tuple(max(1, chunk) for chunk in chunks),
            shards=shards,
            dtype=dtype,
            attributes=attributes,
            compressors=[*([ZstdCodec()] if compressed else []), Crc32cCodec()],
            # A chunk that got lost must not read as a number; integers have nothing else to be.
            fill_value=float("nan") if np.issubdtype(dtype, np.floating) else -1,
            config={"write_empty_chunks": True},
            overwrite=True,
        ),
    )
    return Array(array, storage, key)


def open_array(
    storage: Storage, key: str, *, writable: bool = False, any_format: bool = False
) -> Array:
    """An array that exists; StorageError where it does not.

    Ours are in Zarr's format 3; looking for others, too, takes three requests instead of one.
    """

    def opened() -> zarr.Array[Any]:
        store = ObjectStore(storage.store(create=False), read_only=not writable)
        return zarr.open_array(
            store=store,
            path=key,
            mode="r+" if writable else "r",
            zarr_format=None if any_format else 3,
        )

    try:
        return Array(storage.attempt("read", key, opened), storage, key)
    except StorageError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            raise StorageError(f"there is no array at {storage.url}/{key}") from error
        raise
    except (AttributeError, ImportError, KeyError, RuntimeError, TypeError, ValueError) as error:
        # What Zarr raises on metadata that are not what it wrote.
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise damaged(f"{storage.url}/{key}", reason) from error


def require_numbers(values: npt.NDArray[Any], where: str) -> None:
    """Refuses values of an array that were never written, or were lost."""
    if np.isnan(values).any():
        raise damaged(where, "it has lost data")


@dataclass(frozen=True, slots=True)
class ArrayForm:
    """What has to be known of an array that `create_array` made to read its chunks."""

    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: str
    is_compressed: bool
    has_checksums: bool

    @classmethod
    def of(cls, array: Array) -> "ArrayForm":
        return cls(
            shape=array.shape,
            chunks=array.chunks,
            dtype=str(array.dtype),
            is_compressed=array.is_compressed,
            has_checksums=array.has_checksums,
        )

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> "ArrayForm":
        """What `asdict` made, which JSON has lists in."""
        return cls(
            **content | {"shape": tuple(content["shape"]), "chunks": tuple(content["chunks"])}
        )


class ChunkReader:
    """Reads whole chunks of an array that `create_array` made, each in one call.

    zarr-python passes every read through an event loop in another thread, which takes about a
    millisecond however little is read; a query for one frame is mostly that.
    """

    def __init__(self, storage: Storage, key: str, form: ArrayForm | None = None):
        """`form` where it is known already: the array is not opened, and has no attributes."""
        self.attributes: dict[str, Any] = {}
        if form is None:
            array = open_array(storage, key)
            form, self.attributes = ArrayForm.of(array), dict(array.attrs)
        self.form = form
        self.where = f"{storage.url}/{key}"
        self._dtype = np.dtype(form.dtype)
        self._zstd = numcodecs.Zstd() if form.is_compressed else None
        self._read = storage.child(key).reader()
        self.is_local = storage.is_local

    @property
    def shape(self) -> tuple[int, ...]:
        return self.form.shape

    @property
    def chunks(self) -> tuple[int, ...]:
        return self.form.chunks

    def read(self, *place: int) -> npt.NDArray[Any]:
        """The chunk at a place in the grid, without what reaches beyond the array."""
        data = self._read("/".join(["c", *map(str, place)]))
        if data is None:
            raise damaged(self.where, "it has lost data")
        try:
            values = self._checked(memoryview(data)) if self.form.has_checksums else data
            values = values if self._zstd is None else self._zstd.decode(values)
            chunk = np.frombuffer(memoryview(values), dtype=self._dtype).reshape(self.chunks)
        except (RuntimeError, ValueError) as error:
            raise damaged(self.where, error) from error
        inside = zip(self.shape, self.chunks, place, strict=True)
        return chunk[tuple(slice(0, min(c, n - i * c)) for n, c, i in inside)]

    @staticmethod
    def _checked(data: memoryview) -> memoryview:
        """A chunk without its checksum, which must be right."""
        content, checksum = data[:-CHECKSUM_BYTES], data[-CHECKSUM_BYTES:]
        if google_crc32c.value(bytes(content)) != int.from_bytes(checksum, "little"):
            raise ValueError("a checksum does not match")
        return content
