"""A table that nobody described: which of its columns are times, labels and videos, as a draft."""

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import PurePosixPath

from csl_dist.config import ColumnsConfig, SegmentsConfig
from csl_dist.data.documents.text import decoded
from csl_dist.data.formats.table import (
    BLANKS,
    Row,
    guessed_delimiter,
    read_rows,
    refuse_long_rows,
)
from csl_dist.data.formats.tables import SEGMENTS
from csl_dist.data.layouts.documents import drafted
from csl_dist.data.layouts.label_files import files_at
from csl_dist.data.layouts.layout import Draft
from csl_dist.data.media.rates import guessed_label_rate
from csl_dist.errors import DataError
from csl_dist.storage.files import AnyPath, read_bytes

NAMES = {
    "start": "start|begin|onset|from|t0|t_?start|time_?in",
    "stop": "stop|end|offset|to|t1|t_?end|time_?out",
    "duration": "duration|length|dur",
    "label": "label|action|phase|step|activity|class|behaviou?r|event|gesture|category|name",
    "video": "video|file|clip|recording|case|media|movie|sequence",
    "annotator": "annotator|coder|rater|labell?er|user|reviewer",
    "track": "track|tier|layer",
    "procedure": "procedure|recipe|task|operation",
    "group": "group|participant|subject|surgeon|person|patient",
}
"""Words that a column's name has, in the order in which columns are given away."""
TIME = re.compile(r"\d+([.,]\d+)?|\d+:\d{1,2}(:\d{1,2})?([.,:;]\d+)?")
ROWS_LOOKED_AT = 2000
LONGEST_SECONDS = 6 * 3600
"""Whole numbers above this are frames rather than seconds."""


def draft_table(path: AnyPath) -> Draft:
    """A `segments` config for the first table of times at a path; DataError where there is none."""
    reasons = []
    for file in files_at(path, SEGMENTS)[:50]:
        try:
            return _draft(path, file)
        except DataError as error:
            reasons.append(str(error))
    raise DataError(reasons[0] if reasons else f"{path} holds no table")


def _draft(path: AnyPath, file: AnyPath) -> Draft:
    source = decoded(read_bytes(file), str(file))
    delimiter = guessed_delimiter(source)
    rows = read_rows(source, delimiter, 3 if delimiter == BLANKS else 0)
    if not rows:
        raise DataError(f"{file} is empty; expected a table of times and labels")
    if len(rows) < 2:
        raise DataError(f"{file} has one line; expected a table of times and labels")
    columns = _named(rows) or _by_content(rows) or _numbered(rows)
    if columns is None or not {"stop", "duration"} & columns.keys():
        _refuse_no_times(file, rows)
    if columns is None:
        first = ", ".join(cell.value for cell in rows[0].cells)[:80]
        raise DataError(
            f"{file} is no table of times and labels that can be guessed (its first row: {first}); "
            "describe its columns with layout: segments"
        )
    has_header = not isinstance(columns["start"], int)
    if has_header and delimiter != BLANKS:
        refuse_long_rows(source, rows, delimiter)
    header = [cell.value for cell in rows[0].cells]
    body = rows[1 if has_header else 0 :][:ROWS_LOOKED_AT]
    places = {
        name: column if isinstance(column, int) else header.index(column)
        for name, column in columns.items()
    }
    dataset: dict[str, object] = {"path": path if "video" not in columns else file}
    dataset["columns"] = columns
    found = ", ".join(f"{name} is {column}" for name, column in columns.items())
    notes = {"columns": f"guessed from {PurePosixPath(str(file)).name}: {found}"}
    _add_unit(dataset, notes, columns, [_values(row, places) for row in body], path)
    if "stop" not in columns and "duration" not in columns:
        starts = [row.cells[places["start"]].value for row in body]
        if all(b.isdigit() and a.isdigit() and int(b) == int(a) + 1 for a, b in pairwise(starts)):
            raise DataError(f"{file} has a row for every frame, and is no table of segments")
        notes["columns"] += "; no end was found, so a segment ends where the next one starts"
    config = SegmentsConfig(
        path=str(dataset["path"]),
        columns=ColumnsConfig(**columns),
        unit=dataset["unit"],  # type: ignore[arg-type]
        base=dataset.get("base", 0),  # type: ignore[arg-type]
        inclusive=bool(dataset.get("inclusive")),
        labels_fps=dataset.get("labels_fps"),  # type: ignore[arg-type]
    )
    return drafted(Draft(layout="segments", dataset=dataset, notes=notes), SEGMENTS, config)


def _values(row: Row, places: dict[str, int]) -> dict[str, str]:
    return {name: row.cells[n].value for name, n in places.items() if n < len(row.cells)}


