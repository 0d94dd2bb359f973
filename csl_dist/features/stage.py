"""Extraction on Ray Data: CPU decoders feed encoders on GPUs, or on CPU shares.

The encoder writes whole chunks itself and records each, so a lost actor or driver costs at most the
chunks in flight.
"""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import ray
import ray.data
import torch
from ray.data import ExecutionResources

from csl_dist.cluster.progress import progress_bar
from csl_dist.cluster.session import Resources, connect, get_all, user_error
from csl_dist.cluster.stage import Stage
from csl_dist.config import FeaturesConfig
from csl_dist.data.media.pixels import frames_of_span
from csl_dist.data.media.timeline import sampled
from csl_dist.errors import DataError
from csl_dist.features.encoders import Encoder, fit_frame, require_weights
from csl_dist.features.opened import SourceVideo
from csl_dist.features.store import FeatureStore, StoredVideo
from csl_dist.types import Span, consecutive_spans

DECODE_SHARE = 0.1
"""CPU share of a decoder beside encoders on CPUs, where decoding is the lighter part."""
CHUNKS_AHEAD = 8
"""Chunks that may wait for each encoder, or be in its hands."""
LEAST_AHEAD_BYTES = 768 * 2**20
"""Ray Data reckons with blocks of 128 MiB, and with less than some of them runs one at a time."""
RETRY_WAITS_SECONDS = (0.5, 2.0)
"""A file server may fail for a moment; a broken file fails every time."""


def extract(stage: Stage) -> None:
    """Extracts every video that the store does not have."""
    run, features = stage.run, stage.inputs.features
    store, config = features.base, run.config.features
    if not isinstance(store, FeatureStore):
        stage.say(f"features: ready-made, {store.width()} wide; nothing to extract")
        return
    if config.weights == "random":
        stage.say(f"encoder: ResNet-18 with random weights, seed {config.seed}")
    missing = {video: features.to_extract[video] for video in store.missing()}
    if not missing:
        stage.say(f"features: all {len(features.to_extract)} videos are in the store")
        return
    require_weights(config)  # told in a second here, but after minutes from within Ray
    resources = connect(verbose=stage.verbose)
    plans = get_all(
        [
            _plan_video.remote(source, store, config, run.config.dataset.fps)
            for source in missing.values()
        ]
    )
    spans = {video: spans for video, (spans, _) in zip(missing, plans, strict=True)}
    left = {video: len(todo) for video, (_, todo) in zip(missing, plans, strict=True)}
    rows = [
        {"video": video, "start": span.start, "stop": span.stop}
        for video, (_, todo) in zip(missing, plans, strict=True)
        for span in todo
    ]

    def finish_complete() -> None:
        for video in [video for video, count in left.items() if count == 0]:
            del left[video]
            _tell_repeated(stage, store.finish(missing[video].entry, spans[video]))

    finish_complete()
    with progress_bar(stage.console, "extract: chunks", total=len(rows)) as bar:
        for row in _written(rows, missing, store, config, resources):
            left[row["video"]] -= 1
            finish_complete()
            bar.advance()


def _tell_repeated(stage: Stage, stored: StoredVideo) -> None:
    if stored.repeated:
        first, count = stored.repeated[0], len(stored.repeated)
        frames = "1 frame" if count == 1 else f"{count:,} frames"
        stage.say(
            f"extract: video {stored.video!r}: {frames} can't be decoded, the first at "
            f"{first:.2f} s; the frame before stands in"
        )


@ray.remote
def _plan_video(
    source: SourceVideo, store: FeatureStore, config: FeaturesConfig, fps: float | None
) -> tuple[list[Span], list[Span]]:
    """All of a video's chunks, and those that are not written yet."""
    timeline, _ = sampled(source.pixels.times(), fps)
    spans = consecutive_spans(len(timeline.times_T), config.chunk_frames)
    missing = store.missing_chunks(source.entry, spans)
    if missing == spans:
        store.create(
            source.entry,
            timeline,
            chunk_frames=config.chunk_frames,
            dtype=config.dtype,
            source={"content": source.content, "path": source.pixels.path},
        )
    return spans, missing


