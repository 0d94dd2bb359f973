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
from csl_dist.errors import CslError, DataError
from csl_dist.features import FeatureReader, FeatureSource
from csl_dist.layout import RunLayout
from csl_dist.records import Split
from csl_dist.remote.progress import Bar, progress_bar
from csl_dist.remote.session import Resources, connect, user_error
from csl_dist.remote.stage import Stage
from csl_dist.run import Run, orders_of
from csl_dist.train import Seat, TrainingTask, train_epochs

FEATURE_CACHE_BYTES = 2 * 2**30
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
    tasks = [
        _task(run, scorer, fold) for scorer in run.config.scorers for fold in run.dataset.folds
    ]
    stores = {task.name: run.checkpoints(task.scorer, task.fold) for task in tasks}
    done = {task.name: _usable_epochs(stores[task.name], task) for task in tasks}
    total = sum(task.config.epochs for task in tasks)
    num_done = sum(min(done[task.name], task.config.epochs) for task in tasks)
    if num_done == total:
        stage.say(f"checkpoints: all {total} epochs are trained")
        return
    resources = connect(verbose=stage.verbose)
    pending = [task for task in tasks if done[task.name] < task.config.epochs]
    groups = [
        TrainingGroup(tasks=part, layout=run.layout, features=run.features)
        for part in _side_by_side(pending, resources)
    ]
    with progress_bar(stage.console, "train: epochs", total=total, done=num_done) as bar:
        _fit_all(groups, resources, [stores[task.name] for task in tasks], bar, num_done)


def _task(run: Run, scorer: str, fold: Fold) -> TrainingTask:
    if not fold.train:
        raise DataError(f"{run.config.dataset.path} has no training videos; mark some as `train`")
    annotations = run.annotations(fold.train, Split.TRAIN)
    return TrainingTask(
        scorer=scorer,
        fold=fold.index,
        model=run.model_spec(scorer),
        config=run.config.train,
        classes=run.dataset.classes,
        encoder=run.features.encoder,
        annotations=tuple(annotations),
        features={a.video: run.seen_features(a) for a in annotations},
    )


def _usable_epochs(store: CheckpointStore, task: TrainingTask) -> int:
    """How many epochs of this very training are published; those of another are deleted."""
    infos = store.infos()
    if any(info.training != task.fingerprint() for info in infos):
        store.clear()
        return 0
    return len(infos)


def _side_by_side(
    tasks: list[TrainingTask], resources: Resources
) -> list[tuple[TrainingTask, ...]]:
    """As many groups as the cluster can run at once; starting Ray Train costs each about 10 s."""
    slots = (resources.num_gpus or resources.num_cpus) // tasks[0].config.workers
    num_groups = max(1, min(slots, len(tasks)))
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
        bar.advance(now_done - num_done)
        num_done = now_done
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
            reader = FeatureReader(group.features, orders_of(task.annotations), FEATURE_CACHE_BYTES)
            store = CheckpointStore(group.layout.checkpoints(task.scorer, task.fold))
            for result in train_epochs(task, reader.read, seat=seat, start=_newest(store)):
                if seat.rank == 0:
                    store.save(result.info, result.weights, result.resume_state)
                ray.train.report({"epoch": result.info.epoch, **result.info.metrics})
    except CslError as error:
        return error
    return None


def _newest(store: CheckpointStore) -> tuple[int, State, State] | None:
    """Where to go on from: the newest epoch, its weights and the optimiser's state."""
    infos = store.infos()
    if not infos:
        return None
    epoch = infos[-1].epoch
    return epoch, store.load(infos[-1]), store.load_resume_state(epoch)
