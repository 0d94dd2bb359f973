"""Zarr arrays in a Storage: how every store opens, makes and reads them.

Zarr has no locks. Two writers in one chunk lose data, so whoever calls `create_array` chooses
chunks such that each is written by one unit of work alone. Every chunk ends with a checksum, so
that a bit that flips is an error wherever the chunk is read, and never another number.
"""

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import google_crc32c
import numcodecs
import numpy as np
import numpy.typing as npt
import obstore
import zarr
from obstore.store import MemoryStore
from obstore.store import ObjectStore as ObstoreStore
from zarr.codecs import Crc32cCodec, ZstdCodec
from zarr.core.attributes import Attributes
from zarr.storage import ObjectStore

from csl_dist.errors import StorageError, damaged
from csl_dist.storage.url import Storage

CHECKSUM_BYTES = 4
CHUNK_METADATA = (
    "zarr_format",
    "node_type",
    "chunk_key_encoding",
    "codecs",
    "storage_transformers",
)
"""What tells, beside shape and type, how an array's chunks lie and what is in them."""
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


@dataclass(frozen=True, slots=True)
class ArrayForm:
    """What has to be known of an array that `create_array` made to read its chunks."""

    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: str
    is_compressed: bool
    has_checksums: bool = True

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
        # A store of its own: Zarr would read and write the metadata of every folder above.
        lambda: _created(
            storage.child(key).store(), shape, chunks, dtype, attributes, shards, compressed
        ),
    )
    return Array(array, storage, key)


def _created(
    store: ObstoreStore,
    shape: tuple[int, ...],
    chunks: tuple[int, ...],
    dtype: str,
    attributes: dict[str, Any] | None,
    shards: tuple[int, ...] | None,
    compressed: bool,
) -> zarr.Array[Any]:
    return zarr.create_array(
        store=ObjectStore(store),
        shape=shape,
        # An empty axis still needs a chunk of at least one.
        chunks=tuple(max(1, chunk) for chunk in chunks),
        shards=shards,
        dtype=dtype,
        attributes=attributes,
        compressors=[*([ZstdCodec()] if compressed else []), Crc32cCodec()],
        fill_value=_fill_value(dtype),
        config={"write_empty_chunks": True},
        overwrite=True,
    )


def lay_out_array(
    storage: Storage, key: str, form: ArrayForm, attributes: dict[str, Any] | None = None
) -> "ChunkWriter":
    """Makes an array as `create_array` does, and what writes its chunks.

    Through Zarr, a small array takes four times as long to write.
    """
    storage.delete_folder(key)
    metadata = _metadata(len(form.shape), form.dtype, form.is_compressed) | {
        "shape": list(form.shape),
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(form.chunks)}},
        "attributes": attributes or {},
    }
    storage.put(f"{key}/zarr.json", json.dumps(metadata, indent=2).encode())
    return ChunkWriter(storage, key, form)


@cache
def _metadata(num_axes: int, dtype: str, compressed: bool) -> dict[str, Any]:
    """What Zarr writes of an array as `create_array` makes it; shape and chunks stand for any."""
    memory, one = MemoryStore(), (1,) * num_axes
    _created(memory, one, one, dtype, None, None, compressed)
    content: dict[str, Any] = json.loads(bytes(obstore.get(memory, "zarr.json").bytes()))
    return content


class ChunkWriter:
    """Writes whole chunks of an array that `create_array` made, each in one call."""

    def __init__(self, storage: Storage, key: str, form: ArrayForm):
        self._form = form
        self._storage = storage.child(key)
        self._zstd = numcodecs.Zstd(level=0) if form.is_compressed else None

    def write(self, place: tuple[int, ...], values: npt.NDArray[Any]) -> None:
        """The chunk at a place in the grid; what reaches beyond the array is no number."""
        chunk = np.ascontiguousarray(values, dtype=self._form.dtype)
        if chunk.shape != self._form.chunks:
            chunk = np.full(self._form.chunks, _fill_value(self._form.dtype), self._form.dtype)
            chunk[tuple(slice(0, n) for n in values.shape)] = values
        content = chunk.tobytes() if self._zstd is None else bytes(self._zstd.encode(chunk))
        if self._form.has_checksums:
            checksum = google_crc32c.value(content)
            content += checksum.to_bytes(CHECKSUM_BYTES, "little")
        self._storage.put(_chunk_key(place), content)


def _chunk_key(place: tuple[int, ...]) -> str:
    return "/".join(["c", *map(str, place)])


def _fill_value(dtype: str) -> float:
    """A chunk that got lost must not read as a number; integers have nothing else to be."""
    return float("nan") if np.issubdtype(np.dtype(dtype), np.floating) else -1


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


def read_array(storage: Storage, key: str, *, any_format: bool = False) -> npt.NDArray[Any]:
    """All of an array.

    On this machine, where chunks are as `create_array` writes them, whoever made the array, it is
    read without Zarr, which takes three times as long for a video's features.
    """
    content = storage.child(key).reader()("zarr.json") if storage.is_local else None
    form = None if content is None else _plain_form(bytes(content))
    if form is not None:
        try:
            return ChunkReader(storage, key, form).read_all()
        except (StorageError, ArithmeticError, TypeError, ValueError):
            pass  # Zarr knows what a chunk that is not there stands for, or says what is wrong
    return open_array(storage, key, any_format=any_format)[:]


def _plain_form(content: bytes) -> ArrayForm | None:
    """What metadata say of an array as `create_array` makes it; None of any other."""
    try:
        metadata = json.loads(content)
        shape, dtype = tuple(metadata["shape"]), metadata["data_type"]
        chunks = tuple(metadata["chunk_grid"]["configuration"]["chunk_shape"])
        if metadata["chunk_grid"]["name"] != "regular":
            return None
        for compressed, checked in itertools.product((True, False), repeat=2):
            ours = _metadata(len(shape), dtype, compressed)
            if not checked:
                ours = ours | {"codecs": ours["codecs"][:-1]}
            if all(metadata[name] == ours[name] for name in CHUNK_METADATA):
                return ArrayForm(
                    shape=shape,
                    chunks=chunks,
                    dtype=dtype,
                    is_compressed=compressed,
                    has_checksums=checked,
                )
    except (ArithmeticError, KeyError, TypeError, ValueError):
        pass  # not ours
    return None


def require_numbers(values: npt.NDArray[Any], where: str) -> None:
    """Refuses values of an array that were never written, or were lost."""
    if np.isnan(values).any():
        raise damaged(where, "it has lost data")


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
        data = self._read(_chunk_key(place))
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

    def read_all(self) -> npt.NDArray[Any]:
        """All chunks, as one array."""
        values = np.empty(self.shape, self._dtype)
        counts = (-(-n // c) for n, c in zip(self.shape, self.chunks, strict=True))
        for place in np.ndindex(*counts):
            corner = (i * c for i, c in zip(place, self.chunks, strict=True))
            chunk = self.read(*place)
            inside = zip(corner, chunk.shape, strict=True)
            values[tuple(slice(first, first + n) for first, n in inside)] = chunk
        return values

    @staticmethod
    def _checked(data: memoryview) -> memoryview:
        """A chunk without its checksum, which must be right."""
        content, checksum = data[:-CHECKSUM_BYTES], data[-CHECKSUM_BYTES:]
        if google_crc32c.value(bytes(content)) != int.from_bytes(checksum, "little"):
            raise ValueError("a checksum does not match")
        return content
