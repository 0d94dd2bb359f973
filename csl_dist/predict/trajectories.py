"""TrajectoryStore: log-probabilities of every class, frame and checkpoint, without labels.

Prediction writes rows: one checkpoint's log-probabilities of one group of videos, whole chunks that
no other unit touches, with a record last. When all rows of a group are there, they are compacted
into one array (E, T, C) a video, chunked by frames so that a frame's whole trajectory is one read.
A record with a version number names the array that counts, the highest version; putting the record
is what publishes the array, and only then do the one before and the rows go.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from csl_dist.errors import NotReadyError, StorageError
from csl_dist.predict.compaction import (
    COMPACT_BLOCK_FRAMES,
    RowBlocks,
    VideoRows,
    block_spans,
    chunk_frames,
)
from csl_dist.predict.published import Location, Published, Trajectory
from csl_dist.storage.ledger import Ledger, Unit
from csl_dist.storage.requests import at_once
from csl_dist.storage.url import Storage, key_part
from csl_dist.storage.zarr import (
    ArrayForm,
    ChunkWriter,
    create_array,
    lay_out_array,
    open_array,
    require_numbers,
)
from csl_dist.types import FloatArray, Span, array_fingerprint, fingerprint

ROW_CHUNK_BYTES = 256 << 10
"""Of a row of few classes; each is a file or a request. Rows of many classes have larger chunks:
compaction reads COMPACT_BLOCK_FRAMES of every checkpoint at once in any case."""
GROUPS = "groups"
"""Folder of what is known of groups whose rows are in the making."""

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
        return {part: unit.fingerprint for part, unit in self._newest_units().items()}

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
            chunks=(1, _row_chunk_frames(group.num_frames, num_classes, dtype), num_classes),
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
        self._rows.write(unit)

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
        fresh = RowBlocks(self._storage, _rows_key(group))
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
        newest = self._newest_units()
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
            spans = block_spans(array.shape[1], array.chunks[1])
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

    def _newest_units(self) -> dict[str, Unit]:
        """The unit with the highest version, by `key_part` of the video; a single listing."""
        ordered = sorted(self._published.done(), key=lambda unit: unit.name)
        return {unit.name.split("/")[0]: unit for unit in ordered}

    def _newest(self, part: str) -> tuple[int, Published | None]:
        """What counts of a video: the record with the highest version, and that version."""
        units = self._published.done(part)
        if not units:
            return 0, None
        newest = max(units, key=lambda unit: unit.name)
        published = self._published.read(newest, lambda facts: Published(**facts))
        return int(newest.name.split("/")[1]), published

    def _publish(
        self, group: Group, video: str, place: Span, rows: dict[str, str], fresh: RowBlocks
    ) -> None:
        version, earlier = self._newest(key_part(video))
        if earlier is not None and earlier.rows == rows:
            return
        source = VideoRows(self._storage, rows, earlier, fresh, place)
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
        for span in block_spans(len(place), width):
            block_ETC = source.read(span)
            require_numbers(block_ETC, f"{self._storage.url}/{_rows_key(group)}")
            for first in range(0, len(span), width):
                place_in_grid = (0, (span.start + first) // width, 0)
                writer.write(place_in_grid, block_ETC[:, first : first + width])
            blocks.append(array_fingerprint(block_ETC))
        facts = {"array": key, "fold": group.fold, "rows": rows, "blocks": blocks}
        self._published.write(unit, **facts, form=asdict(form))
        if earlier is not None:
            self._published.forget(self._published.done(key_part(video)) - {unit})
            self._storage.delete_folder(earlier.array)


def _row_chunk_frames(num_frames: int, num_classes: int, dtype: str) -> int:
    """Frames of a chunk of a row; all chunks equally long, but for the last."""
    few_classes = ROW_CHUNK_BYTES // (num_classes * np.dtype(dtype).itemsize)
    most = max(COMPACT_BLOCK_FRAMES, few_classes)
    return -(-num_frames // -(-num_frames // most))


def _array(unit: Unit) -> str:
    """Where the trajectory of a published unit lies."""
    return f"trajectories.zarr/{unit.name}"


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
