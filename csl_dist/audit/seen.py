"""Labels that an audit saw, all videos' in one table: a row a segment.

Scores have the labels of their video beside them, frame by frame. Whoever needs those of many
videos, or the label of one frame, reads this instead.
"""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from csl_dist.lint.sequences import Step
from csl_dist.types import UNLABELLED, Annotation, IntArray, frame_seconds, runs_of

COLUMNS = (
    *("video", "start", "stop", "label", "start_seconds", "stop_seconds"),
    *("frame_seconds", "duration"),
)


def seen_table(annotations: Iterable[Annotation]) -> pd.DataFrame:
    """Segments of videos, those without a label among them."""
    rows = []
    for annotation in annotations:
        times_T, labels_T = annotation.times_T, annotation.labels_T
        rate = frame_seconds(times_T)
        for run in runs_of(labels_T):
            begun, ended = float(times_T[run.start]), float(times_T[run.stop - 1]) + rate
            label = int(labels_T[run.start])
            row = (annotation.video, run.start, run.stop, label, begun, ended)
            rows.append((*row, rate, annotation.duration))
    return pd.DataFrame(rows, columns=list(COLUMNS))


class SeenLabels:
    """The table of one audit, by video."""

    def __init__(self, table: pd.DataFrame):
        names_N = table.video.to_numpy()
        edges = np.flatnonzero(names_N[1:] != names_N[:-1]) + 1
        bounds = [0, *edges.tolist(), len(names_N)] if len(names_N) else [0]
        self._rows = {str(names_N[a]): slice(a, b) for a, b in pairwise(bounds)}
        self._columns = {name: table[name].to_numpy() for name in COLUMNS[1:]}

    def __repr__(self) -> str:
        return f"SeenLabels({len(self._rows)} videos)"

    def __contains__(self, video: str) -> bool:
        return video in self._rows

    def labels(self, video: str) -> IntArray:
        """Class ids (T,) of a video's frames."""
        starts_N, stops_N, labels_N = self._of(video, "start", "stop", "label")
        labels_T: IntArray = np.repeat(labels_N, stops_N - starts_N)
        return labels_T

    def steps(self, video: str, classes: tuple[str, ...]) -> tuple[Step, ...]:
        """Labelled segments of a video, as lint reads them."""
        columns = self._of(video, "label", "start_seconds", "stop_seconds")
        return tuple(
            Step(label=classes[label], start_seconds=start, stop_seconds=stop)
            for label, start, stop in zip(*(column.tolist() for column in columns), strict=True)
            if label != UNLABELLED
        )

    def length(self, video: str) -> tuple[float, float]:
        """Seconds of a frame, and of the whole source; the latter 0 where nobody knows."""
        frame_N, whole_N = self._of(video, "frame_seconds", "duration")
        return float(frame_N[0]), float(whole_N[0])

    def _of(self, video: str, *columns: str) -> list[npt.NDArray[Any]]:
        return [self._columns[name][self._rows[video]] for name in columns]


def order_of_classes(labels: Iterable[IntArray], num_classes: int) -> list[int]:
    """All class ids in the order in which the steps of these videos come, on average."""
    places: dict[int, list[float]] = {}
    for labels_T in labels:
        for label in np.unique(labels_T):
            place = float(np.flatnonzero(labels_T == label).mean()) / len(labels_T)
            places.setdefault(int(label), []).append(place)
    return sorted(range(num_classes), key=lambda i: float(np.mean(places.get(i, [np.inf]))))
