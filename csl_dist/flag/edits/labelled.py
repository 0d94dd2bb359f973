"""Labels of a dataset's videos, and what they say of a video: those of other groups alone."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any

import numpy as np
import pandas as pd

from csl_dist.data.segments import Segment, labels_of, segments_of
from csl_dist.flag.edits.statistics import Counts, Statistics, counts_of, statistics_of
from csl_dist.types import IntArray

KEPT_GROUPS = 8
"""Groups whose statistics are kept: videos of one group come one after the other, or nearly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledVideo:
    """A video's labels, and who must not speak about it."""

    id: str
    group: str
    """The person, or the video itself where people are not told."""
    labels_T: IntArray
    fps: float


class OtherLabels:
    """Statistics of all videos but those of one group.

    Where there is a single group nothing would be left, so that each video stands for itself. Of
    all counts only the sum is held; a group's own are counted again when it is left out.
    """

    def __init__(self, videos: Sequence[LabelledVideo], *, num_classes: int):
        grouped = len({video.group for video in videos}) > 1
        self._group_of = {v.id: v.group if grouped else v.id for v in videos}
        self._members: dict[str, list[LabelledVideo]] = {}
        for video in videos:
            self._members.setdefault(self._group_of[video.id], []).append(video)
        self._num_classes = num_classes
        empty = counts_of(np.empty(0, dtype=int), num_classes=num_classes, fps=1.0)
        self._nothing = empty - empty  # a video without labels counts as one with no step
        self._total = self._counts(videos)
        self._without = lru_cache(KEPT_GROUPS)(self._statistics_without)

    def __repr__(self) -> str:
        return f"OtherLabels({len(self._group_of)} videos, {len(self._members)} groups)"

    def __getstate__(self) -> dict[str, Any]:
        """All but the statistics that are kept, which another process makes anew."""
        return {name: value for name, value in vars(self).items() if name != "_without"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._without = lru_cache(KEPT_GROUPS)(self._statistics_without)

    @property
    def videos(self) -> list[LabelledVideo]:
        """All of them, group by group."""
        return [video for members in self._members.values() for video in members]

    def everyone(self) -> Statistics:
        """Statistics of all videos."""
        return statistics_of(self._total)

    def about(self, video: str) -> Statistics:
        """Statistics of the labels of all groups but the video's own."""
        return self._without(self._group_of[video])

    def _statistics_without(self, group: str) -> Statistics:
        return statistics_of(self._total - self._counts(self._members[group]))

    def _counts(self, videos: Iterable[LabelledVideo]) -> Counts:
        own = (counts_of(v.labels_T, num_classes=self._num_classes, fps=v.fps) for v in videos)
        return reduce(lambda a, b: a + b, own, self._nothing)


SEGMENT_COLUMNS = ("video", "group", "fps", "start", "stop", "label")


def segments_table(videos: Iterable[LabelledVideo]) -> pd.DataFrame:
    """Labels as a table, a row a segment, those without a label among them."""
    rows = [
        (video.id, video.group, video.fps, *segment)
        for video in videos
        for segment in segments_of(video.labels_T)
    ]
    return pd.DataFrame(rows, columns=list(SEGMENT_COLUMNS))


def videos_of_table(table: pd.DataFrame) -> list[LabelledVideo]:
    """The labels that `segments_table` made a table of."""
    return [
        LabelledVideo(
            id=str(video),
            group=str(own["group"].iloc[0]),
            fps=float(own.fps.iloc[0]),
            labels_T=labels_of(
                Segment(int(start), int(stop), int(label))
                for start, stop, label in own[["start", "stop", "label"]].itertuples(index=False)
            ),
        )
        for video, own in table.groupby("video", sort=False)
    ]
