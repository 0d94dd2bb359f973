"""Tables of segments: CSV, TSV, or columns between blanks, with a map of what the columns mean.

What the columns mean is a `TableForm`; `tables.py` has those of some datasets.
"""

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from math import inf
from typing import Any, Literal

from csl_dist.config import ColumnsConfig
from csl_dist.data.documents.document import About, Parsed
from csl_dist.data.documents.edits import Change
from csl_dist.data.documents.segment import Segment
from csl_dist.data.documents.text import Patch, SourceText
from csl_dist.data.documents.times import Times, decimals_of
from csl_dist.data.formats.format import stem_of
from csl_dist.errors import DataError

BLANKS = " "
"""As a delimiter: any run of blanks; the last column goes on to the end of the line."""
DELIMITERS = ("\t", ";", ",", "|")


@dataclass(frozen=True, slots=True)
class Cell:
    """A field of a row and where it stands."""

    start: int
    stop: int
    value: str


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a table, from `start` up to and with its line break."""

    start: int
    stop: int
    line: int
    cells: tuple[Cell, ...]


def read_rows(source: SourceText, delimiter: str, num_columns: int = 0) -> list[Row]:
    """The rows of a table that are not blank; `num_columns` counts where blanks delimit."""
    rows = []
    at, text = 0, source.text
    cell = re.compile(rf'[ ]*("(?:[^"]|"")*"|[^{re.escape(delimiter)}\r\n]*)')
    while at < len(text):
        start = at
        cells: list[Cell] = []
        while True:
            if delimiter == BLANKS:
                cells, at = _between_blanks(text, at, num_columns)
                break
            found = cell.match(text, at)
            assert found is not None
            raw = found.group(1)
            value = raw[1:-1].replace('""', '"') if raw.startswith('"') else raw.strip()
            cells.append(Cell(found.start(1), found.end(1), value))
            at = found.end()
            if at == len(text) or text[at] in "\r\n":
                break
            if text[at] != delimiter:
                raise DataError(
                    f"{source.where(at)}: text goes on after a quote; expected {delimiter!r}"
                )
            at += 1
        if at < len(text):
            at += 2 if text.startswith("\r\n", at) else 1
        if any(one.value for one in cells):
            rows.append(Row(start, at, source.line(start), tuple(cells)))
    return rows


def _between_blanks(text: str, at: int, num_columns: int) -> tuple[list[Cell], int]:
    found = re.compile(r"[^\r\n]*").match(text, at)
    assert found is not None
    cells: list[Cell] = []
    for word in re.finditer(r"\S+", found.group()):
        start = at + word.start()
        if len(cells) == num_columns - 1:
            rest = found.group()[word.start() :].rstrip()
            cells.append(Cell(start, start + len(rest), rest))
            break
        cells.append(Cell(start, at + word.end(), word.group()))
    return cells, found.end()


@dataclass(frozen=True, kw_only=True)
class TableForm:
    """What the columns and times of a table mean."""

    columns: ColumnsConfig
    times: Times
    delimiter: str | None = None
    """None: whichever of tab, semicolon, comma and bar the first line has most of."""
    video_of: Callable[[str], str] = str
    """From what stands in the column `video` to the id."""
    labels: Mapping[str, str | int] = field(default_factory=dict)
    """Several columns of labels: by the name of the track. Empty: the column `label`."""
    only: tuple[str, str] | None = None
    """A column and the value that rows of segments have in it; other rows are left out."""
    sequences: str | None = None
    """A column whose value several videos share that were played one after the other: times count
    from the start of the first, so that rows of the others are left out."""
    media: str | int | None = None
    """A column with the name of the video's file."""
    lengths: str | None = None
    """A column with the video's length in seconds."""
    names: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By track: names of what stands in its column, such as numbers of classes."""

    @property
    def has_header(self) -> bool:
        return not isinstance(self.columns.start, int)


class TableDocument:
    """A table whose rows are segments."""

    def __init__(self, source: SourceText, form: TableForm):
        self.source = source
        self.form = form
        self.about: dict[str, About] = {}
        self.notes: list[str] = []
        self._rows: list[Row] = []
        self._label_cells: list[int] = []
        """Of each segment, its row and the place of its label."""
        delimiter = form.delimiter or guessed_delimiter(source)
        self.delimiter = delimiter
        numbers = [c for c in self._given.values() if isinstance(c, int)]
        rows = read_rows(source, delimiter, max(numbers, default=0) + 1)
        if not rows:
            raise DataError(f"{source.file} is empty; expected a table of segments")
        self.header = [cell.value for cell in rows[0].cells] if form.has_header else []
        self.places = {name: self._place(column) for name, column in self._given.items()}
        self.label_places: dict[str | None, int] = {
            track: self._place(column) for track, column in form.labels.items()
        } or {None: self.places["label"]}
        body = rows[1:] if form.has_header else rows
        if form.only:
            column, value = self._place(form.only[0]), form.only[1]
            kept = [row for row in body if self._value(row, column) == value]
            if len(kept) < len(body):
                self.notes.append(
                    f"{source.file}: {len(body) - len(kept):,} rows whose {form.only[0]} is not "
                    f"{value} are left out"
                )
            body = kept
        if not body:
            raise DataError(f"{source.file} has no row of a segment")
        if form.has_header:
            refuse_long_rows(source, rows, delimiter)
        self.times = self._exact_times(body)
        if form.sequences in self.header:
            body = self._of_first_videos(body, str(form.sequences))
        parsed = Parsed(source.file)
        for row, stop in self._with_stops(body, parsed):
            self._read(row, stop, parsed)
        self.segments = parsed.segments

    @cached_property
    def _given(self) -> dict[str, str | int]:
        """Columns that the form has, by what they mean."""
        columns = {f.name: getattr(self.form.columns, f.name) for f in fields(ColumnsConfig)}
        if self.form.labels:
            columns.pop("label")
        return {name: column for name, column in columns.items() if column is not None}

    def _place(self, column: str | int) -> int:
        if isinstance(column, int):
            return column
        if column not in self.header:
            raise DataError(
                f"{self.source.file}:1: there is no column {column!r}; the columns are "
                f"{', '.join(self.header)}"
            )
        return self.header.index(column)

    def _value(self, row: Row, place: int) -> str:
        if place >= len(row.cells):
            raise DataError(
                f"{self.source.file}:{row.line}: expected at least {place + 1} columns, got "
                f"{len(row.cells)}"
            )
        return row.cells[place].value

    def _of_first_videos(self, body: Sequence[Row], column: str) -> list[Row]:
        """Rows whose times count from the start of their own video."""
        place = self._place(column)
        first: dict[str, str] = {}
        parsed = Parsed(self.source.file)
        for row in sorted(body, key=lambda row: self._start(row, parsed)):
            first.setdefault(self._value(row, place), self._video(row))
        kept = [row for row in body if first[self._value(row, place)] == self._video(row)]
        if len(kept) < len(body):
            self.notes.append(
                f"{self.source.file}: {len(body) - len(kept):,} rows are left out whose times "
                f"count from the start of another video, played before theirs in one {column}"
            )
        return kept

    def _exact_times(self, body: Sequence[Row]) -> Times:
        texts = [self._value(row, self.places["start"]) for row in body]
        timed = [self.places[n] for n in ("start", "stop", "duration") if n in self.places]
        cells = (row.cells[place] for row in body for place in timed if place < len(row.cells))
        point: Literal[".", ","] = "," if any("," in cell.value for cell in cells) else "."
        times = replace(self.form.times, point=point)
        if times.unit == "clock":
            if any(times.point in text for text in texts):
                return replace(times, decimals=decimals_of(texts, times.point))
            return replace(times, decimals=None if texts[0].count(":") == 3 else 0)
        if times.unit == "s":
            return replace(times, decimals=decimals_of(texts, times.point))
        return times

    def _video(self, row: Row) -> str:
        if "video" not in self.places:
            return stem_of(self.source.file)
        return self.form.video_of(self._value(row, self.places["video"]))

    def _with_stops(self, body: Sequence[Row], parsed: Parsed) -> list[tuple[Row, float | None]]:
        """Rows with where they stop, where only starts are given: at the next one of the video."""
        if "stop" in self.places or "duration" in self.places:
            return [(row, None) for row in body]
        starts: dict[tuple[str, ...], list[float]] = {}

        def kind(row: Row) -> tuple[str, ...]:
            names = ("annotator", "track")
            own = [self._value(row, self.places[n]) for n in names if n in self.places]
            return self._video(row), *own

        for row in body:
            starts.setdefault(kind(row), []).append(self._start(row, parsed))
        for (video, *_), own in starts.items():
            if own != sorted(set(own)):
                late = next(n for n in range(1, len(own)) if own[n] <= own[n - 1])
                raise DataError(
                    f"{self.source.file}: video {video!r}: a segment that starts at "
                    f"{own[late]:g} s comes after one of {own[late - 1]:g} s; starts must ascend"
                )
        following = {k: iter([*own[1:], inf]) for k, own in starts.items()}
        return [(row, next(following[kind(row)])) for row in body]

    def _start(self, row: Row, parsed: Parsed) -> float:
        text = self._value(row, self.places["start"])
        return parsed.seconds(self.times.start, text, "the start", row.line)

    def _read(self, row: Row, stop: float | None, parsed: Parsed) -> None:
        start = self._start(row, parsed)
        if stop is None and "stop" in self.places:
            text = self._value(row, self.places["stop"])
            stop = parsed.seconds(self.times.stop, text, "the end", row.line)
        elif stop is None:
            text = self._value(row, self.places["duration"])
            length = replace(self.times, base=0, inclusive=False)
            stop = start + parsed.seconds(length.start, text, "the duration", row.line)
        video = self._video(row)
        more: dict[str, Any] = {
            name: self._value(row, self.places[name]) or None
            for name in ("annotator", "procedure", "group")
            if name in self.places
        }
        if video not in self.about:
            self.about[video] = self._told(row)
        for track, place in self.label_places.items():
            own_track = self._value(row, self.places["track"]) if "track" in self.places else track
            parsed.add(
                video=video,
                start_seconds=start,
                stop_seconds=stop,
                label=self._name(track, self._value(row, place)),
                line=row.line,
                track=own_track or None,
                **more,
            )
            self._rows.append(row)
            self._label_cells.append(place)

    def _name(self, track: str | None, value: str) -> str:
        return self.form.names.get(track or "", {}).get(value, value)

    def _number(self, track: str | None, name: str) -> str:
        """What stands for a name in the column of a track."""
        known = self.form.names.get(track or "", {})
        return next((value for value, own in known.items() if own == name), name)

    def _told(self, row: Row) -> About:
        seconds = None
        if self.form.lengths in self.header:
            text = self._value(row, self._place(str(self.form.lengths)))
            seconds = float(text) if re.fullmatch(r"\d+(\.\d+)?", text) else None
        named = self.form.media
        media = self._value(row, self._place(named)) if named is not None else None
        # A name without an ending says no more than the id.
        return About(media=media if media and media != self._video(row) else None, seconds=seconds)

    def edited(self, changes: Sequence[Change]) -> bytes:
        patches: dict[tuple[int, int], Patch] = {}
        added: dict[Row, list[str]] = {}
        for change in changes:
            row = self._rows[change.old.key]
            if change.new is None:
                patches[row.start, row.stop] = Patch(row.start, row.stop, "")
            elif change.added:
                added.setdefault(row, []).append(self._copied(row, change))
            else:
                for patch in self._cell_patches(row, change.old, change.new):
                    patches[patch.start, patch.stop] = patch
        for row, texts in added.items():
            # A row without a line break is the last one.
            open_end = not self.source.text[row.start : row.stop].endswith(("\n", "\r"))
            text = "".join((self.source.newline + t) if open_end else t for t in texts)
            patches[row.stop, row.stop] = Patch(row.stop, row.stop, text)
        return self.source.patched(patches.values())

    def _copied(self, row: Row, change: Change) -> str:
        assert change.new is not None
        pieces, at = [], row.start
        own = self._cell_patches(row, change.old, change.new)
        for patch in sorted(own, key=lambda patch: patch.start):
            pieces += [self.source.text[at : patch.start], patch.text]
            at = patch.stop
        return "".join([*pieces, self.source.text[at : row.stop]])

    def _cell_patches(self, row: Row, old: Segment, new: Segment) -> list[Patch]:
        """Fields of a row that say something else than before."""
        texts: dict[int, str] = {}
        if new.label != old.label:
            texts[self._label_cells[old.key]] = self._number(old.track, new.label)
        if new.start_seconds != old.start_seconds:
            texts[self.places["start"]] = self.times.start_text(new.start_seconds)
        if new.stop_seconds != old.stop_seconds and "stop" in self.places:
            texts[self.places["stop"]] = self.times.stop_text(new.stop_seconds)
        if new.seconds != old.seconds and "duration" in self.places:
            length = replace(self.times, base=0, inclusive=False)
            texts[self.places["duration"]] = length.start_text(new.seconds)
        return [
            Patch(row.cells[place].start, row.cells[place].stop, self._quoted(text))
            for place, text in texts.items()
        ]

    def _quoted(self, text: str) -> str:
        if self.delimiter == BLANKS:
            return text
        buffer = io.StringIO()
        csv.writer(buffer, delimiter=self.delimiter, lineterminator="").writerow([text])
        return buffer.getvalue()


def refuse_long_rows(source: SourceText, rows: Sequence[Row], delimiter: str) -> None:
    """DataError where a row has more values than the first one has names: columns are shifted."""
    width = len(rows[0].cells)
    for row in rows[1:]:
        if any(cell.value for cell in row.cells[width:]):
            raise DataError(
                f"{source.file}:{row.line}: expected {width} columns, as the first line has, got "
                f"{len(row.cells)}; put a value that holds {delimiter!r} between quotes, or write "
                "another sign between columns"
            )


def guessed_delimiter(source: SourceText) -> str:
    first = source.text.partition("\n")[0]
    counts = {delimiter: first.count(delimiter) for delimiter in DELIMITERS}
    most = max(counts, key=lambda delimiter: counts[delimiter])
    return most if counts[most] else BLANKS
