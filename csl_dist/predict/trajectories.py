"""TrajectoryStore: log-probabilities of every class, frame and checkpoint, without labels.

Prediction writes rows: one checkpoint's log-probabilities of one group of videos, whole chunks that
no other unit touches, with a record last. When all rows of a group are there, they are compacted
into one array (E, T, C) a video, chunked by frames so that a frame's whole trajectory is one read.
A record with a version number names the array that counts, the highest version; putting the record
is what publishes the array, and only then do the one before and the rows go.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from csl_dist.errors import NotReadyError, StorageError
from csl_dist.storage.ledger import Ledger, Unit
from csl_dist.storage.url import Storage, at_once, key_part
from csl_dist.storage.zarr import (
    Array,
    ArrayForm,
    ChunkReader,
    ChunkWriter,
    create_array,
    lay_out_array,
    open_array,
    require_numbers,
)
from csl_dist.types import (
    FloatArray,
    IntArray,
    Span,
    array_fingerprint,
    consecutive_spans,
    fingerprint,
)

ROW_CHUNK_FRAMES = 4096
CHUNK_BYTES = 1 << 20
"""Of a published chunk, which is what reading one frame reads; see docs/decisions/023-scale.md."""
LEAST_CHUNK_FRAMES, MOST_CHUNK_FRAMES = 128, 1024
COMPACT_BLOCK_FRAMES = 4096
"""Frames that compaction reads at once, of every checkpoint."""
READ_THREADS = 8
"""Chunks that one read fetches and decodes at once."""

GROUPS = "groups"
"""Folder of what is known of groups whose rows are in the making."""

Part = TypeVar("Part")
Rows = dict[int, str]
"""Fingerprint of all that a row of one video was made from, by epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Videos that one unit covers, and where each is in the rows."""

    fold: int
    videos: tuple[str, ...]
    lengths: tuple[int, ...]
    features: tuple[str, ...]
    """Fingerprint of each video's features."""

    @property
    def num_frames(self) -> int:
        return sum(self.lengths)

    @property
    def fingerprint(self) -> str:
        return fingerprint(list(zip(self.videos, self.lengths, self.features, strict=True)))

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


