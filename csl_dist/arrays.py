"""Zarr arrays in a Storage: how every store opens, makes and reads them.

Zarr has no locks. Two writers in one chunk lose data, so whoever calls `create_array` chooses
chunks such that each is written by one unit of work alone.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import zarr
from zarr.core.attributes import Attributes
from zarr.storage import ObjectStore

from csl_dist.errors import StorageError
from csl_dist.storage import Storage


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
            store=ObjectStore(storage.store()),
            name=key,
            shape=shape,
            # An empty axis still needs a chunk of at least one.
            chunks=tuple(max(1, chunk) for chunk in chunks),
            shards=shards,
            dtype=dtype,
            attributes=attributes,
            compressors="auto" if compressed else None,
            # A chunk that got lost must not read as a number.
            fill_value=float("nan"),
            config={"write_empty_chunks": True},
            overwrite=True,
        ),
    )
    return Array(array, storage, key)


def open_array(storage: Storage, key: str, *, writable: bool = False) -> Array:
    """An array that exists; StorageError where it does not."""

    def opened() -> zarr.Array[Any]:
        store = ObjectStore(storage.store(create=False), read_only=not writable)
        return zarr.open_array(store=store, path=key, mode="r+" if writable else "r")

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
