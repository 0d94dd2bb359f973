"""Chunks read one by one are what zarr-python reads."""

from pathlib import Path

import numpy as np
import pytest

from csl_dist.errors import StorageError
from csl_dist.storage.url import Storage
from csl_dist.storage.zarr import ChunkReader, create_array, open_array


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
