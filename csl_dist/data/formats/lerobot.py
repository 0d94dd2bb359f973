"""LeRobot v3: subtasks of episodes, in parquet files.

`meta/episodes/*.parquet` may have lists a row (an episode): `sparse_` or `dense_subtask_names`,
`_start_times`, `_end_times`, in seconds of the episode. `data/*.parquet` may have the column
`language_persistent` with rows of the style `subtask`, each of which holds until the next. Each of
these is a track. A parquet file can't be edited in place: it is written anew, and all other
columns, its schema and its metadata stay as they were.
"""

import io
from collections.abc import Sequence
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar

from csl_dist.data.documents.document import About, Document, Parsed
from csl_dist.data.documents.edits import Change
from csl_dist.data.documents.segment import Segment, in_order
from csl_dist.data.documents.times import Times
from csl_dist.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

PREFIXES = {"dense": "dense_", "sparse": "sparse_", "subtasks": ""}
"""Columns of lists, by the name of the track."""
LANGUAGE = "language_persistent"
LANGUAGE_TRACK = "language"
EPISODE = "episode_index"


def episode_id(index: int) -> str:
    return f"episode_{index:06d}"


def parquet_table(data: bytes, file: str) -> "pa.Table":
    """A file with all its types; pyarrow, which knows them, comes with the extra `formats`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_table(io.BytesIO(data))
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{file} is no parquet file that can be read: {reason}") from error


class LerobotFormat:
    """Files of episodes, or of their frames."""

    name: ClassVar[str] = "lerobot"
    patterns: ClassVar[tuple[str, ...]] = ("file-*.parquet",)
    needs_rate: ClassVar[bool] = False

    def looks_like(self, head: str) -> bool:
        return head.startswith("PAR1")

    def parse(self, data: bytes, file: str, config: Any) -> Document:
        table = parquet_table(data, file)
        if EPISODE not in table.column_names:
            raise DataError(f"{file} has no column {EPISODE}, so it is no file of LeRobot v3")
        if LANGUAGE in table.column_names:
            return LanguageDocument(table, data, file)
        return EpisodesDocument(table, data, file)


FORMAT = LerobotFormat()


class ParquetDocument:
    """What both kinds of files share."""

    def __init__(self, table: "pa.Table", data: bytes, file: str):
        self.table = table
        self.file = file
        self._data = data
        self.times = Times(unit="s")
        self.notes: list[str] = []
        self.about: dict[str, About] = {}
        self.segments: Sequence[Segment] = ()

    def _written(self, columns: dict[str, list[Any]]) -> bytes:
        if not columns:
            return self._data
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = self.table
        for name, values in columns.items():
            place = table.column_names.index(name)
            field = table.schema.field(name)
            table = table.set_column(place, field, pa.array(values, type=field.type))
        buffer = io.BytesIO()
        stored = pq.ParquetFile(io.BytesIO(self._data)).metadata.row_group(0).column(0)
        pq.write_table(table, buffer, compression=stored.compression)
        return buffer.getvalue()

    def _now(self, changes: Sequence[Change]) -> dict[tuple[str, str | None], list[Segment]]:
        """All segments of the videos and tracks that change."""
        touched = {(change.old.video, change.old.track) for change in changes}
        by_key = {c.old.key: c.new for c in changes if not c.added}
        added = [change.new for change in changes if change.added and change.new]
        now: dict[tuple[str, str | None], list[Segment]] = {who: [] for who in touched}
        for segment in self.segments:
            who = segment.video, segment.track
            if who in touched:
                new = by_key.get(segment.key, segment)
                now[who] += [new] if new is not None else []
        for segment in added:
            now[segment.video, segment.track].append(segment)
        return {who: in_order(own) for who, own in now.items()}


class EpisodesDocument(ParquetDocument):
    """A row an episode, with lists of names and times."""

    def __init__(self, table: "pa.Table", data: bytes, file: str):
        super().__init__(table, data, file)
        parsed = Parsed(file)
        names = [f"{prefix}subtask_{part}" for prefix in PREFIXES.values() for part in PARTS]
        rows = table.select([EPISODE, *(n for n in names if n in table.column_names)]).to_pylist()
        self._rows = {episode_id(row[EPISODE]): n for n, row in enumerate(rows)}
        for number, row in enumerate(rows, start=1):
            for track, prefix in PREFIXES.items():
                self._read(row, prefix, track, number, parsed)
        self.segments = parsed.segments

    def _read(
        self, row: dict[str, Any], prefix: str, track: str, number: int, parsed: Parsed
    ) -> None:
        columns = [row.get(f"{prefix}subtask_{part}") for part in PARTS]
        if columns[0] is None:
            return
        names, starts, stops = (column or [] for column in columns)
        if not len(names) == len(starts) == len(stops):
            raise DataError(
                f"{self.file}: episode {row[EPISODE]}: {len(names)} {prefix}subtask_names but "
                f"{len(starts)} starts and {len(stops)} ends"
            )
        for name, start, stop in zip(names, starts, stops, strict=True):
            parsed.add(
                video=episode_id(row[EPISODE]),
                start_seconds=float(start),
                stop_seconds=float(stop),
                label=str(name),
                line=number,
                track=track,
            )

    def edited(self, changes: Sequence[Change]) -> bytes:
        columns: dict[str, list[Any]] = {}
        for (video, track), own in self._now(changes).items():
            prefix = PREFIXES[str(track)]
            row = self._rows[video]
            values = (
                [segment.label for segment in own],
                [segment.start_seconds for segment in own],
                [segment.stop_seconds for segment in own],
            )
            for part, value in zip(PARTS, values, strict=True):
                self._column(columns, f"{prefix}subtask_{part}")[row] = value
            rate = self._rate(prefix, row)
            for part, value in zip(("start_frames", "end_frames"), values[1:], strict=True):
                name = f"{prefix}subtask_{part}"
                if rate and name in self.table.column_names:
                    self._column(columns, name)[row] = [round(seconds * rate) for seconds in value]
        return self._written(columns)

    def _column(self, columns: dict[str, list[Any]], name: str) -> list[Any]:
        if name not in columns:
            columns[name] = self.table.column(name).to_pylist()
        return columns[name]

    def _rate(self, prefix: str, row: int) -> float | None:
        """Frames a second, by a frame and its time that the row has already."""
        names = [f"{prefix}subtask_end_{part}" for part in ("frames", "times")]
        if not set(names) <= set(self.table.column_names):
            return None
        frames, times = (self.table.column(name)[row].as_py() or [0] for name in names)
        return frames[-1] / times[-1] if times[-1] else None


PARTS = ("names", "start_times", "end_times")


class LanguageDocument(ParquetDocument):
    """A row a frame; each row of an episode has all of its messages."""

    def __init__(self, table: "pa.Table", data: bytes, file: str):
        super().__init__(table, data, file)
        episodes = table.column(EPISODE).to_pylist()
        column = table.column(LANGUAGE)
        parsed = Parsed(file)
        self._rows: dict[str, list[int]] = {}
        for number, index in enumerate(episodes):
            own = self._rows.setdefault(episode_id(index), [])
            own.append(number)
            if len(own) == 1:
                self._read(index, number, column[number].as_py() or [], parsed)
        self.segments = parsed.segments

    def _read(self, index: int, row: int, messages: list[dict[str, Any]], parsed: Parsed) -> None:
        if any(message.get("timestamp") is None for message in _subtasks(messages)):
            raise DataError(f"{self.file}: episode {index}: a subtask has no timestamp")
        own = sorted(_subtasks(messages), key=lambda message: message["timestamp"])
        ends = [*(b["timestamp"] for _, b in pairwise(own)), inf]
        for message, stop in zip(own, ends, strict=True):
            parsed.add(
                video=episode_id(index),
                start_seconds=float(message["timestamp"]),
                stop_seconds=float(stop),
                label=str(message.get("content") or ""),
                line=row + 1,
                track=LANGUAGE_TRACK,
            )

    def edited(self, changes: Sequence[Change]) -> bytes:
        now = self._now(changes)
        if not now:
            return self._data
        column = self.table.column(LANGUAGE).to_pylist()
        for (video, _), own in now.items():
            for row in self._rows[video]:
                before = column[row] or []
                template = next(iter(_subtasks(before)))
                others = [message for message in before if message.get("style") != "subtask"]
                new = [template | {"content": s.label, "timestamp": s.start_seconds} for s in own]
                column[row] = sorted(others + new, key=lambda m: m.get("timestamp") or 0.0)
        return self._written({LANGUAGE: column})


def _subtasks(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [message for message in messages if message.get("style") == "subtask"]
