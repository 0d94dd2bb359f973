"""Training on Ray Train: every scorer and fold of a run, side by side as the cluster allows.

Ray Train supplies the workers, their process group and their restart after a failure. Checkpoints
go through CheckpointStore rather than through `report`, because they must be published whole and
be found again by any later run; a worker that restarts goes on from the newest one there.
"""

import logging
import shutil
import tempfile
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import ray
import ray.train
import torch
from ray.exceptions import RayActorError
from ray.train import FailureConfig, RunConfig, ScalingConfig
from ray.train.torch import TorchConfig, TorchTrainer, get_device
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from csl_dist.cluster.background import Background
from csl_dist.cluster.leftovers import own_folder
from csl_dist.cluster.progress import Bar, progress_bar
from csl_dist.cluster.session import (
    Resources,
    connect,
    on_every_node,
    user_error,
    worker_bytes,
)
from csl_dist.cluster.stage import Stage
from csl_dist.config import CNN, WhenGrown
from csl_dist.data.dataset import Fold
from csl_dist.errors import ConfigError, CslError, DataError
from csl_dist.features.node_cache import forget_node_folder, kept_on_node, node_folder
from csl_dist.features.source import FeatureReader, FeatureSource, require_features
from csl_dist.storage.paths import RunPaths
from csl_dist.storage.url import key_part
from csl_dist.training.checkpoints import CheckpointStore, State
from csl_dist.training.inputs import Inputs
from csl_dist.training.memory import FITS_ANYWHERE, longest_sequence, step_bytes
from csl_dist.training.models import sees_context
from csl_dist.training.scorers import train_config
from csl_dist.training.trackers import open_trackers, require_trackers
from csl_dist.training.train import (
    TrainingTask,
    WorkerContext,
    settings_fingerprint,
    train_epochs,
    video_fingerprints,
)
from csl_dist.types import Split, fingerprint

LOG = logging.getLogger(__name__)