def _written(
    rows: list[dict[str, Any]],
    sources: dict[str, SourceVideo],
    store: FeatureStore,
    config: FeaturesConfig,
    resources: Resources,
) -> Iterator[dict[str, Any]]:
    """Runs the pipeline over chunks; yields a row as each is written."""
    if not rows:
        return
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.raise_original_map_exception = True
    context.issue_detectors_config.detectors = []
    num_encoders = min(resources.num_gpus or resources.num_cpus, len(rows))
    num_decoders = min(resources.num_cpus, len(rows))
    # Decoders would run far ahead of the encoders, and fill the object store with a long video.
    chunk_bytes = 3 * config.chunk_frames * config.size**2
    ahead_bytes = max(LEAST_AHEAD_BYTES, CHUNKS_AHEAD * num_encoders * chunk_bytes)
    context.execution_options.resource_limits = ExecutionResources(object_store_memory=ahead_bytes)
    # Each row is one chunk; blocks of one row let decoding and encoding overlap.
    chunks = ray.data.from_items(rows, override_num_blocks=len(rows))
    shared = ray.put((sources, store, config))
    # Actors, not tasks: Ray ends a worker that idles for a second, and a new one imports torch.
    decoded = chunks.map(
        _DecodeChunks,
        fn_constructor_args=[shared],
        num_cpus=1 if resources.num_gpus else DECODE_SHARE,
        compute=ray.data.ActorPoolStrategy(min_size=1, max_size=num_decoders),
    )
    written = decoded.map_batches(
        _EncodeChunks,
        fn_constructor_args=[shared],
        batch_size=1,
        num_gpus=1 if resources.num_gpus else 0,
        num_cpus=0 if resources.num_gpus else 1 - DECODE_SHARE,
        compute=ray.data.ActorPoolStrategy(size=num_encoders),
    )
    try:
        yield from written.iter_rows()
    except Exception as error:
        cause = user_error(error)
        if cause is None:
            raise
        # Ray Data adds advice of its own to the sentence.
        raise type(cause)(str(cause).splitlines()[0]) from None


class _DecodeChunks:
    """Decodes chunks to frames of the encoder's size; a few times over if that fails."""

    def __init__(self, shared: Any):
        torch.set_num_threads(1)
        self._sources, self._store, self._config = ray.get(shared)

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        for wait_seconds in RETRY_WAITS_SECONDS:
            try:
                return row | self._decoded(row)
            except DataError:
                time.sleep(wait_seconds)
        return row | self._decoded(row)

    def _decoded(self, row: dict[str, Any]) -> dict[str, Any]:
        video, span = row["video"], Span(row["start"], row["stop"])
        size, on_bad_frame = self._config.size, self._config.on_bad_frame
        times_T = self._store.timeline(video).times_T
        pixels = np.empty((len(span), size, size, 3), dtype=np.uint8)
        repeated = []
        frames = frames_of_span(
            self._sources[video].pixels, times_T, span, on_bad_frame=on_bad_frame
        )
        for i, (frame, stands_in) in enumerate(frames):
            pixels[i] = fit_frame(frame, size)
            if stands_in:
                repeated.append(float(times_T[span.start + i]))
        return {"pixels": pixels, "repeated": np.array(repeated)}


class _EncodeChunks:
    """Holds the encoder; encodes and writes chunks."""

    def __init__(self, shared: Any):
        if not torch.cuda.is_available():
            torch.set_num_threads(1)
        self._sources, self._store, config = ray.get(shared)
        self._encoder = Encoder(config, "cuda" if torch.cuda.is_available() else "cpu")

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        [video], [start], [stop] = batch["video"], batch["start"], batch["stop"]
        [pixels], [repeated] = batch["pixels"], batch["repeated"]
        self._store.write_chunk(
            self._sources[video].entry,
            Span(int(start), int(stop)),
            self._encoder.encode(pixels),
            repeated=repeated.tolist(),
        )
        return {"video": batch["video"]}