def _named(rows: Sequence[Row]) -> dict[str, str] | None:
    """Columns by their names in the first row; times must look like times."""
    header = [cell.value for cell in rows[0].cells]
    if any(TIME.fullmatch(value) for value in header):
        return None
    columns: dict[str, str] = {}
    for meaning, words in NAMES.items():
        alike = [n for n in header if n not in columns.values() and _has_word(n, words)]
        timed = {name: _are_times(rows[1:], header.index(name)) for name in alike}
        if meaning in ("start", "stop", "duration"):
            alike = [name for name in alike if timed[name]]
        elif meaning == "label":
            # Words before numbers, though a label may be one; "Video Name" names no label.
            videos = re.compile(NAMES["video"], re.IGNORECASE)
            alike.sort(key=lambda name: (bool(videos.search(name)), timed[name]))
        if alike:
            columns[meaning] = alike[0]
    if "start" not in columns:
        frames = [
            n for i, n in enumerate(header) if "frame" in n.lower() and _are_times(rows[1:], i)
        ]
        columns = columns | ({"start": frames[0]} if frames else {})
    return columns if {"start", "label"} <= columns.keys() else None


def _refuse_no_times(file: AnyPath, rows: Sequence[Row]) -> None:
    """DataError for the first value that is no time, in a column of times by name and most rows."""
    for place, cell in enumerate(rows[0].cells):
        if not any(_has_word(cell.value, NAMES[name]) for name in ("start", "stop", "duration")):
            continue
        wrong = [row for row in rows[1:] if not TIME.fullmatch(_value(row, place))]
        if 0 < len(wrong) < len(rows[1:]) / 2:
            more = f" ({len(wrong) - 1:,} more like it)" if len(wrong) > 1 else ""
            raise DataError(
                f"{file}:{wrong[0].line}: {cell.value} is {_value(wrong[0], place)!r}{more}, "
                "expected a time from 0 on, such as 75.5 or 1:15.5; correct or remove it"
            )


def _has_word(name: str, words: str) -> bool:
    """Whether a column's name has one of some words; `startTime` has two."""
    spaced = re.sub(r"([a-z])([A-Z])", r"\1_\2", name)
    return bool(re.search(rf"(^|[^a-z])({words})s?([^a-z]|$)", spaced, re.IGNORECASE))


def _by_content(rows: Sequence[Row]) -> dict[str, str] | None:
    """Columns of a table whose names say nothing: the first two of times, and words.

    The label is the column of words that changes most often from row to row, the video the one
    that changes least often.
    """
    header, body = [cell.value for cell in rows[0].cells], rows[1:]
    if len(set(header)) < len(header) or any(TIME.fullmatch(value) for value in header):
        return None
    times = [place for place in range(len(header)) if _are_times(body, place)]
    words = [place for place in range(len(header)) if place not in times]
    if len(times) < 2 or not words:
        return None
    changes = {
        place: sum(_value(a, place) != _value(b, place) for a, b in pairwise(body))
        for place in words
    }
    label = max(words, key=lambda place: changes[place])
    video = min(words, key=lambda place: changes[place])
    columns = {"start": header[times[0]], "stop": header[times[1]], "label": header[label]}
    return columns | ({"video": header[video]} if changes[video] < changes[label] else {})


def _value(row: Row, place: int) -> str:
    return row.cells[place].value if place < len(row.cells) else ""


def _numbered(rows: Sequence[Row]) -> dict[str, int] | None:
    """Two columns of times and one of words, in a file without a header."""
    width = min(len(row.cells) for row in rows)
    times = [place for place in range(width) if _are_times(rows, place)]
    words = [place for place in range(width) if place not in times]
    if len(times) >= 2 and words:
        return {"start": times[0], "stop": times[1], "label": words[-1]} | (
            {"video": words[0]} if len(words) > 1 else {}
        )
    return None


def _are_times(rows: Sequence[Row], place: int) -> bool:
    values = [row.cells[place].value for row in rows[:ROWS_LOOKED_AT] if place < len(row.cells)]
    return bool(values) and all(TIME.fullmatch(value) for value in values)


def _add_unit(
    dataset: dict[str, object],
    notes: dict[str, str],
    columns: dict[str, str] | dict[str, int],
    rows: Sequence[dict[str, str]],
    path: AnyPath,
) -> None:
    """The unit of times, from what they are called and look like."""
    starts = [row["start"] for row in rows]
    name = str(columns["start"]).lower()
    whole = all(start.isdigit() for start in starts)
    if any(":" in start for start in starts):
        dataset["unit"], notes["unit"] = "clock", f"times look like {starts[0]}"
        return
    if re.search(r"(^|[^a-z])ms(ec)?([^a-z]|$)|milli", name):
        dataset["unit"], notes["unit"] = "ms", f"by the name {columns['start']}"
    elif "frame" in name or (whole and max(map(int, starts)) > LONGEST_SECONDS):
        dataset["unit"] = "frames"
        dataset["labels_fps"], notes["labels_fps"] = guessed_label_rate(path)
        notes["unit"] = (
            "by the name of the column" if "frame" in name else "a guess: large whole numbers"
        )
    else:
        dataset["unit"] = "s"
        notes["unit"] = "or ms, frames (with labels_fps), clock (hh:mm:ss)"
    if whole and dataset["unit"] != "s":
        pairs = [
            (row["stop"], after["start"])
            for row, after in pairwise(rows)
            if row.get("stop", "").isdigit()
        ]
        touching = sum(int(b) == int(a) + 1 for a, b in pairs)
        if pairs and touching > len(pairs) / 2:
            dataset["inclusive"] = True
            notes["inclusive"] = "most segments start one after the end of the one before"
        if min(map(int, starts)) == 1:
            dataset["base"] = 1
            notes["base"] = "the first number is 1"
