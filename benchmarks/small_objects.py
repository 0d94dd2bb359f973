"""How long a driver waits for small objects of its videos, one after the other and many at once.

Against moto's S3 server on this machine, behind a proxy that holds every request back; moto takes
some hundred requests a second at most, so that a real store gains more.

.venv/bin/python benchmarks/small_objects.py [--videos 100] [--chunks 134] [--delay-ms 20] [--json]
"""

import os
import sys
from pathlib import Path

import numpy as np
from figures import parser_of, positive, print_figures, seconds_of

from csl_dist.features.store import FeatureEntry, FeatureStore
from csl_dist.storage import requests
from csl_dist.storage.url import Storage
from csl_dist.types import Timeline, consecutive_spans

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
from s3_server import BUCKET, FaultyProxy, s3_server, settings

FRAMES_A_CHUNK, WIDTH = 4, 8


def made_store(num_videos: int, num_chunks: int) -> FeatureStore:
    """Videos whose chunks are written and not yet finished."""
    entries = {str(n): FeatureEntry(video=str(n), fingerprint="made") for n in range(num_videos)}
    store = FeatureStore(Storage(f"s3://{BUCKET}/features"), "made", entries, WIDTH)
    num_frames = FRAMES_A_CHUNK * num_chunks
    timeline = Timeline(times_T=np.arange(num_frames) / 25, duration=num_frames / 25, source_fps=25)

    def make(entry: FeatureEntry) -> None:
        store.create(entry, timeline, chunk_frames=num_frames, dtype="float16", source={})

    requests.at_once(make, entries.values())
    return store


def write_records(store: FeatureStore, num_chunks: int) -> None:
    """The records of one video's chunks, as extraction leaves them."""
    entry = store.entry("0")
    spans = consecutive_spans(FRAMES_A_CHUNK * num_chunks, FRAMES_A_CHUNK)
    features_TD = np.zeros((FRAMES_A_CHUNK, WIDTH))
    requests.at_once(lambda span: store.write_chunk(entry, span, features_TD), spans)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--videos", type=positive, default=100)
    parser.add_argument("--chunks", type=positive, default=134)
    parser.add_argument("--delay-ms", type=float, default=20)
    arguments = parser.parse_args()
    spans = consecutive_spans(FRAMES_A_CHUNK * arguments.chunks, FRAMES_A_CHUNK)
    with s3_server() as endpoint:
        proxy = FaultyProxy(endpoint)
        proxy.slow_seconds = arguments.delay_ms / 1000
        os.environ.update(settings(proxy.endpoint))
        store = made_store(arguments.videos, arguments.chunks)
        videos = [str(n) for n in range(arguments.videos)]
        figures = {}
        for at_once in (1, requests.REQUESTS_AT_ONCE):
            requests.REQUESTS_AT_ONCE = at_once
            proxy.fault = lambda *_: None
            write_records(store, arguments.chunks)
            proxy.fault = lambda *_: "slow"
            num_before = len(proxy.requests)
            times = seconds_of(lambda: requests.at_once(store.timeline, videos))
            num_requests = len(proxy.requests) - num_before
            figures[f"{at_once} at once"] = {
                "times_s": round(times, 1),
                "requests_a_video": round(num_requests / len(videos)),
                "finish_s": round(seconds_of(lambda: store.finish(store.entry("0"), spans)), 1),
            }
    print_figures(figures, as_json=arguments.json)


if __name__ == "__main__":
    main()
