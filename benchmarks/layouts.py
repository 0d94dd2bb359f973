"""How trajectories should lie in files: short chunks, longer ones, and shards.

.venv/bin/python benchmarks/layouts.py [--repeats 3] [--json]

20 videos of 2,000 frames, 50 checkpoints, 10 classes, float16, with checksums as the store has
them. Reads through zarr-python: one frame under all checkpoints, one whole video, one checkpoint
of all videos; on disk, and with 20 ms before each request. Arrays are open already.
"""

import asyncio
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import zarr
from figures import add_repeats, parser_of, print_figures, seconds_of
from zarr.codecs import Crc32cCodec
from zarr.storage import LocalStore, WrapperStore

NUM_VIDEOS, NUM_CHECKPOINTS, NUM_FRAMES, NUM_CLASSES = 20, 50, 2000, 10
REQUEST_SECONDS = 0.02
TRIES = 5
"""Of each read; the fastest counts, as others may use the machine."""
LAYOUTS = {
    "short_chunks": (128, False),
    "long_chunks": (1024, False),
    "shard_a_video": (128, True),
}
"""Frames of a chunk, and whether all chunks of a video are one file."""


class CountedStore(WrapperStore[LocalStore]):
    """A folder whose every request is counted, and may wait."""

    num_requests = 0
    seconds = 0.0

    async def get(self, *arguments: Any, **named: Any) -> Any:
        self.num_requests += 1
        if self.seconds:
            await asyncio.sleep(self.seconds)
        return await super().get(*arguments, **named)


def bench_layout(folder: Path, chunk_frames: int, sharded: bool) -> dict[str, float]:
    """Milliseconds and requests of each kind of read."""
    values = np.random.default_rng(0).normal(size=(NUM_CHECKPOINTS, NUM_FRAMES, NUM_CLASSES))
    store = CountedStore(LocalStore(folder))
    begun = time.perf_counter()
    videos = []
    for number in range(NUM_VIDEOS):
        array = zarr.create_array(
            store,
            name=f"v{number}",
            shape=values.shape,
            chunks=(NUM_CHECKPOINTS, chunk_frames, NUM_CLASSES),
            shards=(NUM_CHECKPOINTS, _whole(chunk_frames), NUM_CLASSES) if sharded else None,
            dtype="float16",
            compressors=[Crc32cCodec()],
            fill_value=float("nan"),
        )
        array[:] = values.astype("float16")
        videos.append(array)
    figures = {"write_ms": 1000 * (time.perf_counter() - begun) / NUM_VIDEOS}
    figures["files"] = sum(path.is_file() for path in folder.rglob("*")) / NUM_VIDEOS
    reads: dict[str, Callable[[], Any]] = {
        "frame": lambda: videos[3][:, 777],
        "video": lambda: videos[3][:],
        "epoch": lambda: [array[20] for array in videos],
    }
    for name, read in reads.items():
        for place, seconds in (("disk", 0.0), ("20ms", REQUEST_SECONDS)):
            store.num_requests, store.seconds = 0, seconds
            figures[f"{name}_{place}_ms"] = 1000 * min(seconds_of(read) for _ in range(TRIES))
        figures[f"{name}_requests"] = store.num_requests / TRIES
    return figures


def _whole(chunk_frames: int) -> int:
    """Frames of a shard that holds a video: a multiple of the chunk's."""
    return -(-NUM_FRAMES // chunk_frames) * chunk_frames


def main() -> None:
    parser = parser_of(__doc__)
    add_repeats(parser, default=3)
    given = parser.parse_args()
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in LAYOUTS}
    for _ in range(given.repeats):
        for name, (chunk_frames, sharded) in LAYOUTS.items():
            with tempfile.TemporaryDirectory() as folder:
                rounds[name].append(bench_layout(Path(folder), chunk_frames, sharded))
    figures = {
        name: {key: round(median(one[key] for one in own), 2) for key in own[0]}
        for name, own in rounds.items()
    }
    print_figures(figures, as_json=given.json)


if __name__ == "__main__":
    main()
