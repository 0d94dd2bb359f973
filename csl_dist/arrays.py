"""Zarr arrays in a Storage: how every store opens, makes and reads them.

Zarr has no locks. Two writers in one chunk lose data, so whoever calls `create_array` chooses
chunks such that each is written by one unit of work alone.
"""

from typing import Any

import numcodecs
import numpy as np
import numpy.typing as npt
import zarr
from zarr.codecs import ZstdCodec
from zarr.storage import ObjectStore

from csl_dist.errors import StorageError
from csl_dist.storage import Storage

Array = zarr.Array[Any]


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
    return zarr.create_array(
        store=ObjectStore(storage.store()),
        name=key,
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
    )


def open_array(storage: Storage, key: str, *, writable: bool = False) -> Array:
    """An array that exists; StorageError where it does not."""
    try:
        store = ObjectStore(storage.store(create=False), read_only=not writable)
        return zarr.open_array(store=store, path=key, mode="r+" if writable else "r")
    except FileNotFoundError as error:
        raise StorageError(f"there is no array at {storage.url}/{key}") from error
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
        self._key_of = array.metadata.encode_chunk_key
        self._zstd = numcodecs.Zstd() if _is_zstd(array) else None
        self._read = storage.child(key).reader()

    def read(self, *place: int) -> npt.NDArray[Any]:
        """The chunk at a place in the grid, without what reaches beyond the array."""
        data = self._read(self._key_of(place))
        if data is None:
            raise StorageError(f"{self.where} has lost data; delete it and run the stage again")
        values = data if self._zstd is None else self._zstd.decode(data)
        chunk = np.frombuffer(memoryview(values), dtype=self._dtype).reshape(self.chunks)
        inside = zip(self.shape, self.chunks, place, strict=True)
        return chunk[tuple(slice(0, min(c, n - i * c)) for n, c, i in inside)]


def _is_zstd(array: Array) -> bool:
    """Whether chunks are compressed; the two ways in which `create_array` writes them."""
    codecs = array.compressors
    assert not codecs or (len(codecs) == 1 and isinstance(codecs[0], ZstdCodec))
    return bool(codecs)
