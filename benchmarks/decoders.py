"""PyAV, by which the product decodes, beside torchcodec: the same frames, and how fast each is.

    python benchmarks/decoders.py [--frames 500] [--json]

Where torchcodec is not installed, or does not load, PyAV's figures stand alone. One thread each, in
seconds of the CPU. Frames are compared on files that are hard to read by time: `same` counts those
with equal pixels, `other` those that differ, `stopped` those that torchcodec does not give,
`broken` those that PyAV says can't be decoded and that torchcodec shows nevertheless.
"""

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import torch
from figures import parser_of, positive, print_figures

from csl_dist.cost.measure import write_video
from csl_dist.data.media.display import Pixels
from csl_dist.data.media.video import VideoFile
from csl_dist.errors import DataError
from csl_dist.types import FloatArray

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
import builder

SIZES = {"480p": (854, 480), "720p": (1280, 720)}
SAMPLING = {"all frames": 1, "every 5th": 5}
DAMAGES = 30
AT_ONCE = 4
"""Frames that torchcodec is asked for; with 16 of 720p it takes more CPU than one at a time."""


def pyav_frames(path: str, times_T: FloatArray) -> Iterator[Pixels | DataError]:
    return VideoFile(path).decode(times_T)


def torchcodec_frames(path: str, times_T: FloatArray) -> Iterator[Pixels]:
    """Frames at times from the first frame's, half a millisecond into each."""
    from torchcodec.decoders import VideoDecoder

    decoder = VideoDecoder(path, num_ffmpeg_threads=1, dimension_order="NHWC")
    first = decoder.metadata.begin_stream_seconds
    for place in range(0, len(times_T), AT_ONCE):
        wanted = first + times_T[place : place + AT_ONCE] + 5e-4
        yield from decoder.get_frames_played_at(wanted.tolist()).data.numpy()


def decoders() -> dict[str, Any]:
    """Those that load here, by name."""
    try:
        import torchcodec.decoders  # noqa: F401
    except (ImportError, OSError, RuntimeError) as error:
        print(f"torchcodec is left out: {str(error).splitlines()[0]}", file=sys.stderr)
        return {"pyav": pyav_frames}
    return {"pyav": pyav_frames, "torchcodec": torchcodec_frames}


def decoding_rates(path: Path, every: int) -> dict[str, int]:
    """Frames that are delivered in a second of one core, by decoder; the better of two passes."""
    torch.set_num_threads(1)
    times_T = VideoFile(str(path)).times()[::every]
    found = {}
    for name, decode in decoders().items():
        seconds = []
        for _ in range(2):
            begun = time.process_time()
            num_frames = sum(1 for _ in decode(str(path), times_T))
            seconds.append(time.process_time() - begun)
        found[name] = round(num_frames / min(seconds))
    return found


def write_hard_files(folder: Path) -> Iterator[Path]:
    """Files whose frames do not come at a fixed rate, in order, upright, square or whole."""
    pictures = list(builder.grey_pictures(range(0, 200, 2), size=64))
    b_frames = {"bf": "3", "g": "24", "crf": "1"}
    times = np.cumsum(np.random.default_rng(0).integers(15, 120, size=len(pictures))) / 1000
    write = partial(builder.write_video, fps=25, options=b_frames)
    ways: dict[str, dict[str, Any]] = {
        "b_frames.mp4": {},
        "b_frames.mkv": {},
        "variable_rate.mp4": {"times": (times - times[0]).tolist()},
        "rotated.mp4": {"turn": (90, False)},
        "mirrored.mp4": {"turn": (0, True)},
        "anamorphic.mp4": {"pixel_shape": Fraction(16, 11)},
        "b_frames.avi": {"codec": "mpeg4", "options": {"bf": "2", "g": "24", "qscale": "2"}},
    }
    for name, given in ways.items():
        write(folder / name, pictures, **given)
        yield folder / name


def write_damaged_files(folder: Path) -> Iterator[Path]:
    """One clip, each time with other bytes lost."""
    rng = np.random.default_rng(0)
    texture = rng.integers(0, 255, (96, 128, 3)).astype(np.uint8)
    pictures = [np.roll(texture, place, axis=1) for place in range(120)]
    path = folder / "damaged.mp4"
    builder.write_video(path, pictures, fps=25, options={"crf": "20", "g": "30", "bf": "2"})
    whole = path.read_bytes()
    for _ in range(DAMAGES):
        data, length = bytearray(whole), int(rng.choice([1, 8, 40, 400]))
        place = int(rng.integers(200, len(data) * 9 // 10))
        data[place : place + length] = rng.bytes(length)
        path.write_bytes(bytes(data))
        yield path


def agreement(path: Path) -> Counter[str]:
    """How many frames of a file both decoders show alike."""
    counts = Counter(same=0, other=0, stopped=0, broken=0)
    times_T = VideoFile(str(path)).times()
    for ours, theirs in zip_longest(
        pyav_frames(str(path), times_T), _until_error(torchcodec_frames(str(path), times_T))
    ):
        if isinstance(ours, DataError):
            counts["broken"] += theirs is not None
        elif theirs is None:
            counts["stopped"] += 1
        else:
            counts["same" if np.array_equal(ours, theirs) else "other"] += 1
    return counts


def _until_error(frames: Iterator[Pixels]) -> Iterator[Pixels]:
    try:
        yield from frames
    except RuntimeError as error:
        print(f"torchcodec stops: {str(error).splitlines()[0]}", file=sys.stderr)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--frames", type=positive, default=500)
    arguments = parser.parse_args()
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for size, (width, height) in SIZES.items():
            path = Path(folder) / f"{size}.mp4"
            write_video(path, width, height, arguments.frames)
            for words, every in SAMPLING.items():
                figures[f"{size}, {words}"] = decoding_rates(path, every)
        if len(decoders()) > 1:
            for path in write_hard_files(Path(folder)):
                figures[path.name] = agreement(path)
            damaged = [agreement(path) for path in write_damaged_files(Path(folder))]
            figures["damaged.mp4"] = {key: sum(one[key] for one in damaged) for key in damaged[0]}
    print_figures(figures, as_json=arguments.json)


if __name__ == "__main__":
    main()