POLL_SECONDS = 0.5
TITLE = "train: epochs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """One training and where its features and checkpoints are."""

    task: TrainingTask
    features: FeatureSource
    checkpoints: CheckpointStore
    kept_despite: "Changes | None" = None
    """How its videos have changed since, where the training is kept all the same."""

    @property
    def epochs(self) -> int:
        return self.task.config.epochs


def train(stage: Stage) -> None:
    """Trains every scorer that does not have all its epochs."""
    trainings = planned_trainings(stage.inputs)
    tell_kept(stage, trainings)
    fit_trainings(stage, trainings, title=TITLE)


def planned_trainings(inputs: Inputs) -> list[Training]:
    """The trainings of every scorer and fold, which from now on are those that an audit uses."""
    run = inputs.run
    require_trackers(run.config.train.trackers, run.paths.tensorboard.url)
    # All labels, those of the audit too: a mistake is better told now than after hours of training.
    inputs.labels.held_out()
    scorers = [name for name, own in run.config.scorers.items() if name != CNN and own.train]
    return [training_of(inputs, name, fold) for name in scorers for fold in run.dataset.folds]


def fit_trainings(stage: Stage, trainings: list[Training], *, title: str) -> None:
    """Trains what does not have all its epochs, side by side as the cluster allows."""
    total = sum(t.epochs for t in trainings)
    pending = unfinished(trainings)
    if not pending:
        stage.say(f"checkpoints: all {total} epochs are trained")
        return
    resources = connect(verbose=stage.verbose)
    num_workers = len(_side_by_side(pending, resources)) * pending[0].task.config.workers
    pending = [
        fitted_to_memory(t, lambda: worker_bytes(resources, num_workers), resources.has_cuda)
        for t in pending
    ]
    _tell_windows(stage, pending)
    groups = _side_by_side(pending, resources)
    done = sum(t.checkpoints.resume_point(t.epochs) for t in trainings)
    with progress_bar(stage.console, title, total=total, done=done) as bar:
        _fit_all(groups, stage.run.paths, resources, [t.checkpoints for t in trainings], bar)
    on_every_node(forget_node_folder, training_folder(stage.run.paths))


def fitted_to_memory(
    training: Training, worker_memory: Callable[[], float], on_gpu: bool
) -> Training:
    """The training with windows where its longest video would not fit into a worker's memory.

    A training that was begun goes on as it began, wherever that was.
    """
    task = training.task
    if task.model.max_frames is not None:
        return training
    begun = training.checkpoints.first()
    if begun is not None:
        max_frames = begun.model.max_frames
    else:
        longest = max(annotation.num_frames for annotation in task.annotations)
        if longest <= FITS_ANYWHERE:
            return training
        most = longest_sequence(task.model, worker_memory(), on_gpu=on_gpu)
        max_frames = most if longest > most else None
    return replace(training, task=replace(task, model=replace(task.model, max_frames=max_frames)))


def _tell_windows(stage: Stage, trainings: Sequence[Training]) -> None:
    """Says which models do not see all of their videos at once."""
    told = set()
    for task in (training.task for training in trainings):
        most = task.model.max_frames
        lengths = [annotation.num_frames for annotation in task.annotations]
        num_longer = sum(length > most for length in lengths) if most is not None else 0
        if num_longer and sees_context(task.model.name) and task.scorer not in told:
            told.add(task.scorer)
            stage.say(
                f"train: {task.scorer} sees {num_longer} of {len(lengths)} videos in windows of "
                f"{most:,} frames; a step over the longest, {max(lengths):,}, would take about "
                f"{step_bytes(task.model, max(lengths)) / 1e9:.1f} GB in float32; "
                f"scorers.{task.scorer}.max_frames sets it"
            )


def unfinished(trainings: list[Training]) -> list[Training]:
    """Those that do not have all their epochs."""
    return [t for t in trainings if t.checkpoints.resume_point(t.epochs) < t.epochs]


def training_of(inputs: Inputs, scorer: str, fold: Fold) -> Training:
    """A training, which from now on is the one that an audit uses.

    One whose videos have changed since is kept, unless `train.refresh` says otherwise.
    """
    run = inputs.run
    if not fold.train:
        raise DataError(f"{run.config.dataset.path} has no training videos; mark some as `train`")
    annotations = inputs.trained_labels(scorer, fold.train)
    source = inputs.seen_features(scorer, fold.index, Split.TRAIN)
    require_features(source, fold.train)
    model, config = inputs.model_spec(scorer), train_config(run.config, scorer)
    classes, base = run.dataset.classes, inputs.features.base
    settings = settings_fingerprint(model, config, classes)
    videos = video_fingerprints(annotations, source)
    training, changes = fingerprint(settings, videos), None
    before = inputs.checkpoints.current(scorer, fold.index)
    if before is not None and before.settings == settings and before.videos != videos:
        changes = Changes.between(before.videos, videos)
        epochs = inputs.checkpoints.store(scorer, fold.index).resume_point(config.epochs)
        if changes.call_for_training(config.refresh) or not (
            epochs == config.epochs or changes.only_added
        ):
            changes = None
        else:
            training, videos = before.training, before.videos
            annotations = [a for a in annotations if a.video in videos]
    is_adapted = inputs.features.adapted is not None and scorer != CNN
    task = TrainingTask(
        scorer=scorer,
        fold=fold.index,
        model=model,
        config=config,
        classes=classes,
        encoder=source.encoder,
        annotations=tuple(annotations),
        fingerprint=training,
        starts_from=run.config.features if scorer == CNN else None,
        encoder_train_ids=(
            inputs.checkpoints.adapted_encoder(fold.index, base).train_ids if is_adapted else ()
        ),
    )
    checkpoints = inputs.checkpoints.use(
        scorer, fold.index, training, settings=settings, videos=videos
    )
    return Training(task=task, features=source, checkpoints=checkpoints, kept_despite=changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """How the videos of a training differ from those that it would have now."""

    num_trained: int
    added: frozenset[str]
    removed: frozenset[str]
    changed: frozenset[str]
    """Videos with other labels or features."""

    @classmethod
    def between(cls, before: Mapping[str, str], now: Mapping[str, str]) -> "Changes":
        shared = before.keys() & now.keys()
        return cls(
            num_trained=len(before),
            added=frozenset(now.keys() - before.keys()),
            removed=frozenset(before.keys() - now.keys()),
            changed=frozenset(video for video in shared if before[video] != now[video]),
        )

    @property
    def only_added(self) -> bool:
        """Whether the training could go on as it began."""
        return not self.removed and not self.changed

    def call_for_training(self, refresh: object) -> bool:
        """Whether models are to be trained anew, as the config has it."""
        if isinstance(refresh, WhenGrown):
            return len(self.added) >= refresh.when_grown * self.num_trained
        return refresh == "always"


def tell_kept(stage: Stage, trainings: Sequence[Training]) -> None:
    """Says in one sentence that models are kept though their training videos have changed."""
    kept = [t.kept_despite for t in trainings if t.kept_despite is not None]
    if not kept:
        return
    counts = {
        "new": frozenset[str]().union(*(changes.added for changes in kept)),
        "gone": frozenset[str]().union(*(changes.removed for changes in kept)),
        "changed": frozenset[str]().union(*(changes.changed for changes in kept)),
    }
    words = ", ".join(
        f"{len(videos)} {what} ({', '.join(sorted(videos)[:3])}{', …' * (len(videos) > 3)})"
        for what, videos in counts.items()
        if videos
    )
    stage.say(
        f"train: {len(kept)} of {len(trainings)} models are kept as they are; of their training "
        f"videos are {words} since; set train.refresh: always to train them anew"
    )


def _side_by_side(trainings: list[Training], resources: Resources) -> list[tuple[Training, ...]]:
    """As many groups as the cluster can run at once; starting Ray Train costs each about 10 s."""
    available = resources.num_gpus or resources.num_cpus
    workers = trainings[0].task.config.workers
    if workers > available:
        unit = "GPUs" if resources.num_gpus else "CPUs"
        raise ConfigError(
            f"train.workers is {workers}, but the cluster has {available} {unit}; lower it"
        )
    num_groups = min(available // workers, len(trainings))
    return [tuple(trainings[i::num_groups]) for i in range(num_groups)]


def _fit_all(
    groups: list[tuple[Training, ...]],
    paths: RunPaths,
    resources: Resources,
    stores: list[CheckpointStore],
    bar: Bar,
) -> None:
    """Fits the groups in threads while counting the checkpoints that appear in storage."""
    num_done = sum(len(store.published_epochs()) for store in stores)
    fits = [Background(partial(_fit, group, paths, resources)) for group in groups]
    while running := [fit for fit in fits if fit.is_alive()]:
        running[0].join(POLL_SECONDS)
        now_done = sum(len(store.published_epochs()) for store in stores)
        bar.advance(max(0, now_done - num_done))
        num_done = max(now_done, num_done)
    for fit in fits:
        fit.wait()


def _fit(group: tuple[Training, ...], paths: RunPaths, resources: Resources) -> None:
    """Trains a group one after the other within a single start of Ray Train."""
    config = group[0].task.config
    folder = Path(tempfile.gettempdir()) / f"{own_folder('train')}{uuid.uuid4().hex}"
    trainer = TorchTrainer(
        _train_worker,
        train_loop_config={
            "group": group,
            "tensorboard": paths.tensorboard.url,
            "folder": training_folder(paths),
        },
        # Ray Train would take NCCL wherever it is given GPUs, also those without CUDA.
        torch_config=TorchConfig(backend="nccl" if resources.has_cuda else "gloo"),
        scaling_config=ScalingConfig(
            num_workers=config.workers, use_gpu=resources.num_gpus >= config.workers
        ),
        run_config=RunConfig(
            name=run_name([training.task.name for training in group]),
            # Ray Train's bookkeeping is the controller's alone as long as no checkpoint is
            # reported, and nothing here reads it: a folder of whichever node that runs on will do.
            storage_path=str(folder),
            failure_config=FailureConfig(max_failures=config.max_failures),
        ),
    )
    try:
        result = _fitted(trainer, config.max_failures)
    except Exception as error:
        cause = user_error(error)
        raise cause if cause is not None else error from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    # A user's mistake is returned, not raised: Ray Train would restart the workers for it.
    if isinstance(result.return_value, CslError):
        raise result.return_value


def _fitted(trainer: TorchTrainer, max_failures: int) -> Any:
    """Ray Train replaces workers that are lost, but not its own controller."""
    for _ in range(max_failures):
        try:
            return trainer.fit()
        except RayActorError as error:
            LOG.warning("the controller of a training was lost, and is started again: %s", error)
    return trainer.fit()


def run_name(names: Sequence[str]) -> str:
    """What Ray Train calls a group of trainings, and a file: not all names, which may be long."""
    return f"{key_part(names[0])}+{len(names) - 1}"


def _train_worker(loop_config: dict[str, Any]) -> CslError | None:
    """Runs on every worker: the group's trainings, each from its newest checkpoint."""
    context = _own_context()
    try:
        for training in loop_config["group"]:
            task, store = training.task, training.checkpoints
            num_rows = {a.video: a.num_frames for a in task.annotations}
            folder = node_folder(loop_config["folder"])
            reader = FeatureReader(kept_on_node(training.features, folder, num_rows))
            start = _newest(store, task.config.epochs)
            names = task.config.trackers if context.rank == 0 else ()
            with open_trackers(names, task.name, loop_config["tensorboard"]) as track:
                for result in train_epochs(task, reader.read, context=context, start=start):
                    if context.rank == 0:
                        store.save(result.info, result.weights, result.resume_state)
                    track(result.info.epoch, result.info.metrics)
                    ray.train.report({"epoch": result.info.epoch, **result.info.metrics})
    except CslError as error:
        return error
    return None


def training_folder(paths: RunPaths) -> str:
    """Names the folder of decoded features that a machine's workers train on; prediction has its
    own, which it may need while trainings end."""
    return f"{paths.root.url}/training"


def _own_context() -> WorkerContext:
    """This worker's rank, its device, and how its model shares gradients with the others'."""
    worker = ray.train.get_context()
    device = get_device() if torch.cuda.is_available() else torch.device("cpu")
    if device.type == "cpu":
        torch.set_num_threads(1)

    def wrap(model: nn.Module) -> nn.Module:
        return DistributedDataParallel(model) if worker.get_world_size() > 1 else model

    return WorkerContext(
        rank=worker.get_world_rank(),
        world=worker.get_world_size(),
        device=device,
        wrap=wrap,
    )


def _newest(store: CheckpointStore, num_epochs: int) -> tuple[int, State, State] | None:
    """Where to go on from: the newest epoch, its weights and the optimiser's state."""
    epoch = store.resume_point(num_epochs)
    if epoch == 0:
        return None
    if epoch == num_epochs:
        return epoch, {}, {}
    return epoch, store.load(store.infos(epoch)[-1]), store.load_resume_state(epoch)
