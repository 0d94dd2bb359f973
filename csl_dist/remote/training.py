"""Training on Ray Train: every scorer and fold of a run, side by side as the cluster allows.

Ray Train supplies the workers, their process group and their restart after a failure. Checkpoints
go through CheckpointStore rather than through `report`, because they must be published whole and
be found again by any later run; a worker that restarts goes on from the newest one there.
"""

import threading
from dataclasses import dataclass
from typing import Any

import ray
import ray.train
import torch
from ray.train import FailureConfig, RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer, get_device, prepare_model

from csl_dist.checkpoints import CheckpointStore, State
from csl_dist.datasets import Fold
from csl_dist.errors import ConfigError, CslError, DataError
from csl_dist.features import FeatureReader, FeatureSource
from csl_dist.layout import RunLayout
from csl_dist.records import Split
from csl_dist.remote.progress import Bar, progress_bar
from csl_dist.remote.session import Resources, connect, user_error
from csl_dist.remote.stage import Stage
from csl_dist.run import Run, orders_of
from csl_dist.train import Seat, TrainingTask, train_epochs, training_fingerprint

POLL_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingGroup:
    """Trainings that share one start of Ray Train, one after the other."""

    tasks: tuple[TrainingTask, ...]
    layout: RunLayout
    features: FeatureSource


def train(stage: Stage) -> None:
    """Trains every scorer that does not have all its epochs."""
    run = stage.run
    _refuse_bad_labels(run)
    tasks = [
        _task(run, scorer, fold) for scorer in run.config.scorers for fold in run.dataset.folds
    ]
    stores = [_start(run.layout, task) for task in tasks]
    epochs = run.config.train.epochs
    done = [store.resume_point(epochs) for store in stores]
    total = epochs * len(tasks)
    if sum(done) == total:
        stage.say(f"checkpoints: all {total} epochs are trained")
        return
    resources = connect(verbose=stage.verbose)
    pending = [task for task, number in zip(tasks, done, strict=True) if number < epochs]
    groups = [
        TrainingGroup(tasks=part, layout=run.layout, features=run.features)
        for part in _side_by_side(pending, resources)
    ]
    with progress_bar(stage.console, "train: epochs", total=total, done=sum(done)) as bar:
        _fit_all(groups, resources, stores, bar, sum(done))


def _refuse_bad_labels(run: Run) -> None:
    """Reads all labels, those of the audit too: better now than after hours of training."""
    for split in (Split.AUDIT, Split.VAL):
        run.split_annotations(split)


def _start(layout: RunLayout, task: TrainingTask) -> CheckpointStore:
    """The training's checkpoints, which from now on are those that an audit uses."""
    folder = layout.fold(task.scorer, task.fold)
    current = {"training": task.fingerprint}
    if not folder.exists(layout.TRAINING) or folder.read_json(layout.TRAINING) != current:
        folder.put_json(layout.TRAINING, current)
    return _store(layout, task)


def _store(layout: RunLayout, task: TrainingTask) -> CheckpointStore:
    return CheckpointStore(layout.checkpoints(task.scorer, task.fold, task.fingerprint))


def _task(run: Run, scorer: str, fold: Fold) -> TrainingTask:
    if not fold.train:
        raise DataError(f"{run.config.dataset.path} has no training videos; mark some as `train`")
    annotations = tuple(run.annotations(fold.train, Split.TRAIN))
    model, config, classes = run.model_spec(scorer), run.config.train, run.dataset.classes
    features = {a.video: run.seen_features(a) for a in annotations}
    return TrainingTask(
        scorer=scorer,
        fold=fold.index,
        model=model,
        config=config,
        classes=classes,
        encoder=run.features.encoder,
        annotations=annotations,
        fingerprint=training_fingerprint(model, config, classes, annotations, features),
    )


def _side_by_side(
    tasks: list[TrainingTask], resources: Resources
) -> list[tuple[TrainingTask, ...]]:
    """As many groups as the cluster can run at once; starting Ray Train costs each about 10 s."""
    available = resources.num_gpus or resources.num_cpus
    workers = tasks[0].config.workers
    if workers > available:
        unit = "GPUs" if resources.num_gpus else "CPUs"
        raise ConfigError(
            f"train.workers is {workers}, but the cluster has {available} {unit}; lower it"
        )
    num_groups = min(available // workers, len(tasks))
    return [tuple(tasks[i::num_groups]) for i in range(num_groups)]


def _fit_all(
    groups: list[TrainingGroup],
    resources: Resources,
    stores: list[CheckpointStore],
    bar: Bar,
    num_done: int,
) -> None:
    """Fits the groups in threads while counting the checkpoints that appear in storage."""
    fits = [_Fit(group, resources) for group in groups]
    while running := [fit for fit in fits if fit.is_alive()]:
        running[0].join(POLL_SECONDS)
        now_done = sum(len(store.published_epochs()) for store in stores)
        bar.advance(max(0, now_done - num_done))
        num_done = max(now_done, num_done)
    for fit in fits:
        if fit.error is not None:
            raise fit.error


class _Fit(threading.Thread):
    """One `fit` of Ray Train. A daemon, so that an interrupted command does not wait for it."""

    def __init__(self, group: TrainingGroup, resources: Resources):
        super().__init__(daemon=True)
        self._group = group
        self._resources = resources
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            _fit(self._group, self._resources)
        except BaseException as error:
            self.error = error


def _fit(group: TrainingGroup, resources: Resources) -> None:
    config = group.tasks[0].config
    name = "+".join(task.name.replace("/", "-") for task in group.tasks)
    trainer = TorchTrainer(
        _train_worker,
        train_loop_config={"group": group},
        scaling_config=ScalingConfig(
            num_workers=config.workers, use_gpu=resources.num_gpus >= config.workers
        ),
        run_config=RunConfig(
            name=name,
            storage_path=group.layout.ray_train.url,
            failure_config=FailureConfig(max_failures=config.max_failures),
        ),
    )
    try:
        result = trainer.fit()
    except Exception as error:
        cause = user_error(error)
        raise cause if cause is not None else error from None
    # A user's mistake is returned, not raised: Ray Train would restart the workers for it.
    if isinstance(result.return_value, CslError):
        raise result.return_value


def _train_worker(loop_config: dict[str, Any]) -> CslError | None:
    """Runs on every worker: the group's trainings, each from its newest checkpoint."""
    group: TrainingGroup = loop_config["group"]
    context = ray.train.get_context()
    if not torch.cuda.is_available():
        torch.set_num_threads(1)
    seat = Seat(
        rank=context.get_world_rank(),
        world=context.get_world_size(),
        device=get_device(),
        wrap=prepare_model,
    )
    try:
        for task in group.tasks:
            reader = FeatureReader(group.features, orders_of(task.annotations))
            store = _store(group.layout, task)
            start = _newest(store, task.config.epochs)
            for result in train_epochs(task, reader.read, seat=seat, start=start):
                if seat.rank == 0:
                    store.save(result.info, result.weights, result.resume_state)
                ray.train.report({"epoch": result.info.epoch, **result.info.metrics})
    except CslError as error:
        return error
    return None


def _newest(store: CheckpointStore, num_epochs: int) -> tuple[int, State, State] | None:
    """Where to go on from: the newest epoch, its weights and the optimiser's state."""
    epoch = store.resume_point(num_epochs)
    if epoch == 0:
        return None
    if epoch == num_epochs:
        return epoch, {}, {}
    return epoch, store.load(store.infos(epoch)[-1]), store.load_resume_state(epoch)
