"""A published trajectory: what its record says, where it lies, and how it is read."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from csl_dist.storage.url import Storage
from csl_dist.storage.zarr import ArrayForm, ChunkReader, require_numbers
from csl_dist.types import IntArray

READ_THREADS = 8
"""Chunks that one read fetches and decodes at once."""

Part = TypeVar("Part")


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What the record of a published video says: which array, and what its rows are."""

    array: str
    fold: int
    rows: dict[str, str]
    """Fingerprint of the unit behind each row, by epoch, ascending."""
    blocks: Sequence[str] = ()
    """Fingerprint of what was written, by block of COMPACT_BLOCK_FRAMES frames."""
    form: dict[str, Any] | None = None
    """How the array's chunks lie; None in records of an earlier csl_dist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """All that reading a published trajectory takes beside its chunks."""

    array: str
    fold: int
    epochs: tuple[int, ...]
    fingerprint: str
    """Of what its rows were made from."""
    form: ArrayForm


class Trajectory:
    """One video's log-probabilities (E, T, C), read when asked for."""

    def __init__(self, storage: Storage, location: Location):
        self._chunks = ChunkReader(storage, location.array, location.form)
        self.epochs = list(location.epochs)
        self.fold = location.fold
        self.fingerprint = location.fingerprint

    def __repr__(self) -> str:
        return f"Trajectory(shape={self.shape})"

    @property
    def shape(self) -> tuple[int, int, int]:
        num_checkpoints, num_frames, num_classes = self._chunks.shape
        return num_checkpoints, num_frames, num_classes

    def read(self, start: int = 0, stop: int | None = None) -> npt.NDArray[np.float32]:
        """Log-probabilities (E, stop - start, C) in float32."""
        first, last, _ = slice(start, stop).indices(self.shape[1])
        num_checkpoints, _, num_classes = self.shape
        read_ETC = np.empty((num_checkpoints, max(0, last - first), num_classes), np.float32)
        for frames, part_ETC in self._each_chunk(first, last, lambda _, part_ETC: part_ETC):
            read_ETC[:, frames.start - first : frames.stop - first] = part_ETC
        require_numbers(read_ETC, f"the trajectory {self._chunks.where}")
        return read_ETC

    def of_classes(self, classes_T: IntArray, start: int = 0) -> npt.NDArray[np.float32]:
        """Log-probabilities (E, T) of one class a frame, from a frame on; holds little else."""

        def gather(frames: slice, part_ETC: npt.NDArray[Any]) -> npt.NDArray[Any]:
            wanted_T = classes_T[frames.start - start : frames.stop - start]
            return part_ETC[:, np.arange(len(wanted_T)), wanted_T]

        read_ET = np.empty((self.shape[0], len(classes_T)), np.float32)
        for frames, part_ET in self._each_chunk(start, start + len(classes_T), gather):
            read_ET[:, frames.start - start : frames.stop - start] = part_ET
        require_numbers(read_ET, f"the trajectory {self._chunks.where}")
        return read_ET

    def _each_chunk(
        self, start: int, stop: int, take: Callable[[slice, npt.NDArray[Any]], Part]
    ) -> Iterator[tuple[slice, Part]]:
        """What `take` makes of the chunks between two frames, several at once, and which frames."""
        width = self._chunks.chunks[1]

        def taken(number: int) -> tuple[slice, Part]:
            first = number * width
            frames = slice(max(start, first), min(stop, first + width, self.shape[1]))
            chunk_ETC = self._chunks.read(0, number, 0)
            return frames, take(frames, chunk_ETC[:, frames.start - first : frames.stop - first])

        numbers = range(start // width, -(-stop // width)) if stop > start else range(0)
        # Threads are for waiting, which few chunks on a disk do not make anybody do.
        if len(numbers) == 1 or (self._chunks.is_local and len(numbers) <= READ_THREADS):
            yield from map(taken, numbers)
            return
        with ThreadPoolExecutor(READ_THREADS) as pool:
            yield from pool.map(taken, numbers)
