"""Label tracks: the class of a video at any second, from entries at a rate or from segments."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from csl_dist.records import UNLABELLED, FloatArray, IntArray, Timeline


class LabelTrack(Protocol):
    """The labels of one video."""

    def at(self, times_T: FloatArray) -> IntArray:
        """Class ids (T,) at the given seconds; UNLABELLED where there is no label."""
        ...

    def misfit(self, timeline: Timeline) -> str | None:
        """What differs where the labels do not cover the video's frames, in words."""
        ...

    def num_frames(self, fps: float) -> int:
        """How many frames at a rate the labels lead one to expect."""
        ...


@dataclass(frozen=True, slots=True)
class EntryTrack:
    """One class id after the other, at a rate."""

    ids_N: IntArray
    fps: float

    def at(self, times_T: FloatArray) -> IntArray:
        index_T = np.floor(times_T * self.fps + 0.5).astype(np.int64)
        inside_T = index_T < len(self.ids_N)
        ids_T = np.full(len(times_T), UNLABELLED, dtype=np.int64)
        ids_T[inside_T] = self.ids_N[index_T[inside_T]]
        return ids_T

    def misfit(self, timeline: Timeline) -> str | None:
        """Counts must agree at equal rates, and to within one frame of the coarser rate else."""
        expected = timeline.duration * self.fps
        same_rate = abs(timeline.source_fps - self.fps) < 0.01 * self.fps
        slack = 0.5 if same_rate else max(1.0, self.fps / timeline.source_fps)
        if abs(len(self.ids_N) - expected) <= slack:
            return None
        return f"{len(self.ids_N):,} labels but {round(expected):,} frames at {self.fps:g} fps"

    def num_frames(self, fps: float) -> int:
        return round(len(self.ids_N) * fps / self.fps)


@dataclass(frozen=True, slots=True)
class SegmentTrack:
    """Class ids of half-open segments in seconds; a later segment wins where two overlap."""

    starts_S: FloatArray
    stops_S: FloatArray
    ids_S: IntArray
    duration: float | None = None
    """Seconds of the video, where the annotation tells."""

    def at(self, times_T: FloatArray) -> IntArray:
        ids_T = np.full(len(times_T), UNLABELLED, dtype=np.int64)
        for start, stop, label in zip(self.starts_S, self.stops_S, self.ids_S, strict=True):
            # Half a microsecond, so that 0.3 s is inside a segment that starts at 0.1 + 0.2.
            ids_T[(times_T >= start - 5e-7) & (times_T < stop - 5e-7)] = label
        return ids_T

    def misfit(self, timeline: Timeline) -> str | None:
        """Labels may end before the video does, but not more than a second after it."""
        last = float(self.stops_S.max(initial=0.0))
        if last <= timeline.duration + 1.0:
            return None
        return f"labels end at {last:.1f} s but the video at {timeline.duration:.1f} s"

    def num_frames(self, fps: float) -> int:
        end = self.duration if self.duration is not None else float(self.stops_S.max(initial=0.0))
        return round(end * fps)
