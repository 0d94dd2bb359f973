"""Timelines: which frames of a source are used, and when they are shown."""

import numpy as np

from csl_dist.types import FloatArray, IntArray, Timeline, frame_seconds


def sampled(times_N: FloatArray, fps: float | None) -> tuple[Timeline, IntArray]:
    """The frames nearest to 0, 1/fps, 2/fps …, and their indices; all of them where fps is None."""
    interval = frame_seconds(times_N, default=1 / (fps or 1.0))
    index_T = np.arange(len(times_N))
    if fps is not None:
        # The last frame is shown for one interval; half a one keeps rounding from adding a sample.
        wanted = np.arange(0.0, times_N[-1] + interval / 2, 1 / fps)
        index_T = np.unique(_nearest(times_N, wanted))
    timeline = Timeline(
        times_T=times_N[index_T],
        duration=float(times_N[-1]) + interval,
        source_fps=1 / interval,
    )
    return timeline, index_T


def _nearest(times_N: FloatArray, wanted: FloatArray) -> IntArray:
    after = np.searchsorted(times_N, wanted).clip(0, len(times_N) - 1)
    before = np.maximum(after - 1, 0)
    return np.where(wanted - times_N[before] <= times_N[after] - wanted, before, after)
