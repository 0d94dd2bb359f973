"""Copies of video files that browsers play, made once in the background and kept in a cache folder.

A copy is H.264 in mp4 with the times of the original, so that frames stay where labels are. It gets
its name when it is complete; several services on a machine may make the same one, and either is
right.
"""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import av

from csl_dist.data.media.display import display_matrix, pixel_shape
from csl_dist.types import fingerprint

CACHE_VARIABLE = "CSL_MEDIA_CACHE"
MAX_HEIGHT = 720
KEY_FRAME_SECONDS = 1
"""Seeking is quick where key frames are near."""
CLOCK = Fraction(1, 90_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """How far a copy is."""

    path: Path | None = None
    """None until it is complete."""
    share: float = 0.0
    problem: str | None = None
    """Why there will be none."""


_worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="csl-transcoding")
_lock = threading.Lock()
_shares: dict[Path, float] = {}
_problems: dict[Path, str] = {}


def playable_copy(source: str) -> Copy:
    """The copy of a file, which is started if there is none."""
    target = _place(source)
    if target.exists():
        return Copy(path=target)
    with _lock:
        if target in _problems:
            return Copy(problem=_problems[target])
        if target not in _shares:
            _shares[target] = 0.0
            _worker.submit(_make, source, target)
        return Copy(share=_shares[target])


def _place(source: str) -> Path:
    """Changes with the file, so that a file that was replaced gets a new copy."""
    facts = os.stat(source)
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(os.environ.get(CACHE_VARIABLE) or Path(cache) / "csl_dist" / "media")
    name = fingerprint(os.path.realpath(source), facts.st_size, facts.st_mtime_ns)
    return folder / f"{name}.mp4"


def _make(source: str, target: Path) -> None:
    part = target.with_suffix(f".{os.getpid()}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        transcode(source, part, lambda share: _shares.__setitem__(target, share))
        os.replace(part, target)
    except (OSError, ValueError, av.FFmpegError) as error:
        part.unlink(missing_ok=True)
        with _lock:
            _problems[target] = f"{source} can't be made into a file that browsers play ({error})"


def transcode(source: str, target: Path, tell: Any = lambda share: None) -> None:
    """Writes an mp4 of H.264 with the frame times of the source, and its sound if it has any.

    The copy asks players to turn and stretch its frames as the source does.
    """
    with av.open(source) as read, av.open(str(target), "w", format="mp4") as written:
        video = read.streams.video[0]
        video.thread_type = "AUTO"
        scale = min(1.0, MAX_HEIGHT / video.height)
        # H.264 with colours at half resolution needs even sides.
        width, height = (
            max(2, round(side * scale / 2) * 2) for side in (video.width, video.height)
        )
        rate = video.average_rate or Fraction(25)
        options = {"preset": "veryfast", "crf": "23", "movflags": "+faststart"}
        picture = written.add_stream("libx264", rate=rate, options=options)
        picture.width, picture.height, picture.pix_fmt = width, height, "yuv420p"
        picture.time_base = picture.codec_context.time_base = CLOCK
        picture.codec_context.sample_aspect_ratio = pixel_shape(video)
        picture.codec_context.gop_size = max(1, round(float(rate) * KEY_FRAME_SECONDS))
        sound = written.add_stream("aac", rate=48_000) if read.streams.audio else None
        length = float(read.duration or 0) / av.time_base
        streams = [video, *read.streams.audio[:1]]
        first: float | None = None
        for frame in read.decode(*streams):
            if isinstance(frame, av.VideoFrame):
                at = float(frame.time or 0.0)
                if first is None:
                    first = at
                    picture.set_display_matrix(display_matrix(frame).tolist())
                made = frame.reformat(width=width, height=height, format="yuv420p")
                made.pts, made.time_base = round((at - first) / CLOCK), CLOCK
                written.mux(picture.encode(made))
                tell(min(0.99, at / length) if length else 0.0)
            elif sound is not None:
                frame.pts = None
                written.mux(sound.encode(frame))
        written.mux(picture.encode(None))
        if sound is not None:
            written.mux(sound.encode(None))
