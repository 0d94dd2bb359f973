"""Formats that are tables: `segments`, as a config describes it, and those of some datasets."""

import csv
import io
import re
from dataclasses import dataclass
from typing import Any, ClassVar

from csl_dist.config import ColumnsConfig, SegmentsConfig
from csl_dist.data.documents.text import decoded
from csl_dist.data.documents.times import Times
from csl_dist.data.formats.format import stem_of, without_media_suffix
from csl_dist.data.formats.table import BLANKS, TableDocument, TableForm
from csl_dist.storage.files import beside, read_bytes


class SegmentsFormat:
    """Any table of times and labels; the config says what its columns mean."""

    name: ClassVar[str] = "segments"
    patterns: ClassVar[tuple[str, ...]] = ("*.csv", "*.tsv", "*.txt")
    needs_rate: ClassVar[bool] = False

    def looks_like(self, head: str) -> bool:
        """Any text may be a table; `csl init` drafts one where nothing else fits."""
        return True

    def parse(self, data: bytes, file: str, config: SegmentsConfig) -> TableDocument:
        times = Times(
            unit=config.unit, fps=config.labels_fps, base=config.base, inclusive=config.inclusive
        )
        form = TableForm(
            columns=config.columns,
            times=times,
            delimiter=config.delimiter,
            video_of=without_media_suffix,
            media=config.columns.video,
        )
        return TableDocument(decoded(data, file), form)


@dataclass(frozen=True, slots=True)
class TableFormat:
    """The table of one dataset."""

    name: str
    patterns: tuple[str, ...]
    form: TableForm
    first_line: str
    """Regular expression of its first line."""
    needs_rate: bool = False

    def looks_like(self, head: str) -> bool:
        return re.match(self.first_line, head.lstrip("\ufeff")) is not None

    def parse(self, data: bytes, file: str, config: Any) -> TableDocument:
        return TableDocument(decoded(data, file), self.form)


JIGSAWS = TableFormat(
    name="jigsaws",
    patterns=("transcriptions/*.txt", "gestures/*.txt", "*.txt"),
    form=TableForm(
        columns=ColumnsConfig(start=0, stop=1, label=2),
        times=Times(unit="frames", fps=30.0, base=1, inclusive=True),
        delimiter=BLANKS,
    ),
    first_line=r"\d+ +\d+ +G\d+\s",
)
"""`start end Gk`, in frames of 30 fps that count from 1, the end inside."""

ASSEMBLY101 = TableFormat(
    name="assembly101",
    patterns=("coarse_labels/*.txt", "*.txt"),
    form=TableForm(
        columns=ColumnsConfig(start=0, stop=1, label=2),
        times=Times(unit="frames", fps=30.0),
        delimiter="\t",
    ),
    first_line=r"\d+\t\d+\t[^\d\s]",
)
"""Coarse labels, `start<tab>end<tab>action`, in frames of 30 fps; the videos have 60."""

EPIC_CLASSES = {"verb": "EPIC_100_verb_classes.csv", "noun": "EPIC_100_noun_classes.csv"}
"""Files with the names of classes, where they lie beside the segments."""


class EpicKitchensFormat:
    """EPIC-KITCHENS-100: one table for all videos; verbs, nouns and narrations are its tracks."""

    name: ClassVar[str] = "epic_kitchens"
    patterns: ClassVar[tuple[str, ...]] = ("EPIC*.csv",)
    needs_rate: ClassVar[bool] = False

    def looks_like(self, head: str) -> bool:
        return head.lstrip("\ufeff").startswith("narration_id,participant_id,video_id,")

    def parse(self, data: bytes, file: str, config: Any) -> TableDocument:
        form = TableForm(
            columns=ColumnsConfig(
                video="video_id",
                start="start_timestamp",
                stop="stop_timestamp",
                group="participant_id",
            ),
            times=Times(unit="clock"),
            delimiter=",",
            labels={"verb": "verb_class", "noun": "noun_class", "narration": "narration"},
            names={t: _class_names(file, name, config.path) for t, name in EPIC_CLASSES.items()},
        )
        return TableDocument(decoded(data, file), form)


def _class_names(file: str, name: str, dataset: str) -> dict[str, str]:
    """Names by number, from beside the segments, or beside those that they correct."""
    original = dataset if dataset.endswith(".csv") else f"{dataset}/{file.rpartition('/')[2]}"
    data = b""
    for place in dict.fromkeys((beside(file, name), beside(original, name))):
        data = data or read_bytes(place, default=b"")
    rows = csv.DictReader(io.StringIO(decoded(data, name).text))
    return {row["id"]: row["key"] for row in rows if "key" in row}


BORIS_TABLE = TableForm(
    columns=ColumnsConfig(
        video="Media file", track="Subject", label="Behavior", start="Start (s)", stop="Stop (s)"
    ),
    times=Times(unit="s"),
    delimiter="\t",
    video_of=stem_of,
    only=("Behavior type", "STATE"),
    sequences="Observation id",
    media="Media file",
    lengths="Total length",
)
"""BORIS' aggregated events; its points have no length."""

SEGMENTS = SegmentsFormat()
EPIC_KITCHENS = EpicKitchensFormat()
