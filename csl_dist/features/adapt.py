"""Adaptation on Ray: fine-tune the encoder's last stages for every fold, then encode with them.

Both read what the frozen stages put out, which extraction has stored; no video is decoded again.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ray
import torch

from csl_dist.cluster.pool import ActorPool
from csl_dist.cluster.progress import progress_bar
from csl_dist.cluster.session import Resources, connect
from csl_dist.cluster.stage import Stage
from csl_dist.config import CNN, FeaturesConfig
from csl_dist.features.source import FeatureSource
from csl_dist.features.store import FeatureStore
from csl_dist.run import Run
from csl_dist.storage.paths import RunPaths
from csl_dist.training.checkpoints import CheckpointInfo, CheckpointStore
from csl_dist.training.models import Cnn, build_scorer
from csl_dist.training.stage import fit_trainings, training_of
from csl_dist.types import Span, consecutive_spans


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptedVideo:
    """One video to be encoded by the encoder of one fold."""

    video: str
    encoder: CheckpointInfo


def adapt(stage: Stage) -> None:
    """Adapts the encoder to every fold, and encodes every video with each of them."""
    inputs, config = stage.inputs, stage.run.config
    base, adapted = inputs.features.base, inputs.features.adapted
    if adapted is None:
        return
    folds = [fold.index for fold in stage.run.dataset.folds]
    trainings = [training_of(inputs, CNN, fold) for fold in stage.run.dataset.folds]
    fit_trainings(stage, trainings, title="adapt: epochs")
    stores = {fold: adapted(fold) for fold in folds}
    encoders = {fold: inputs.checkpoints.adapted_encoder(fold, base) for fold in folds}
    missing = [
        AdaptedVideo(video=video, encoder=encoders[fold])
        for fold, store in stores.items()
        for video in store.missing()
    ]
    total = len(inputs.features.to_extract) * len(stores)
    if not missing:
        stage.say(f"features: all {total} videos are encoded by the adapted encoder")
        return
    resources = connect(verbose=stage.verbose)
    title = "adapt: videos"
    pool = ActorPool(
        _actor_maker(stage.run, base, stores, resources),
        num_actors=resources.num_gpus or resources.num_cpus,
        max_retries=config.predict.max_retries,
    )
    done = total - len(missing)
    with pool, progress_bar(stage.console, title, total=total, done=done) as bar:
        for _ in pool.run(missing):
            bar.advance()


def _actor_maker(
    run: Run, base: FeatureSource, stores: dict[int, FeatureStore], resources: Resources
) -> Callable[[], Any]:
    share = {"num_gpus": 1} if resources.num_gpus else {"num_cpus": 1}
    actor_class = ray.remote(**share)(EncodeActor)
    activations, stored = ray.put(base), ray.put(stores)
    return lambda: actor_class.remote(run.config.features, run.paths, activations, stored)


class EncodeActor:
    """Runs the adapted stages over stored activations, on one GPU or CPU."""

    def __init__(
        self,
        config: FeaturesConfig,
        paths: RunPaths,
        activations: FeatureSource,
        stores: dict[int, FeatureStore],
    ):
        self._config = config
        self._paths = paths
        self._activations = activations
        self._stores = stores
        self._loaded: tuple[CheckpointInfo, Cnn] | None = None
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        if self._device.type == "cpu":
            torch.set_num_threads(1)

    def work(self, task: AdaptedVideo) -> None:
        """Encodes what is left of a video."""
        cnn = self._cnn(task.encoder)
        store = self._stores[task.encoder.fold]
        timeline = self._activations.timeline(task.video)
        spans = consecutive_spans(len(timeline.times_T), self._config.chunk_frames)
        entry = store.entry(task.video)
        missing = store.missing_chunks(entry, spans)
        if missing == spans:
            store.create(
                entry,
                timeline,
                chunk_frames=self._config.chunk_frames,
                dtype=self._config.dtype,
                source={"activations": self._activations.fingerprint(task.video)},
            )
        for span in missing:
            store.write_chunk(entry, span, self._encoded(cnn, task.video, span))
        store.finish(entry, spans)

    @torch.inference_mode()
    def _encoded(self, cnn: Cnn, video: str, span: Span) -> Any:
        parts = []
        for start in range(span.start, span.stop, self._config.batch_frames):
            stop = min(span.stop, start + self._config.batch_frames)
            x = torch.from_numpy(self._activations.read(video, slice(start, stop)))
            with torch.autocast(self._device.type, enabled=self._device.type == "cuda"):
                parts.append(cnn.features(x.to(self._device)).float().cpu())
        return torch.cat(parts).numpy()

    def _cnn(self, encoder: CheckpointInfo) -> Cnn:
        """The adapted stages; those of the last fold are kept."""
        if self._loaded is None or self._loaded[0] != encoder:
            store = CheckpointStore(self._paths.checkpoints(CNN, encoder.fold, encoder.training))
            scorer = build_scorer(encoder.model)
            scorer.load_state_dict(store.load(encoder))
            cnn = scorer.eval().to(self._device).model
            assert isinstance(cnn, Cnn)
            self._loaded = encoder, cnn
        return self._loaded[1]
