"""Extraction on Ray Data: CPU decoders feed encoders on GPUs, or on CPU shares.

The encoder writes whole chunks itself and records each, so a lost actor or driver costs at most the
chunks in flight.
"""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import ray
import ray.data
import torch
from ray.data import ExecutionResources

from csl_dist.cluster.progress import progress_bar
from csl_dist.cluster.session import Resources, connect, get_all, user_error
from csl_dist.cluster.shared import shared_value
from csl_dist.cluster.stage import Stage
from csl_dist.config import EncoderConfig, FeaturesConfig
from csl_dist.data.media.timeline import sampled
from csl_dist.errors import DataError
from csl_dist.features.decoded import fitted_frames
from csl_dist.features.encoders import Encoder, encoder_spec, require_weights
from csl_dist.features.families.family import EncoderSpec
from csl_dist.features.opened import FeatureSet, SourceVideo
from csl_dist.features.store import FeatureStore, StoredVideo
from csl_dist.types import FloatArray, Span, consecutive_spans
from csl_dist.words import counted

DECODE_SHARE = 0.1
"""CPU share of a decoder beside encoders on CPUs, where decoding is the lighter part."""
CHUNKS_AHEAD = 8
"""Chunks that may wait for each encoder, or be in its hands."""
LEAST_AHEAD_BYTES = 768 * 2**20
"""Ray Data reckons with blocks of 128 MiB, and with less than some of them runs one at a time."""
RETRY_WAITS_SECONDS = (0.5, 2.0)
"""A file server may fail for a moment; a broken file fails every time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A store to fill, and the weights of the last stages where its encoder was adapted."""

    store: FeatureStore
    adapted: Mapping[str, torch.Tensor] | None = None


def extract(stage: Stage) -> None:
    """Extracts every video that the stores of the run's encoders do not have."""
    features = stage.inputs.features
    if not features.sets:
        stage.say(f"features: ready-made, {features.base.width()} wide; nothing to extract")
        return
    for number, own in enumerate(features.sets, start=1):
        spec, config = encoder_spec(own.config), own.config
        if config.weights == "random":
            stage.say(f"encoder: {spec.title} with random weights, seed {config.seed}")
        elif config.encoder != EncoderConfig().encoder:
            stage.say(f"encoder: {spec.title}, {spec.width} wide; licence: {spec.licence}")
        of = f" of {spec.title}" if len(features.sets) > 1 else ""
        if not own.store.missing():
            what = "videos are in the store" if config.adapt is None else "videos are sampled"
            stage.say(f"features{of}: all {len(own.videos)} {what}")
            continue
        part = f" {number} of {len(features.sets)}" if len(features.sets) > 1 else ""
        chunks = "chunks" if config.adapt is None else "chunks of the sample"
        write_features(stage, own, [Target(store=own.store)], title=f"extract{part}: {chunks}")


def write_features(
    stage: Stage, features: FeatureSet, targets: Sequence[Target], *, title: str
) -> None:
    """Writes what each store lacks; a frame is decoded once for all of them."""
    config, sources = features.config, features.videos
    unfinished = [set(target.store.missing()) for target in targets]
    places = {
        video: [place for place, videos in enumerate(unfinished) if video in videos]
        for video in sources
    }
    places = {video: own for video, own in places.items() if own}
    require_weights(config)  # told in a second here, but after minutes from within Ray
    resources = connect(verbose=stage.verbose)
    # A store knows all videos: each worker gets it once, not with every video.
    stores = [ray.put(tuple(target.store for target in targets))]
    plans = get_all(
        [
            _plan_video.remote(sources[video], stores, own, config, stage.run.config.dataset.fps)
            for video, own in places.items()
        ]
    )
    spans = {video: spans for video, (spans, _) in zip(places, plans, strict=True)}
    rows = []
    for (video, own), (all_spans, missing) in zip(places.items(), plans, strict=True):
        for span in all_spans:
            lacking = [place for place, todo in zip(own, missing, strict=True) if span in todo]
            if lacking:
                place = {"video": video, "start": span.start, "stop": span.stop}
                rows.append(place | {"targets": np.array(lacking)})
    left = dict.fromkeys(places, 0) | Counter(row["video"] for row in rows)

    def finish_if_complete(video: str) -> None:
        if left[video]:
            return
        own = [targets[place].store for place in places[video]]
        finished = [store.finish(store.entry(video), spans[video]) for store in own]
        if features is stage.inputs.features.sets[0]:  # told once, whatever the encoders
            _tell_repeated(stage, finished[0])

    for video in places:
        finish_if_complete(video)
    shared = _Shared(
        sources=sources, targets=tuple(targets), config=config, spec=encoder_spec(config)
    )
    with progress_bar(stage.console, title, total=len(rows)) as bar:
        for row in _written(rows, shared, resources):
            left[row["video"]] -= 1
            finish_if_complete(row["video"])
            bar.advance()


