"""Extraction on Ray Data: CPU decoders feed encoders on GPUs, or on CPU shares.

The encoder writes whole chunks itself and records each, so a lost actor or driver costs at most the
chunks in flight.
"""

from typing import Any

import numpy as np
import ray
import ray.data
import torch

from csl_dist.config import FeaturesConfig
from csl_dist.encoder import Encoder, fit_frame
from csl_dist.errors import CslError
from csl_dist.extract import ChunkTask, SourceVideo, chunk_spans
from csl_dist.features import FeatureStore
from csl_dist.remote.progress import progress_bar
from csl_dist.remote.session import Resources, connect, get_all, user_error
from csl_dist.remote.stage import Stage
from csl_dist.timeline import sampled

DECODE_SHARE = 0.1
"""CPU share that one decoder asks for: decoding is light beside encoding on CPUs."""


def extract(stage: Stage) -> None:
    """Extracts every video that the store does not have."""
    run = stage.run
    store = run.features
    if not isinstance(store, FeatureStore):
        stage.say(f"features: ready-made, {store.width()} wide; nothing to extract")
        return
    missing = [run.sources[video] for video in store.missing()]
    if not missing:
        stage.say(f"features: all {len(run.sources)} videos are in the store")
        return
    resources = connect(verbose=stage.verbose)
    plans = get_all(
        [
            _plan_video.remote(source, store, run.config.features, run.config.dataset.fps)
            for source in missing
        ]
    )
    tasks = [task for _, plan in plans for task in plan]
    left = {source.entry: len(plan) for source, (_, plan) in zip(missing, plans, strict=True)}
    lengths = {source.entry: frames for source, (frames, _) in zip(missing, plans, strict=True)}

    def finish_complete() -> None:
        for entry in [entry for entry, count in left.items() if count == 0]:
            del left[entry]
            facts = run.sources[entry.video].facts
            store.finish(entry, num_frames=lengths[entry], source=facts)

    finish_complete()
    with progress_bar(stage.console, "extract: chunks", total=len(tasks)) as bar:
        for row in _encoded(tasks, store, run.config.features, resources):
            left[tasks[row["index"]].entry] -= 1
            finish_complete()
            bar.advance()


@ray.remote
def _plan_video(
    source: SourceVideo, store: FeatureStore, config: FeaturesConfig, fps: float | None
) -> tuple[int, list[ChunkTask]]:
    """The number of a video's sampled frames, and its chunks that are not written yet."""
    timeline, _ = sampled(source.pixels.times(), fps)
    times_T = timeline.times_T
    spans = chunk_spans(len(times_T), config.chunk_frames)
    missing = store.missing_chunks(source.entry, spans)
    if missing == spans:
        store.create(source.entry, timeline, chunk_frames=config.chunk_frames, dtype=config.dtype)
    return len(times_T), [
        ChunkTask(
            entry=source.entry,
            pixels=source.pixels,
            span=span,
            times_T=times_T[span.start : span.stop],
        )
        for span in missing
    ]


def _encoded(
    tasks: list[ChunkTask], store: FeatureStore, config: FeaturesConfig, resources: Resources
) -> Any:
    """Runs the pipeline; yields one row per written chunk."""
    if not tasks:
        return
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.issue_detectors_config.detectors = []
    # Each row is one chunk; blocks of one row let decoding and encoding overlap. Rows carry the
    # task's number, because Ray Data would try, and fail, to make an Arrow column of the task.
    chunks = ray.data.from_items(
        [{"index": index} for index in range(len(tasks))], override_num_blocks=len(tasks)
    )
    decoded = chunks.map(_Decode(tasks, config.size), num_cpus=DECODE_SHARE)
    num_encoders = resources.num_gpus or resources.num_cpus
    written = decoded.map_batches(
        _EncodeChunks,
        fn_constructor_args=(tasks, store, config),
        batch_size=1,
        num_gpus=1 if resources.num_gpus else 0,
        num_cpus=0 if resources.num_gpus else 1 - DECODE_SHARE,
        compute=ray.data.ActorPoolStrategy(size=min(num_encoders, len(tasks))),
    )
    try:
        yield from written.iter_rows()
    except Exception as error:
        cause = user_error(error)
        if isinstance(cause, CslError):
            raise cause from None
        raise


class _Decode:
    """Decodes one chunk to frames of the encoder's size."""

    def __init__(self, tasks: list[ChunkTask], size: int):
        self._tasks = tasks
        self._size = size

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        task = self._tasks[row["index"]]
        frames = [fit_frame(frame, self._size) for frame in task.pixels.decode(task.times_T)]
        return {"index": row["index"], "pixels": np.stack(frames)}


class _EncodeChunks:
    """Holds the encoder; encodes and writes chunks."""

    def __init__(self, tasks: list[ChunkTask], store: FeatureStore, config: FeaturesConfig):
        if not torch.cuda.is_available():
            torch.set_num_threads(1)
        self._tasks = tasks
        self._store = store
        self._encoder = Encoder(config, "cuda" if torch.cuda.is_available() else "cpu")

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        for index, pixels in zip(batch["index"], batch["pixels"], strict=True):
            task = self._tasks[index]
            self._store.write_chunk(task.entry, task.span, self._encoder.encode(pixels))
        return {"index": batch["index"]}
