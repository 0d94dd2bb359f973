"""A video file: the times of its frames, and their pixels at the wanted times.

Frames are taken by timestamp, never by counting: the list of timestamps comes from the packets,
without decoding, and a decoder that delivers other frames than those listed is an error.
"""

import itertools
from collections import deque
from collections.abc import Iterator
from typing import Any

import av
import numpy as np

from csl_dist.data.content import Contents
from csl_dist.data.media.display import Pixels, pixel_shape, shown
from csl_dist.data.text import require_file
from csl_dist.errors import DataError
from csl_dist.storage.files import is_url, open_file
from csl_dist.types import FloatArray, IntArray, fingerprint

HEAD_PACKETS = 64
"""Packets among which the first frame's timestamp surely is."""
MOST_REORDERED = 16
"""Frames by which decoding order and order of showing differ at the most."""
RANGE_SLACK = 1e-3
"""Seconds by which a range of a file may miss the time of its first frame."""
FORMATS_WITHOUT_ORDER = ("avi",)
"""Containers whose timestamps do not tell the order in which frames are shown."""


class VideoFile:
    """A file that FFmpeg reads: mp4, avi, mkv and others; or a range of its seconds."""

    def __init__(self, path: str, start_seconds: float = 0.0, stop_seconds: float | None = None):
        self.path = path
        self._start, self._stop = start_seconds, stop_seconds

    def __repr__(self) -> str:
        if not self._is_part:
            return f"VideoFile({self.path!r})"
        return f"VideoFile({self.path!r}, {self._start:g} to {self._stop} s)"

    @property
    def _is_part(self) -> bool:
        """Whether the video is a range of the file, whose first frame is its second 0."""
        return self._start > 0 or self._stop is not None

    def times(self) -> FloatArray:
        """Timestamps of all frames in seconds from the first one, ascending, without decoding."""
        with _open(self.path) as container:
            stream = container.streams.video[0]
            ticks = self._ticks(container, stream)
            if not len(ticks) and self._is_part:
                raise DataError(
                    f"{self.path} has no frames from {self._start:g} s to {self._stop} s"
                )
            if not len(ticks):
                raise DataError(
                    f"{self.path} has no frames with timestamps; is the file complete? A raw "
                    "stream must be put into a container such as mp4"
                )
            return (ticks - ticks[0]) * float(stream.time_base)

    def decode(self, times_T: FloatArray) -> Iterator[Pixels | DataError]:
        """RGB frames (height, width, 3) at the given times, which must be timestamps of the file.

        Frames are as players show them: turned as the file asks, with square pixels.
        A frame that can't be decoded comes as the error that says so, and the next ones follow.
        Seeks to the key frame before the first wanted frame, then reads on; holds one frame. Where
        a frame is missing then, because a container without an index seeks too far or a key frame
        is broken, the file is read from the beginning instead.
        """
        with _open(self.path) as container:
            stream = container.streams.video[0]
            time_base = float(stream.time_base)
            in_order = container.format.name not in FORMATS_WITHOUT_ORDER
            ticks = self._ticks(container, stream, HEAD_PACKETS if in_order else None)
        wanted = deque(np.round(times_T / time_base).astype(np.int64) + ticks[0])
        for seek in (True, False):
            if not wanted:
                return
            with _open(self.path) as container:
                stream = container.streams.video[0]
                # Decoders run side by side on CPU shares; threads of their own would crowd them.
                stream.codec_context.thread_count = 1
                if seek:
                    # Containers without order are searched by decoding time, which runs ahead.
                    start = int(wanted[0])
                    start = start if in_order else max(0, start - MOST_REORDERED)
                    container.seek(start, stream=stream, backward=True)
                shape = pixel_shape(stream)
                delivered = _delivered(container, stream)
                for tick, frame in delivered if in_order else _counted(delivered, ticks):
                    while not seek and wanted and tick > wanted[0]:
                        yield self._bad_frame((wanted.popleft() - ticks[0]) * time_base)
                    if frame is not None and wanted and tick == wanted[0]:
                        wanted.popleft()
                        yield shown(frame, shape)
                    if not wanted or tick > wanted[0]:
                        break
        yield from (self._bad_frame((tick - ticks[0]) * time_base) for tick in wanted)

    def _bad_frame(self, seconds: float) -> DataError:
        return DataError(
            f"{self.path}: the frame at {seconds:.2f} s can't be decoded; re-encode the file, or "
            "set features.on_bad_frame: repeat_last"
        )

    def content(self, contents: Contents) -> str:
        """Changes when the file is replaced by another."""
        content = contents.of_video(self.path)
        return fingerprint(content, self._start, self._stop) if self._is_part else content

    def _ticks(self, container: Any, stream: Any, num_packets: int | None = None) -> IntArray:
        """Timestamps of the frames that belong to the video; of the first ones alone, if asked."""
        if not self._is_part:
            return _ticks(container, stream, num_packets)
        unit = float(stream.time_base)
        origin = int(_ticks(container, stream, HEAD_PACKETS)[0])
        low = origin + round((self._start - RANGE_SLACK) / unit)
        high = None if self._stop is None else origin + round((self._stop - RANGE_SLACK) / unit)
        if container.format.name in FORMATS_WITHOUT_ORDER:
            container.seek(0, stream=stream)
            ticks = _ticks(container, stream)
        else:
            container.seek(max(origin, low), stream=stream, backward=True)
            ticks = _ticks(container, stream, num_packets, low=low, high=high)
        return ticks[(ticks >= low) & (ticks < (np.inf if high is None else high))]


