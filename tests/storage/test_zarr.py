"""Chunks read and written one by one are what zarr-python reads and writes."""

import itertools
from pathlib import Path

import numpy as np
import pytest
import zarr
from zarr.codecs import BytesCodec, GzipCodec

from csl_dist.errors import StorageError
from csl_dist.storage.url import Storage
from csl_dist.storage.zarr import (
    ArrayForm,
    ChunkReader,
    create_array,
    lay_out_array,
    open_array,
    read_array,
)


@pytest.mark.parametrize("compressed", [True, False])
def test_chunks_are_those_of_the_array(storage: Storage, compressed: bool) -> None:
    values = np.random.default_rng(0).normal(size=(3, 10, 2)).astype(np.float16)
    array = create_array(
        storage,
        "a/b",
        shape=values.shape,
        chunks=(3, 4, 2),
        dtype="float16",
        attributes={"x": 1},
        compressed=compressed,
    )
    array[:] = values
    chunks = ChunkReader(storage, "a/b")
    parts = [chunks.read(0, number, 0) for number in range(3)]
    assert [part.shape[1] for part in parts] == [4, 4, 2], "the last is not padded"
    assert (np.concatenate(parts, axis=1) == values).all()
    assert (np.asarray(open_array(storage, "a/b")[:]) == values).all()
    assert chunks.attributes == {"x": 1}


def test_lost_chunk_is_an_error(storage: Storage) -> None:
    array = create_array(storage, "a", shape=(10,), chunks=(5,), dtype="int64")
    array[:] = np.arange(10)
    next(Path(storage.url).glob("a/c/1")).unlink()
    chunks = ChunkReader(storage, "a")
    assert chunks.read(0).tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(StorageError, match="lost data"):
        chunks.read(1)


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize(
    ("dtype", "shape", "chunks"),
    [
        ("float16", (2, 500, 8), (2, 200, 8)),
        ("float64", (3, 500), (3, 500)),
        ("int64", (7,), (3,)),
        ("float32", (0, 4), (1, 4)),
    ],
)
def test_chunks_written_without_zarr_are_the_bytes_that_zarr_writes(
    tmp_path: Path,
    dtype: str,
    shape: tuple[int, ...],
    chunks: tuple[int, ...],
    compressed: bool,
) -> None:
    values = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    attributes = {"names": ["é", 1]}
    theirs, ours = Storage(str(tmp_path / "theirs")), Storage(str(tmp_path / "ours"))
    array = create_array(
        theirs,
        "a",
        shape=shape,
        chunks=chunks,
        dtype=dtype,
        attributes=attributes,
        compressed=compressed,
    )
    array[:] = values
    form = ArrayForm(shape, chunks, dtype, is_compressed=compressed)
    assert form == ArrayForm.of(array)
    writer = lay_out_array(ours, "a", form, attributes)
    counts = [range(-(-n // c)) for n, c in zip(shape, chunks, strict=True)]
    for place in itertools.product(*counts):
        inside = zip(place, chunks, strict=True)
        writer.write(place, values[tuple(slice(i * c, (i + 1) * c) for i, c in inside)])
    assert sorted(ours.list_keys()) == sorted(theirs.list_keys())
    for key in theirs.list_keys():
        assert ours.read(key) == theirs.read(key), key


MADE_BY_OTHERS = {
    "as zarr makes them": {"chunks": (4, 3)},
    "not compressed": {"chunks": (4, 3), "compressors": None},
    "gzip": {"chunks": (4, 3), "compressors": GzipCodec()},
    "shards": {"chunks": (2, 3), "shards": (4, 6)},
    "big-endian": {"chunks": (4, 3), "serializer": BytesCodec(endian="big")},
    "keys with dots": {"chunks": (4, 3), "chunk_key_encoding": {"name": "v2", "separator": "."}},
    "format 2": {"chunks": (4, 3), "zarr_format": 2},
}


@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8"])
@pytest.mark.parametrize("how", MADE_BY_OTHERS)
def test_whole_array_is_what_zarr_reads_whoever_made_it(
    tmp_path: Path, how: str, dtype: str
) -> None:
    values = (100 * np.random.default_rng(0).random((10, 7))).astype(dtype)
    settings = {"shape": (10, 7), "dtype": dtype, "fill_value": 1, **MADE_BY_OTHERS[how]}
    if dtype == "uint8" and how == "big-endian":
        settings["serializer"] = BytesCodec(endian=None)  # one byte has no ends
    made = zarr.create_array(str(tmp_path / "a"), **settings)
    made[:8] = values[:8]  # of chunks that were never written Zarr says that they are full of ones
    found = read_array(Storage(str(tmp_path)), "a", any_format=True)
    assert (found == made[:]).all()
    assert (found[8:] == 1).all()


def test_whole_array_without_frames_is_empty(tmp_path: Path) -> None:
    zarr.create_array(str(tmp_path / "a"), shape=(0, 5), chunks=(0, 5), dtype="float32")
    assert read_array(Storage(str(tmp_path)), "a").shape == (0, 5)


def test_whole_array_with_a_flipped_bit_is_an_error(storage: Storage) -> None:
    create_array(storage, "a", shape=(10,), chunks=(5,), dtype="int64")[:] = np.arange(10)
    assert read_array(storage, "a").tolist() == list(range(10))
    path = next(Path(storage.url).glob("a/c/1"))
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(StorageError, match="damaged"):
        read_array(storage, "a")
    with pytest.raises(StorageError, match="there is no array"):
        read_array(storage, "b")