def _tell_repeated(stage: Stage, stored: StoredVideo) -> None:
    if stored.repeated:
        first, count = stored.repeated[0], len(stored.repeated)
        stage.say(
            f"extract: video {stored.video!r}: {counted(count, 'frame')} can't be decoded, "
            f"the first at {first:.2f} s; the frame before stands in"
        )


@ray.remote
def _plan_video(
    source: SourceVideo,
    shared: list[Any],
    places: list[int],
    config: FeaturesConfig,
    fps: float | None,
) -> tuple[list[Span], list[list[Span]]]:
    """All of a video's chunks, and for the stores at some places those that are not written yet.

    `shared`: a reference to all stores, in a list, as Ray would read it for every task otherwise.
    """
    every_store: tuple[FeatureStore, ...] = shared_value(shared[0])
    stores = [every_store[place] for place in places]
    timeline, _ = sampled(source.pixels.times(), fps)
    video = source.entry.video
    spans = consecutive_spans(len(stores[0].stored_frames(video, timeline)), config.chunk_frames)
    missing = [store.missing_chunks(store.entry(video), spans) for store in stores]
    for store, own in zip(stores, missing, strict=True):
        if own == spans:
            store.create(
                store.entry(video),
                timeline,
                chunk_frames=config.chunk_frames,
                dtype=config.dtype,
                source={"content": source.content, "path": source.pixels.path},
            )
    return spans, missing


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shared:
    """What decoders and encoders need to know."""

    sources: dict[str, SourceVideo]
    targets: tuple[Target, ...]
    config: FeaturesConfig
    spec: EncoderSpec


def _written(
    rows: list[dict[str, Any]], shared: _Shared, resources: Resources
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
    config = shared.config
    # Decoders would run far ahead of the encoders, and fill the object store with a long video.
    chunk_bytes = 3 * config.chunk_frames * config.size**2
    ahead_bytes = max(LEAST_AHEAD_BYTES, CHUNKS_AHEAD * num_encoders * chunk_bytes)
    context.execution_options.resource_limits = ExecutionResources(object_store_memory=ahead_bytes)
    # Each row is one chunk; blocks of one row let decoding and encoding overlap.
    chunks = ray.data.from_items(rows, override_num_blocks=len(rows))
    stored = ray.put(shared)
    # Actors, not tasks: Ray ends a worker that idles for a second, and a new one imports torch.
    decoded = chunks.map(
        _DecodeChunks,
        fn_constructor_args=[stored],
        num_cpus=1 if resources.num_gpus else DECODE_SHARE,
        compute=ray.data.ActorPoolStrategy(min_size=1, max_size=num_decoders),
    )
    written = decoded.map_batches(
        _EncodeChunks,
        fn_constructor_args=[stored],
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
        self._shared: _Shared = ray.get(shared)
        self._last: tuple[str, FloatArray] | None = None

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        for wait_seconds in RETRY_WAITS_SECONDS:
            try:
                return row | self._decoded(row)
            except DataError:
                time.sleep(wait_seconds)
        return row | self._decoded(row)

    def _decoded(self, row: dict[str, Any]) -> dict[str, Any]:
        video, span = row["video"], Span(row["start"], row["stop"])
        pixels, repeated = fitted_frames(
            self._shared.sources[video].pixels,
            self._times(video),
            span,
            config=self._shared.config,
            spec=self._shared.spec,
        )
        return {"pixels": pixels, "repeated": np.array(repeated)}

    def _times(self, video: str) -> FloatArray:
        """Seconds of the frames that a store has; those of the last video are kept."""
        if self._last is None or self._last[0] != video:
            store = self._shared.targets[0].store
            timeline = store.timeline(video)
            self._last = video, timeline.times_T[store.stored_frames(video, timeline)]
        return self._last[1]


class _EncodeChunks:
    """Holds the encoder, or all adapted ones; encodes and writes chunks."""

    def __init__(self, shared: Any):
        if not torch.cuda.is_available():
            torch.set_num_threads(1)
        self._shared: _Shared = ray.get(shared)
        adapted = [t.adapted for t in self._shared.targets if t.adapted is not None]
        device = "cuda" if torch.cuda.is_available() else "cpu"
        self._encoder = Encoder(self._shared.config, device, adapted=adapted)
        self._is_adapted = bool(adapted)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        [video], [start], [stop] = batch["video"], batch["start"], batch["stop"]
        [pixels], [repeated], [targets] = batch["pixels"], batch["repeated"], batch["targets"]
        if self._is_adapted:
            features = self._encoder.encode_adapted(pixels)
        else:
            features = [self._encoder.encode(pixels)]
        for place in targets:
            store = self._shared.targets[place].store
            store.write_chunk(
                store.entry(video),
                Span(int(start), int(stop)),
                features[place],
                repeated=repeated.tolist(),
            )
        return {"video": batch["video"]}
