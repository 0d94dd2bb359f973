"""Dataset: classes, videos and their labels, whatever the layout on disk."""

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from csl_dist.errors import DataError
from csl_dist.records import ErrorKind, FloatArray, IntArray, PlantedError, Span, Split, Video


@dataclass(frozen=True, slots=True)
class LabelTrack:
    """Class ids of a video at a fixed rate; UNLABELLED where there is no label."""

    ids_N: IntArray
    fps: float

    def at(self, times_T: FloatArray) -> IntArray:
        """Class ids of frames at given seconds; a time after the last entry is out of range."""
        index_T = np.floor(times_T * self.fps + 0.5).astype(np.int64)
        return self.ids_N[index_T]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Annotated videos; labels are read when asked for."""

    classes: tuple[str, ...]
    videos: tuple[Video, ...]
    read_track: Callable[[Video], LabelTrack]

    def in_split(self, *splits: Split) -> list[Video]:
        return [video for video in self.videos if video.split in splits]

    def labels(self, video: Video, times_T: FloatArray) -> IntArray:
        """Class ids (T,) of a video's frames at the given seconds."""
        track = self.read_track(video)
        num_needed = int(np.floor(times_T[-1] * track.fps + 0.5)) + 1
        num_labels = len(track.ids_N)
        # The last frame may lie half a label entry beyond the last one; more is a mismatch.
        if abs(num_needed - num_labels) > max(1.0, track.fps * (times_T[-1] / len(times_T))):
            raise DataError(
                f"video {video.id!r}: {num_labels:,} labels ({video.labels}) but {num_needed:,} "
                f"frames at {track.fps:g} fps ({video.source}); correct the file or `fps`"
            )
        if num_needed > num_labels:
            return LabelTrack(np.append(track.ids_N, track.ids_N[-1]), track.fps).at(times_T)
        return track.at(times_T)


def read_errors(path: str) -> list[PlantedError]:
    """Known label errors from a CSV with columns video, kind, start, stop, true_label."""
    try:
        with Path(path).open(newline="") as file:
            return [
                PlantedError(
                    video=row["video"],
                    kind=ErrorKind(row["kind"]),
                    span=Span(int(row["start"]), int(row["stop"])),
                    true_label=row["true_label"] or None,
                )
                for row in csv.DictReader(file)
            ]
    except OSError as error:
        raise DataError(f"can't read the known errors {path}: {error.strerror}") from error
    except (KeyError, ValueError) as error:
        raise DataError(
            f"{path}: expected columns video, kind (mislabel or disorder), start, stop, "
            f"true_label; got {error}"
        ) from error
