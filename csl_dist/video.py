"""A video file: the times of its frames, and their pixels at the wanted times.

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


class VideoFile:
    """A file that FFmpeg reads: mp4, avi, mkv and others."""

    def __init__(self, path: str):
        self.path = path

    def __repr__(self) -> str:
        return f"VideoFile({self.path!r})"

    def times(self) -> FloatArray:
        """Timestamps of all frames in seconds from the first one, ascending, without decoding."""
        with _open(self.path) as container:
            stream = container.streams.video[0]
            ticks = sorted(p.pts for p in container.demux(stream) if p.pts is not None)
            if not ticks:
                raise DataError(f"{self.path} has no video frames; is the file complete?")
            return (np.array(ticks) - ticks[0]) * float(stream.time_base)

    def decode(self, times_T: FloatArray) -> Iterator[Pixels]:
        """RGB frames (height, width, 3) at the given times, which must be timestamps of the file.

        Seeks once to the key frame before the first wanted frame, then reads on; holds one frame.
        """
        with _open(self.path) as container:
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
            raise DataError(
                f"{self.path}: the frame at {at:.2f} s can't be decoded; re-encode the file"
            )

    def facts(self) -> dict[str, Any]:
        return file_facts(self.path)


def file_facts(path: str) -> dict[str, Any]:
    """What tells a replaced file from the one that was read: size, time, hash of its head."""
    try:
        stat = Path(path).stat()
        with Path(path).open("rb") as file:
            head = hashlib.sha256(file.read(65536)).hexdigest()[:16]
    except OSError as error:
        raise DataError(f"can't read {path}: {error.strerror}") from error
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
