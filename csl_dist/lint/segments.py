"""One row a segment, with every evidence as a column; higher is more suspicious.

The audit reads this table as well; a column that can't be computed is NaN, never 0.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from csl_dist.lint.corpus import About
from csl_dist.lint.reading import SCORES, Reading
from csl_dist.lint.rules.times import flickers
from csl_dist.storage.spreadsheet import as_text

PLACE = ("video", "annotator", "start_s", "stop_s", "label")
EVIDENCE = ("order", "swap", "surprise", "precedence", "inserted", "missing", "duration", "flicker")
PROBABILITIES = tuple(f"{kind.value}_probability" for kind in SCORES)
COLUMNS = (*PLACE, *EVIDENCE, *PROBABILITIES)


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentTable:
    """Columns of equal length; segments of a video stand in order of their start."""

    files: tuple[About, ...]
    """What is known of each label file; `file_N` holds positions in it."""
    labels: tuple[str, ...]
    file_N: npt.NDArray[Any]
    label_N: npt.NDArray[Any]
    values: dict[str, npt.NDArray[Any]]
    """By name of the column: times, evidence and probabilities."""

    def __len__(self) -> int:
        return len(self.file_N)

    def rows(self) -> Iterator[dict[str, str | float]]:
        """Row by row, keys as in `COLUMNS`."""
        for n in range(len(self)):
            about = self.files[int(self.file_N[n])]
            yield {
                "video": about.video,
                "annotator": about.annotator or "",
                "start_s": float(self.values["start_s"][n]),
                "stop_s": float(self.values["stop_s"][n]),
                "label": self.labels[int(self.label_N[n])],
                **{name: float(self.values[name][n]) for name in (*EVIDENCE, *PROBABILITIES)},
            }

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """All of `COLUMNS` as arrays."""
        about = [self.files[int(number)] for number in self.file_N]
        return {
            "video": np.array([one.video for one in about], object),
            "annotator": np.array([one.annotator or "" for one in about], object),
            "start_s": self.values["start_s"],
            "stop_s": self.values["stop_s"],
            "label": np.array([self.labels[int(label)] for label in self.label_N], object),
            **{name: self.values[name] for name in (*EVIDENCE, *PROBABILITIES)},
        }

    def write_csv(self, path: Path) -> None:
        """A header and one line a segment; fields that can't be computed are empty."""
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            for row in self.rows():
                writer.writerow([_field(row[name]) for name in COLUMNS])


def _field(value: str | float) -> str:
    if isinstance(value, str):
        return as_text(value)
    return "" if np.isnan(value) else f"{value:.6g}"


def segment_table(reading: Reading) -> SegmentTable:
    """Everything that lint knows of each segment."""
    corpus, order = reading.corpus, reading.order
    steps_N = np.flatnonzero(~reading.background_N)

    def spread(values: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
        """What is known of steps, over all segments; order says nothing of background."""
        all_N = np.full(corpus.num_segments, np.nan, np.float32)
        if values is not None:
            all_N[steps_N] = values
        return all_N

    values: dict[str, npt.NDArray[Any]] = {
        "start_s": corpus.start_N,
        "stop_s": corpus.stop_N,
        **{name: spread(getattr(order, name)) for name in EVIDENCE[:6]},
        "duration": np.where(reading.durations.level < 0, np.nan, reading.durations.distance),
        "flicker": flickers(reading).astype(np.float32),
    }
    for kind in SCORES:
        values[f"{kind.value}_probability"] = spread(reading.probabilities.get(kind))
    return SegmentTable(
        files=corpus.about,
        labels=corpus.labels,
        file_N=corpus.video_N(),
        label_N=corpus.label_N,
        values=values,
    )
