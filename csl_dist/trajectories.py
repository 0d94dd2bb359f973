"""TrajectoryStore: log-probabilities of every class, frame and checkpoint, without labels.

Scoring writes rows: one checkpoint's log-probabilities of one group of videos, whole chunks that no
other unit touches, with a record last. When all rows of a group are there, they are compacted into
one array (E, T, C) per video, chunked by frames so that a frame's whole trajectory is one read. A
record with a version number names the array that counts, the highest version; putting the record is
what publishes the array, and only then do the one before and the rows go.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from csl_dist.arrays import Array, ChunkReader, create_array, open_array, require_numbers
from csl_dist.errors import NotReadyError
from csl_dist.ledger import Ledger, Unit
from csl_dist.records import FloatArray, IntArray, fingerprint
from csl_dist.storage import Storage, key_part

ROW_CHUNK_FRAMES = 4096
QUERY_CHUNK_FRAMES = 128
COMPACT_BLOCK_FRAMES = 8192
"""Frames that compaction holds at once, of every checkpoint: a multiple of the query chunk."""
READ_THREADS = 8
"""Chunks that one read fetches and decodes at once."""

Part = TypeVar("Part")


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Videos that one unit scores together, and where each lies in the rows."""

    fold: int
    videos: tuple[str, ...]
    lengths: tuple[int, ...]
    fingerprint: str
    """Of the videos' features and order."""

    @property
    def num_frames(self) -> int:
        return sum(self.lengths)

    @property
    def key(self) -> str:
        return f"fold-{self.fold}/{self.fingerprint}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What the record of a published video says: which array, and what its rows are."""

    array: str
    fold: int
    rows: dict[str, str]
    """Fingerprint of the unit behind each row, by epoch, ascending."""

    @property
    def epochs(self) -> list[int]:
        return [int(epoch) for epoch in self.rows]


class Trajectory:
    """One video's log-probabilities (E, T, C), read when asked for."""

    def __init__(self, chunks: ChunkReader, published: Published):
        self._chunks = chunks
        self.epochs = published.epochs
        self.fold = published.fold
        self.fingerprint = fingerprint(published.rows)

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
        if len(numbers) == 1:
            yield taken(numbers[0])
            return
        with ThreadPoolExecutor(READ_THREADS) as pool:
            yield from pool.map(taken, numbers)


