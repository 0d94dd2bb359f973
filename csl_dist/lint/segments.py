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

from csl_dist.lint.reading import SCORES, Reading
from csl_dist.lint.rules.times import flickers

PLACE = ("video", "start_s", "stop_s", "label")
EVIDENCE = ("order", "swap", "surprise", "precedence", "inserted", "missing", "duration", "flicker")
PROBABILITIES = tuple(f"{kind.value}_probability" for kind in SCORES)
COLUMNS = (*PLACE, *EVIDENCE, *PROBABILITIES)


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentTable:
    """Columns of equal length; segments of a video stand in order of their start."""

    names: tuple[str, ...]
    """Videos; `video_N` holds positions in it."""
    labels: tuple[str, ...]
    video_N: npt.NDArray[Any]
    label_N: npt.NDArray[Any]
    values: dict[str, npt.NDArray[Any]]
    """By name of the column: times, evidence and probabilities."""

    def __len__(self) -> int:
        return len(self.video_N)

    def rows(self) -> Iterator[dict[str, str | float]]:
        """Row by row, keys as in `COLUMNS`."""
        for n in range(len(self)):
            yield {
                "video": self.names[int(self.video_N[n])],
                "start_s": float(self.values["start_s"][n]),
                "stop_s": float(self.values["stop_s"][n]),
                "label": self.labels[int(self.label_N[n])],
                **{name: float(self.values[name][n]) for name in (*EVIDENCE, *PROBABILITIES)},
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
        return value
    return "" if np.isnan(value) else f"{value:.6g}"


def segment_table(reading: Reading) -> SegmentTable:
    """Everything that lint knows of each segment."""
    corpus, order = reading.corpus, reading.order
    usual = reading.durations.usual_seconds
    values: dict[str, npt.NDArray[Any]] = {
        "start_s": corpus.start_N,
        "stop_s": corpus.stop_N,
        **{name: getattr(order, name) for name in EVIDENCE[:6]},
        "duration": np.where(reading.durations.members < 0, np.nan, reading.durations.distance),
        "flicker": flickers(corpus, usual).astype(np.float32),
    }
    unknown = np.full(corpus.num_segments, np.nan, np.float32)
    for kind in SCORES:
        values[f"{kind.value}_probability"] = reading.probabilities.get(kind, unknown)
    return SegmentTable(
        names=tuple(about.video for about in corpus.about),
        labels=corpus.labels,
        video_N=corpus.video_N(),
        label_N=corpus.label_N,
        values=values,
    )