class TrajectoryStore:
    """The trajectories of one scorer: rows in the making, and published arrays."""

    def __init__(self, storage: Storage):
        self._storage = storage
        self._rows = Ledger(storage.child("records/rows"))
        self._published = Ledger(storage.child("records/published"))
        self._row_writers: dict[str, tuple[ChunkWriter, int]] = {}

    def __repr__(self) -> str:
        return f"TrajectoryStore({self._storage.url!r})"

    def published_fingerprints(self) -> dict[str, str]:
        """Fingerprint of the published rows by `key_part` of the video; a single listing."""
        newest = sorted(self._published.done(), key=lambda unit: unit.name)
        return {unit.name.split("/")[0]: unit.fingerprint for unit in newest}

    def published_rows(self, video: str) -> Rows:
        """What each row of a published trajectory was made from; empty where there is none."""
        _, published = self._newest(key_part(video))
        return {} if published is None else {int(e): made for e, made in published.rows.items()}

    def written(self) -> dict[str, set[str]]:
        """Fingerprints of units whose rows are written, by the key of their group; one listing."""
        rows: dict[str, set[str]] = defaultdict(set)
        for unit in self._rows.done():
            rows[unit.name.rsplit("/", 1)[0]].add(unit.fingerprint)
        return rows

    def open_groups(self) -> list[Group]:
        """Groups whose rows are in the making: an earlier run may have been interrupted there."""
        keys = [key for key in self._storage.list_keys(GROUPS) if key.endswith(".json")]
        return at_once(lambda key: self._storage.read_json(key, _group), keys)

    def create_rows(
        self, group: Group, units: dict[int, Unit], *, num_classes: int, dtype: str
    ) -> None:
        """Lays out a group's rows, or makes room for more epochs."""
        self._row_writers.pop(group.key, None)
        self._storage.put_json_if_changed(_group_key(group), asdict(group))
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

    def has_row(self, unit: Unit) -> bool:
        """Whether a unit's row is written."""
        return self._rows.has(unit)

    def write_row(self, group: Group, epoch: int, unit: Unit, logp_NC: FloatArray) -> None:
        """Writes one checkpoint's log-probabilities of a group's videos, then the record."""
        writer, width = self._row_writer(group)
        for number, start in enumerate(range(0, len(logp_NC), width)):
            writer.write((epoch - 1, number, 0), logp_NC[None, start : start + width])
        self._rows.write(unit, epoch=epoch, videos=list(group.videos))

    def _row_writer(self, group: Group) -> tuple[ChunkWriter, int]:
        """What writes the chunks of a group's rows, and how many frames a chunk has."""
        if group.key not in self._row_writers:
            key = _rows_key(group)
            form = ArrayForm.of(open_array(self._storage, key))
            self._row_writers[group.key] = ChunkWriter(self._storage, key, form), form.chunks[1]
        return self._row_writers[group.key]

    def publish(self, group: Group, rows: Mapping[str, Rows]) -> None:
        """Publishes videos of a group from their rows, and from earlier arrays of theirs."""
        starts = np.cumsum([0, *group.lengths[:-1]]).tolist()
        places = dict(zip(group.videos, zip(starts, group.lengths, strict=True), strict=True))
        fresh = _RowBlocks(self._storage, _rows_key(group))
        for video, own in rows.items():
            start, length = places[video]
            wanted = {str(epoch): own[epoch] for epoch in sorted(own)}
            self._publish(group, video, Span(start, start + length), wanted, fresh)

    def drop_rows(self, group: Group) -> None:
        """Deletes the rows of a group, whose videos are all published or no longer wanted."""
        self._rows.forget(self._rows.done(group.key))
        self._storage.delete_folder(_rows_key(group))
        self._storage.delete(_group_key(group))

    def trajectory(self, video: str, location: Location | None = None) -> Trajectory:
        """The published trajectory of a video; `location` where that is known and still so."""
        if location is None:
            units = self._published.done(key_part(video))
            if not units:
                raise NotReadyError(
                    f"video {video!r} has no trajectory in {self._storage.url}; run `csl audit`"
                )
            location = self._location(max(units, key=lambda unit: unit.name))
        return Trajectory(self._storage, location)

    def locations(self, known: Mapping[str, Location]) -> dict[str, Location]:
        """Of all published trajectories, by `key_part` of the video; reads those not yet known."""
        newest: dict[str, Unit] = {}
        for unit in sorted(self._published.done(), key=lambda unit: unit.name):
            newest[unit.name.split("/")[0]] = unit
        found = {
            part: known[part]
            for part, unit in newest.items()
            if part in known
            and (known[part].array, known[part].fingerprint) == (_array(unit), unit.fingerprint)
        }
        lacking = [part for part in newest if part not in found]
        read = at_once(lambda part: self._location(newest[part]), lacking)
        return found | dict(zip(lacking, read, strict=True))

    def is_there(self, location: Location) -> bool:
        """Whether a trajectory still lies there, or another has taken its place since."""
        return self._storage.exists(f"{location.array}/zarr.json")

    def _location(self, unit: Unit) -> Location:
        published = self._published.read(unit, lambda facts: Published(**facts))
        if published.form is None:
            form = ArrayForm.of(open_array(self._storage, published.array))
        else:
            form = ArrayForm.from_json(published.form)
        return Location(
            array=published.array,
            fold=published.fold,
            epochs=tuple(map(int, published.rows)),
            fingerprint=unit.fingerprint,
            form=form,
        )

    def damage(self, part: str) -> str | None:
        """What is wrong with a trajectory, by `key_part` of its video; None if nothing."""
        try:
            _, published = self._newest(part)
            if published is None:
                return "it is not published"
            array = open_array(self._storage, published.array)
            spans = _blocks(array.shape[1], array.chunks[1])
            if len(spans) != len(published.blocks):
                return f"it has {array.shape[1]} frames, which is not how it was written"
            for span, written in zip(spans, published.blocks, strict=True):
                if array_fingerprint(array[:, span.start : span.stop]) != written:
                    return f"frames {span.start} to {span.stop} are not as they were written"
        except StorageError as error:
            return str(error)
        return None

    def damage_of_rows(self, group: Group) -> str | None:
        """What is wrong with rows in the making that are on record; None if nothing."""
        try:
            done = [unit.name.rsplit("-", 1)[1] for unit in self._rows.done(group.key)]
            if done:
                array = open_array(self._storage, _rows_key(group))
                for epoch in map(int, done):
                    require_numbers(array[epoch - 1], array.name)
        except StorageError as error:
            return str(error)
        return None

    def remove(self, part: str) -> None:
        """Deletes a published trajectory, by `key_part` of its video, to be predicted again."""
        self._published.forget(self._published.done(part))
        self._storage.delete_folder(f"trajectories.zarr/{part}")

    def remove_rows(self) -> None:
        """Deletes all rows in the making, and what says which groups they are of."""
        self._rows.forget(self._rows.done())
        self._storage.delete_folder(GROUPS)
        self._storage.delete_folder("rows.zarr")

    def _newest(self, part: str) -> tuple[int, Published | None]:
        """What counts of a video: the record with the highest version, and that version."""
        units = self._published.done(part)
        if not units:
            return 0, None
        newest = max(units, key=lambda unit: unit.name)
        published = self._published.read(newest, lambda facts: Published(**facts))
        return int(newest.name.split("/")[1]), published

    def _publish(
        self, group: Group, video: str, place: Span, rows: dict[str, str], fresh: "_RowBlocks"
    ) -> None:
        version, earlier = self._newest(key_part(video))
        if earlier is not None and earlier.rows == rows:
            return
        source = _VideoRows(self._storage, rows, earlier, fresh, place)
        num_classes, dtype = source.num_classes_and_dtype()
        frame_bytes = len(rows) * num_classes * np.dtype(dtype).itemsize
        unit = Unit(f"{key_part(video)}/{version + 1:06d}", fingerprint(rows))
        key = _array(unit)
        width = chunk_frames(len(place), frame_bytes)
        form = ArrayForm(
            shape=(len(rows), len(place), num_classes),
            chunks=(len(rows), width, num_classes),
            dtype=dtype,
            # Float16 log-probabilities hardly shrink, and decoding one chunk takes longer than
            # all else in a query.
            is_compressed=False,
        )
        writer, blocks = lay_out_array(self._storage, key, form), []
        for span in _blocks(len(place), width):
            block_ETC = source.read(span)
            require_numbers(block_ETC, f"{self._storage.url}/{_rows_key(group)}")
            for first in range(0, len(span), width):
                place_in_grid = (0, (span.start + first) // width, 0)
                writer.write(place_in_grid, block_ETC[:, first : first + width])
            blocks.append(array_fingerprint(block_ETC))
        published = Published(
            array=key, fold=group.fold, rows=rows, blocks=blocks, form=asdict(form)
        )
        self._published.write(unit, **asdict(published))
        if earlier is not None:
            self._published.forget(self._published.done(key_part(video)) - {unit})
            self._storage.delete_folder(earlier.array)


class _VideoRows:
    """The rows of one video: some just predicted, some from an earlier array."""

    def __init__(
        self,
        storage: Storage,
        rows: dict[str, str],
        earlier: Published | None,
        fresh: "_RowBlocks",
        place: Span,
    ):
        known = earlier.rows if earlier is not None else {}
        is_old_E = np.array([known.get(epoch) == unit for epoch, unit in rows.items()])
        self._is_old_E = is_old_E
        self._old_rows = [
            list(known).index(e) for e, old in zip(rows, is_old_E, strict=True) if old
        ]
        self._fresh_rows = tuple(
            int(epoch) - 1 for epoch, old in zip(rows, is_old_E, strict=True) if not old
        )
        self._old = open_array(storage, earlier.array) if earlier and self._old_rows else None
        self._fresh = fresh
        self._place = place

    def num_classes_and_dtype(self) -> tuple[int, str]:
        array = self._old if self._old is not None else self._fresh.array
        return array.shape[2], str(array.dtype)

    def read(self, span: Span) -> npt.NDArray[Any]:
        """Log-probabilities (E, T, C) of a span of the video."""
        num_classes, dtype = self.num_classes_and_dtype()
        block_ETC = np.empty((len(self._is_old_E), len(span), num_classes), dtype)
        if self._old is not None:
            old_ETC = self._old[:, span.start : span.stop]
            block_ETC[self._is_old_E] = old_ETC[self._old_rows]
        if self._fresh_rows:
            start = self._place.start + span.start
            inside = Span(start, start + len(span))
            block_ETC[~self._is_old_E] = self._fresh.read(self._fresh_rows, inside)
        return block_ETC


class _RowBlocks:
    """Reads a group's rows in blocks that hold many short videos, or a part of a long one.

    Videos follow each other in the rows, so that it is enough to keep two blocks.
    """

    def __init__(self, storage: Storage, key: str):
        self._storage = storage
        self._key = key
        self._block = lru_cache(maxsize=2)(self._read_block)

    @cached_property
    def array(self) -> Array:
        return open_array(self._storage, self._key)

    def read(self, rows: tuple[int, ...], span: Span) -> npt.NDArray[Any]:
        """Some rows (E, T, C) of a span of the group's frames."""
        width = COMPACT_BLOCK_FRAMES
        parts = []
        for number in range(span.start // width, -(-span.stop // width)):
            first = number * width
            inside = slice(max(0, span.start - first), span.stop - first)
            parts.append(self._block(rows, number)[:, inside])
        return np.concatenate(parts, axis=1)

    def _read_block(self, rows: tuple[int, ...], number: int) -> npt.NDArray[Any]:
        first = number * COMPACT_BLOCK_FRAMES
        return self.array.block(rows, first, min(self.array.shape[1], first + COMPACT_BLOCK_FRAMES))


def _array(unit: Unit) -> str:
    """Where the trajectory of a published unit lies."""
    return f"trajectories.zarr/{unit.name}"


def chunk_frames(num_frames: int, frame_bytes: int) -> int:
    """Frames of a published chunk: about a megabyte, and chunks of a video equally long."""
    most = min(max(CHUNK_BYTES // frame_bytes, LEAST_CHUNK_FRAMES), MOST_CHUNK_FRAMES)
    return -(-num_frames // -(-num_frames // most))


def _blocks(num_frames: int, width: int) -> list[Span]:
    """Frames that are written, and checked, together: whole chunks of so many frames."""
    return consecutive_spans(num_frames, max(1, COMPACT_BLOCK_FRAMES // width) * width)


def rows_fingerprint(rows: Rows) -> str:
    """Of a whole trajectory; what `published_fingerprints` gives for it."""
    return fingerprint({str(epoch): rows[epoch] for epoch in sorted(rows)})


def _group(content: dict[str, Any]) -> Group:
    sequences = ("videos", "lengths", "features")
    return Group(**content | {name: tuple(content[name]) for name in sequences})


def _group_key(group: Group) -> str:
    return f"{GROUPS}/{group.key}.json"


def _rows_key(group: Group) -> str:
    return f"rows.zarr/{group.key}"