class TrajectoryStore:
    """The trajectories of one scorer: rows in the making, and published arrays."""

    def __init__(self, storage: Storage):
        self._storage = storage
        self._rows = Ledger(storage.child("records/rows"))
        self._published = Ledger(storage.child("records/published"))

    def __repr__(self) -> str:
        return f"TrajectoryStore({self._storage.url!r})"

    def published_fingerprints(self) -> dict[str, str]:
        """Fingerprint of the published rows by `key_part` of the video; a single listing."""
        newest = sorted(self._published.done(), key=lambda unit: unit.name)
        return {unit.name.split("/")[0]: unit.fingerprint for unit in newest}

    def is_published(self, group: Group, units: dict[int, Unit], known: dict[str, str]) -> bool:
        """Whether all videos of a group are published from exactly these units."""
        wanted = fingerprint(_rows_of(units))
        return all(known.get(key_part(video)) == wanted for video in group.videos)

    def scored(self, group: Group) -> set[str]:
        """Fingerprints of the group's units whose rows exist, written or published."""
        written = {unit.fingerprint for unit in self._rows.done(group.key)}
        found = [self._newest(video) for video in group.videos]
        published = [set(p.rows.values()) if p else set() for _, p in found]
        return written | set.intersection(*published)

    def create_rows(
        self, group: Group, units: dict[int, Unit], *, num_classes: int, dtype: str
    ) -> None:
        """Lays out a group's rows, or makes room for more epochs."""
        self._rows.retire(units.values(), group.key)
        key = _rows_key(group)
        shape = (max(units), group.num_frames, num_classes)
        if self._storage.exists(f"{key}/zarr.json"):
            array = open_array(self._storage, key, writable=True)
            if array.shape[1:] == shape[1:] and array.dtype == dtype:
                array.resize((max(array.shape[0], shape[0]), *shape[1:]))
                return
            # Rows of other classes or another type; no unit that is wanted now has any there.
            self._rows.forget(self._rows.done(group.key))
        create_array(
            self._storage,
            key,
            shape=shape,
            chunks=(1, min(group.num_frames, ROW_CHUNK_FRAMES), num_classes),
            dtype=dtype,
            compressed=False,
        )

    def write_row(self, group: Group, epoch: int, unit: Unit, logp_NC: FloatArray) -> None:
        """Writes one checkpoint's log-probabilities of a group's videos, then the record."""
        array = open_array(self._storage, _rows_key(group), writable=True)
        array[epoch - 1] = logp_NC.astype(array.dtype)
        self._rows.write(unit, epoch=epoch, videos=list(group.videos))

    def compact(self, group: Group, units: dict[int, Unit]) -> None:
        """Publishes the group's videos from their rows and earlier arrays; drops the rows."""
        rows = _rows_of(units)
        start = 0
        for video, length in zip(group.videos, group.lengths, strict=True):
            self._publish(group, video, start, length, rows)
            start += length
        self._rows.forget(self._rows.done(group.key))
        self._storage.delete_folder(_rows_key(group))

    def trajectory(self, video: str) -> Trajectory:
        """The published trajectory of a video."""
        _, published = self._newest(video)
        if published is None:
            raise NotReadyError(
                f"video {video!r} has no trajectory in {self._storage.url}; run `csl audit`"
            )
        return Trajectory(ChunkReader(self._storage, published.array), published)

    def _newest(self, video: str) -> tuple[int, Published | None]:
        """What counts of a video: the record with the highest version, and that version."""
        units = self._published.done(key_part(video))
        if not units:
            return 0, None
        newest = max(units, key=lambda unit: unit.name)
        return int(newest.name.split("/")[1]), Published(**self._published.read(newest))

    def _publish(
        self, group: Group, video: str, start: int, length: int, rows: dict[str, str]
    ) -> None:
        version, earlier = self._newest(video)
        if earlier is not None and earlier.rows == rows:
            return
        sources = [
            self._row_source(group, start, earlier, epoch, unit) for epoch, unit in rows.items()
        ]
        template = sources[0].array
        key = f"trajectories.zarr/{key_part(video)}/{version + 1:06d}"
        array = create_array(
            self._storage,
            key,
            shape=(len(rows), length, template.shape[2]),
            chunks=(len(rows), min(length, QUERY_CHUNK_FRAMES), template.shape[2]),
            dtype=str(template.dtype),
            # Float16 log-probabilities hardly shrink, and decoding one chunk takes longer than
            # all else in a query.
            compressed=False,
        )
        for a in range(0, length, COMPACT_BLOCK_FRAMES):
            b = min(length, a + COMPACT_BLOCK_FRAMES)
            array[:, a:b] = np.stack([source.read(a, b) for source in sources])
        published = Published(array=key, fold=group.fold, rows=rows)
        unit = Unit(f"{key_part(video)}/{version + 1:06d}", fingerprint(rows))
        self._published.write(unit, **asdict(published))
        if earlier is not None:
            self._published.forget(self._published.done(key_part(video)) - {unit})
            self._storage.delete_folder(earlier.array)

    def _row_source(
        self, group: Group, start: int, earlier: Published | None, epoch: str, unit: str
    ) -> "_RowSource":
        if earlier is not None and earlier.rows.get(epoch) == unit:
            array = open_array(self._storage, earlier.array)
            return _RowSource(array=array, row=list(earlier.rows).index(epoch), start=0)
        array = open_array(self._storage, _rows_key(group))
        return _RowSource(array=array, row=int(epoch) - 1, start=start)


@dataclass(frozen=True, slots=True, kw_only=True)
class _RowSource:
    """Where one checkpoint's row of one video is read from: fresh rows, or an earlier array."""

    array: Array
    row: int
    start: int
    """Where the video begins in the array."""

    def read(self, a: int, b: int) -> Any:
        return self.array[self.row, self.start + a : self.start + b]


def _rows_of(units: dict[int, Unit]) -> dict[str, str]:
    return {str(epoch): units[epoch].fingerprint for epoch in sorted(units)}


def _rows_key(group: Group) -> str:
    return f"rows.zarr/{group.key}"
