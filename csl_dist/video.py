"""Decode the frames of a video file at the wanted times.

Frames are taken by timestamp, never by counting: the list of timestamps comes from the packets,
without decoding, and a decoder that delivers other frames than those listed is an error.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import numpy as np
import numpy.typing as npt

from csl_dist.errors import DataError
from csl_dist.records import FloatArray

Pixels = npt.NDArray[np.uint8]


def frame_times(path: str) -> FloatArray:
    """Timestamps of all frames in seconds from the first one, ascending, without decoding."""
    with _open(path) as container:
        stream = container.streams.video[0]
        ticks = sorted(p.pts for p in container.demux(stream) if p.pts is not None)
        if not ticks:
            raise DataError(f"{path} has no video frames; is the file complete?")
        return (np.array(ticks) - ticks[0]) * float(stream.time_base)


def sampled_times(times_N: FloatArray, fps: float | None) -> FloatArray:
    """The times of the frames nearest to 0, 1/fps, 2/fps …; all of them where fps is None."""
    if fps is None:
        return times_N
    interval = float(np.median(np.diff(times_N))) if len(times_N) > 1 else 1 / fps
    # The last frame is shown for one interval; half a one keeps rounding from adding a sample.
    wanted = np.arange(0.0, times_N[-1] + interval / 2, 1 / fps)
    after = np.searchsorted(times_N, wanted).clip(1, max(1, len(times_N) - 1))
    before = after - 1
    after = np.minimum(after, len(times_N) - 1)
    nearest = np.where(wanted - times_N[before] <= times_N[after] - wanted, before, after)
    return times_N[np.unique(nearest)]


def decode(path: str, times_T: FloatArray) -> Iterator[Pixels]:
    """RGB frames (height, width, 3) at the given times, which must be timestamps of the file.

    Seeks once to the key frame before the first wanted frame, then reads on; holds one frame.
    """
    with _open(path) as container:
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        time_base = float(stream.time_base)
        first_tick = stream.start_time or 0
        wanted = iter(np.round(times_T / time_base).astype(np.int64) + first_tick)
        target = next(wanted, None)
        if target is None:
            return
        container.seek(int(target), stream=stream, backward=True)
        for frame in container.decode(stream):
            if frame.pts is None or frame.pts < target:
                continue
            if frame.pts > target:
                break
            yield frame.to_ndarray(format="rgb24")
            target = next(wanted, None)
            if target is None:
                return
        at = (int(target) - first_tick) * time_base
        raise DataError(f"{path}: the frame at {at:.2f} s can't be decoded; re-encode the file")


def source_facts(path: str) -> dict[str, Any]:
    """What tells a replaced video file from the one that was read."""
    try:
        stat = Path(path).stat()
        with Path(path).open("rb") as file:
            head = hashlib.sha256(file.read(65536)).hexdigest()[:16]
    except OSError as error:
        raise DataError(f"can't read the video {path}: {error.strerror}") from error
    return {"size": stat.st_size, "modified_ns": stat.st_mtime_ns, "head": head}


def _open(path: str) -> Any:
    try:
        container = av.open(path)
    except (av.FFmpegError, OSError) as error:
        raise DataError(f"can't open the video {path}: {error}") from error
    if not container.streams.video:
        container.close()
        raise DataError(f"{path} has no video stream")
    return container
