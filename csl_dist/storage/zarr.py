"""Zarr arrays in a Storage: how every store opens, makes and reads them.

Zarr has no locks. Two writers in one chunk lose data, so whoever calls `create_array` chooses
chunks such that each is written by one unit of work alone.
"""

from collections.abc import Sequence
from typing import Any

import numcodecs
import numpy as np
import numpy.typing as npt
import zarr
from zarr.codecs import ZstdCodec
from zarr.core.attributes import Attributes
from zarr.storage import ObjectStore

from csl_dist.errors import StorageError
from csl_dist.storage.url import Storage


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
        codecs = self._array.compressors
        assert not codecs or (len(codecs) == 1 and isinstance(codecs[0], ZstdCodec))
        return bool(codecs)

    def chunk_key(self, place: tuple[int, ...]) -> str:
        """Where the chunk at a place of the grid lies, below the array's key."""
        return self._array.metadata.encode_chunk_key(place)

    @property
    def nchunks(self) -> int:
        return self._array.nchunks

    @property
    def nchunks_initialized(self) -> int:
        """Chunks that were written; a listing."""
        return self._storage.attempt("list", self._key, lambda: self._array.nchunks_initialized)

    def __getitem__(self, selection: Any) -> npt.NDArray[Any]:
        return self._storage.attempt("read", self._key, lambda: np.asarray(self._array[selection]))

    def take(self, places: slice | npt.NDArray[Any]) -> npt.NDArray[Any]:
        """What lies at these places of the first axis."""
        return self._storage.attempt(
            "read", self._key, lambda: np.asarray(self._array.oindex[places])
        )

    def block(self, rows: Sequence[int], start: int, stop: int) -> npt.NDArray[Any]:
        """Some places of the first axis, and of those a range of the second."""
        where = (np.array(rows), slice(start, stop))
        return self._storage.attempt(
            "read", self._key, lambda: np.asarray(self._array.oindex[where])
        )

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
            compressors="auto" if compressed else None,
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
    except (ValueError, KeyError) as error:
        raise StorageError(f"the array at {storage.url}/{key} is damaged: {error}") from error


def require_numbers(values: npt.NDArray[Any], where: str) -> None:
    """Refuses values of an array that were never written, or were lost."""
    if np.isnan(values).any():
        raise StorageError(f"{where} has lost data; delete it and run the stage again")


class ChunkReader:
    """Reads whole chunks of an array that `create_array` made, each in one call.

    zarr-python passes every read through an event loop in another thread, which takes about a
    millisecond however little is read; a query for one frame is mostly that.
    """

    def __init__(self, storage: Storage, key: str):
        array = open_array(storage, key)
        self.shape = array.shape
        self.chunks = array.chunks
        self.attributes: dict[str, Any] = dict(array.attrs)
        self.where = f"{storage.url}/{key}"
        self._dtype = array.dtype
        self._key_of = array.chunk_key
        self._zstd = numcodecs.Zstd() if array.is_compressed else None
        self._read = storage.child(key).reader()

    def read(self, *place: int) -> npt.NDArray[Any]:
        """The chunk at a place in the grid, without what reaches beyond the array."""
        data = self._read(self._key_of(place))
        if data is None:
            raise StorageError(f"{self.where} has lost data; delete it and run the stage again")
        try:
            values = data if self._zstd is None else self._zstd.decode(data)
            chunk = np.frombuffer(memoryview(values), dtype=self._dtype).reshape(self.chunks)
        except (RuntimeError, ValueError) as error:
            raise StorageError(
                f"{self.where} is damaged ({error}); delete it and run the stage again"
            ) from error
        inside = zip(self.shape, self.chunks, place, strict=True)
        return chunk[tuple(slice(0, min(c, n - i * c)) for n, c, i in inside)]
