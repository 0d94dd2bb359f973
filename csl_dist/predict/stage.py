"""Prediction on Ray: a pool of actors, one a GPU or CPU share, each takes the next checkpoint."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import accumulate
from typing import Any

import ray

from csl_dist.cluster.pool import ActorPool, Done
from csl_dist.cluster.progress import Bar, progress_bar
from csl_dist.cluster.session import Resources, connect, on_every_node
from csl_dist.cluster.stage import Stage
from csl_dist.config import PredictConfig
from csl_dist.errors import ConfigError
from csl_dist.features.node_cache import forget_node_folder
from csl_dist.predict.actor import PredictActor, Publication, SliceResult
from csl_dist.predict.plan import (
    ScorerPlan,
    drop_stale_rows,
    drop_used_weights,
    pending_slices,
    plan_scorers,
    store_of,
)
from csl_dist.predict.pulse import Pulse, RecentRate, end_pulse, put_pulse
from csl_dist.predict.trajectories import Group, Rows
from csl_dist.predict.units import PredictSlice, split_slices, spread_over_groups
from csl_dist.training.inputs import Inputs
from csl_dist.types import Split

PULSE_SECONDS = 5.0
FRAMES_PER_TASK = 16384
"""Of videos that an actor publishes at a time, which is about a chunk of a row: smaller tasks would
read the same chunks again."""


def predict(stage: Stage, *, sweep: int | None = None) -> bool:
    """Evaluates every checkpoint on every held-out video, and publishes the trajectories.

    `sweep`: with the checkpoints of that sweep and those before it only. Whether there was
    anything to do.
    """
    inputs = stage.inputs
    plans = plan_scorers(inputs, sweep=sweep)
    was_lacking = any(plan.units for plan in plans)
    if was_lacking:
        _tell_shortened(stage, plans)
        with prediction_pool(stage) as pool:
            if any(pending_slices(inputs, plan) for plan in plans):
                with row_prediction(stage, plans) as rows:
                    while rows.predict(plans, pool) > 0:
                        plans = plan_scorers(inputs, sweep=sweep)
            publish(stage, plans, pool)
        if sweep is None:
            forget_nodes(stage)
    else:
        total = sum(plan.num_videos for plan in plans)
        stage.say(f"trajectories: all {total} are there")
    drop_stale_rows(inputs, plans)
    drop_used_weights(inputs, plans)
    return was_lacking


def forget_nodes(stage: Stage) -> None:
    """Deletes the features that machines keep while checkpoints see them."""
    on_every_node(forget_node_folder, stage.run.paths.root.url)


def _tell_shortened(stage: Stage, plans: Sequence[ScorerPlan]) -> None:
    for plan in plans:
        if plan.num_shortened:
            stage.say(
                f"predict: {plan.num_shortened} videos get fewer checkpoints of {plan.scorer} "
                "than others, because checkpoints.keep deleted weights"
            )


def prediction_pool(stage: Stage) -> ActorPool:
    """Actors that have a GPU each, or a share of the CPUs."""
    config = stage.run.config.predict
    resources = connect(verbose=stage.verbose)
    return ActorPool(
        _actor_maker(stage.inputs, resources),
        num_actors=_num_actors(config, resources),
        max_retries=config.max_retries,
    )


@contextmanager
def row_prediction(stage: Stage, plans: Sequence[ScorerPlan]) -> Iterator["RowPrediction"]:
    """Shows a bar over all units that are expected, while rounds of prediction go on."""
    total = sum(plan.num_expected for plan in plans)
    left = [part for plan in plans for part in pending_slices(stage.inputs, plan)]
    num_left = sum(len(part.units) for part in left)
    num_done = sum(plan.num_units for plan in plans) - num_left
    with progress_bar(stage.console, "predict: units", total=total, done=num_done) as bar:
        yield RowPrediction(stage, bar, total, num_done)
    end_pulse(stage.run.paths)


class RowPrediction:
    """Predicts what is missing of plans, in one round or several."""

    def __init__(self, stage: Stage, bar: Bar, total: int, num_done: int):
        self._stage = stage
        self._bar = bar
        self._total = total
        self._num_done = num_done
        self._num_lost = 0
        self._bad: set[str] = set()
        self._busy_seconds = 0.0
        self._rate = RecentRate(0.0)
        """Over the seconds in which rounds went on."""
        self._last_pulse = 0.0

    def predict(self, plans: Sequence[ScorerPlan], pool: ActorPool) -> int:
        """Writes all rows that are missing; tells how many checkpoints proved bad."""
        inputs = self._stage.inputs
        slices = [part for plan in plans for part in pending_slices(inputs, plan)]
        _lay_out_rows(inputs, plans, slices)
        bad_before, lost_before = len(self._bad), self._num_lost - pool.num_lost
        begun = time.monotonic()
        tasks = spread_over_groups(split_slices(slices, pool.num_actors), pool.num_actors)
        for done in pool.run(tasks, prefetch=True):
            now = time.monotonic()
            self._busy_seconds += now - begun
            begun = now
            self._num_lost = lost_before + pool.num_lost
            self._note(done)
        return len(self._bad) - bad_before

    def _note(self, done: Done[PredictSlice]) -> None:
        part, result = done.task, done.result
        self._tell(part, result)
        self._num_done += len(part.units)
        self._rate.note(self._busy_seconds, len(part.units), part.num_frames)
        # Units to come may not be known yet; those that are done stand for them.
        unit_rate, frame_rate = self._rate.per_second()
        pulse = Pulse(
            units_done=self._num_done,
            units_total=self._total,
            units_in_flight=sum(len(running.units) for running in done.in_flight),
            frame_rate=frame_rate,
            seconds_left=(self._total - self._num_done) / unit_rate,
            lost_workers=self._num_lost,
            skipped_checkpoints=len(self._bad),
            at=time.time(),
        )
        self._bar.advance(len(part.units))
        self._bar.note(pulse.sentence())
        if time.monotonic() - self._last_pulse >= PULSE_SECONDS:
            self._last_pulse = time.monotonic()
            put_pulse(self._stage.run.paths, pulse)

    def _tell(self, part: PredictSlice, result: SliceResult) -> None:
        """Says what a user should know of a slice that did not go as asked for."""
        if result.bad is not None and result.bad not in self._bad:
            self._bad.add(result.bad)
            store = self._stage.inputs.checkpoints.store(part.scorer, part.checkpoint.fold)
            [bad] = {
                unit.checkpoint.name: unit.checkpoint
                for unit in part.units
                if unit.checkpoint.epoch == result.bad_epoch
            }.values()
            store.mark_bad(bad, result.bad)
            self._stage.say(f"skipped: {result.bad}")
        if result.batch_frames is not None:
            self._stage.say(
                f"predict: memory suffices for {result.batch_frames} frames at once, not for the "
                f"{part.batch_frames} of predict.batch_frames"
            )


def _lay_out_rows(
    inputs: Inputs, plans: Sequence[ScorerPlan], slices: Sequence[PredictSlice]
) -> None:
    """Makes room for the rows of all groups that slices write to."""
    for plan in plans:
        store = store_of(inputs, plan.scorer)
        own = [unit for part in slices if part.scorer == plan.scorer for unit in part.units]
        for group in dict.fromkeys(unit.group for unit in own):
            store.create_rows(
                group,
                plan.units_of(group),
                num_classes=len(inputs.run.dataset.classes),
                dtype=inputs.run.config.predict.dtype,
            )


def publish(stage: Stage, plans: Sequence[ScorerPlan], pool: ActorPool) -> None:
    """Turns rows into trajectories."""
    parts = [
        Publication(scorer=plan.scorer, group=group, rows=some)
        for plan in plans
        for group in plan.units
        for some in _batched(plan.rows_of(group), group)
    ]
    total = sum(len(part.rows) for part in parts)
    with progress_bar(stage.console, "predict: publish", total=total) as bar:
        for done in pool.run(parts, method="publish"):
            bar.advance(len(done.task.rows))
    for plan in plans:
        for group in plan.units:
            store_of(stage.inputs, plan.scorer).drop_rows(group)


def _batched(rows: Mapping[str, Rows], group: Group) -> list[dict[str, Rows]]:
    """Rows by video, in tasks of videos that lie side by side in the group."""
    tasks: dict[int, dict[str, Rows]] = defaultdict(dict)
    for video, start in zip(group.videos, accumulate(group.lengths, initial=0), strict=False):
        if video in rows:
            tasks[start // FRAMES_PER_TASK][video] = rows[video]
    return list(tasks.values())


def _num_actors(config: PredictConfig, resources: Resources) -> int:
    """How many actors the cluster has room for."""
    if resources.num_gpus:
        return resources.num_gpus
    if config.cpus_per_worker > resources.num_cpus:
        raise ConfigError(
            f"predict.cpus_per_worker is {config.cpus_per_worker}, but the cluster has "
            f"{resources.num_cpus} CPUs; lower it"
        )
    return resources.num_cpus // config.cpus_per_worker


def _actor_maker(inputs: Inputs, resources: Resources) -> Callable[[], Any]:
    """What starts a PredictActor with its share of the cluster."""
    run = inputs.run
    config = run.config.predict
    share = {"num_gpus": 1} if resources.num_gpus else {"num_cpus": config.cpus_per_worker}
    actor_class = ray.remote(**share, max_concurrency=2)(PredictActor)

    @cache
    def shared() -> tuple[Any, Any]:
        """One copy on each node, however many actors there are; none where there are none."""
        sources = {
            (scorer, fold.index): inputs.features.of(scorer, fold.index)
            for scorer in run.config.scorers
            for fold in run.dataset.folds
        }
        return ray.put(sources), ray.put(inputs.labels.derived(Split.AUDIT))

    return lambda: actor_class.remote(config, run.paths, *shared())
