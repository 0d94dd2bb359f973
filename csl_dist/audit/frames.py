"""Scores of frames that the rule `edits` gives: all videos' in one array of an audit.

Videos lie one after the other, so that an audit of thousands of videos has few files; where each
lies is among the array's attributes.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from csl_dist.measures import FRAME_SCORES
from csl_dist.storage.paths import RunPaths
from csl_dist.storage.url import Storage
from csl_dist.storage.zarr import create_array, open_array
from csl_dist.types import FloatArray

CHUNK_FRAMES = 65_536
"""Frames in one file: half a megabyte."""
PLACES = "places"
"""The attribute with first frame and end of every video."""


def put_frames(folder: Storage, frames: Mapping[str, FloatArray]) -> None:
    """Writes scores (2, T) of each video's frames, rows as in FRAME_SCORES."""
    ends = np.cumsum([0, *(scores.shape[1] for scores in frames.values())]).tolist()
    array = create_array(
        folder,
        RunPaths.FRAMES,
        shape=(len(FRAME_SCORES), ends[-1]),
        chunks=(len(FRAME_SCORES), CHUNK_FRAMES),
        dtype="float32",
        attributes={PLACES: dict(zip(frames, pairwise(ends), strict=True))},
    )
    array[:] = np.concatenate(list(frames.values()), axis=1)


class FrameScores:
    """The array of one audit, opened once."""

    def __init__(self, folder: Storage):
        self._array = open_array(folder, RunPaths.FRAMES)
        places: Any = self._array.attrs[PLACES]
        self._places: dict[str, tuple[int, int]] = places

    def __repr__(self) -> str:
        return f"FrameScores({len(self._places)} videos)"

    def __contains__(self, video: str) -> bool:
        return video in self._places

    def read(self, video: str, name: str) -> FloatArray:
        """One of FRAME_SCORES (T,) of a video; NaN on frames without a label."""
        start, stop = self._places[video]
        return np.asarray(self._array[FRAME_SCORES.index(name), start:stop])