def header_rate(path: str) -> float | None:
    """Frames a second as a file's header has it, which need not be true; None if it has none."""
    try:
        with _open(path) as container:
            rate = container.streams.video[0].average_rate
    except DataError:
        return None
    return float(rate) if rate else None


def _ticks(
    container: Any,
    stream: Any,
    num_packets: int | None = None,
    *,
    low: int | None = None,
    high: int | None = None,
) -> IntArray:
    """Timestamps of the packets, ascending, in the stream's own unit.

    `num_packets` counts from the first at or after `low`; reading ends some packets after `high`.
    """
    shown: list[int] = []
    num_inside = num_behind = 0
    try:
        for packet in container.demux(stream):
            if packet.pts is None or packet.is_discard:
                continue
            shown.append(packet.pts)
            num_inside += low is None or packet.pts >= low
            num_behind += high is not None and packet.pts >= high
            if num_inside == num_packets or num_behind > MOST_REORDERED:
                break
        return np.array(sorted(shown), dtype=np.int64)
    except av.FFmpegError as error:
        raise DataError(f"{container.name} is broken: {error}") from error


def _delivered(container: Any, stream: Any) -> Iterator[tuple[int, Any]]:
    """Timestamp and frame of everything that the decoder delivers; None for a broken frame."""
    for packet in container.demux(stream):
        try:
            frames = packet.decode()
        except av.InvalidDataError:
            if packet.pts is not None:
                yield packet.pts, None
            continue
        for frame in frames:
            if frame.pts is not None:
                yield frame.pts, None if frame.is_corrupt else frame


def _counted(delivered: Iterator[tuple[int, Any]], ticks: IntArray) -> Iterator[tuple[int, Any]]:
    """Gives frames the file's timestamps by counting on from the first key frame.

    AVI keeps no presentation times: with B-frames, FFmpeg delivers frames in the right order but
    with timestamps such as 1, 3, 2, 5, 4.
    """
    started = itertools.dropwhile(lambda item: item[1] is None or not item[1].key_frame, delivered)
    first = next(started, None)
    if first is not None:
        place = int(np.searchsorted(ticks, first[0]))
        frames = itertools.chain([first], started)
        yield from zip(ticks[place:].tolist(), (frame for _, frame in frames), strict=False)


def _open(path: str) -> Any:
    require_file(path)
    try:
        container = av.open(open_file(path) if is_url(path) else path)
    except (av.FFmpegError, OSError, UnicodeError, ValueError) as error:
        raise DataError(f"can't open the video {path}: {error}") from error
    if not container.streams.video or container.streams.video[0].time_base is None:
        container.close()
        raise DataError(f"{path} has no video stream")
    return container
