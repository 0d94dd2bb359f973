"""Scoring on Ray: a pool of actors, one per GPU or CPU share, each taking the next checkpoint."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import ray
import torch

from csl_dist.checkpoints import CheckpointStore
from csl_dist.config import ScoreConfig
from csl_dist.errors import ConfigError
from csl_dist.features import FeatureReader, FeatureSource
from csl_dist.layout import RunLayout
from csl_dist.ledger import Unit
from csl_dist.models import Scorer, build_scorer
from csl_dist.records import Annotation, IntArray, Split
from csl_dist.remote.pool import run_on_actors
from csl_dist.remote.progress import progress_bar
from csl_dist.remote.session import Resources, connect, get_all
from csl_dist.remote.stage import Stage
from csl_dist.run import CNN, Run, orders_of, require_features, seen_features
from csl_dist.score import (
    ScoreUnit,
    group_log_probabilities,
    plan_groups,
    refuse_leakage,
    require_finite,
    within_memory,
)
from csl_dist.trajectories import Group, TrajectoryStore


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreSlice:
    """One checkpoint and the units that need it, so that it is loaded once."""

    scorer: str
    units: tuple[ScoreUnit, ...]
    batch_frames: int
    """Most frames in one forward pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorerPlan:
    """All units of one scorer, over all folds."""

    scorer: str
    units: dict[Group, tuple[ScoreUnit, ...]]

    @property
    def num_units(self) -> int:
        return sum(len(units) for units in self.units.values())

    def units_of(self, group: Group) -> dict[int, Unit]:
        """The units of a group by epoch."""
        return {unit.checkpoint.epoch: unit.unit for unit in self.units[group]}


def score(stage: Stage) -> None:
    """Evaluates every checkpoint on every held-out video, and publishes the trajectories."""
    run = stage.run
    annotations = scored_annotations(run)
    plans = [_plan(run, scorer, annotations) for scorer in run.config.scorers]
    pending = {plan.scorer: _pending_groups(run, plan) for plan in plans}
    total = sum(plan.num_units for plan in plans)
    if not any(pending.values()):
        stage.say(f"trajectories: all {total} units are scored")
        return
    slices = [s for plan in plans for s in _pending_slices(run, plan, pending[plan.scorer])]
    num_pending = sum(len(s.units) for s in slices)
    resources = connect(verbose=stage.verbose)
    for plan in plans:
        _lay_out_rows(run, plan, pending[plan.scorer])
    title = "score: units"
    with progress_bar(stage.console, title, total=total, done=total - num_pending) as bar:
        for done in run_on_actors(
            slices,
            make_actor=_actor_maker(run, orders_of(annotations), resources),
            num_actors=_num_actors(run.config.score, resources),
            max_retries=run.config.score.max_retries,
        ):
            bar.advance(len(done.units))
    _compact_all(stage, plans, pending)


def scored_annotations(run: Run) -> list[Annotation]:
    """All videos that no training sees: those to audit, and those that set the threshold."""
    return [a for split in (Split.AUDIT, Split.VAL) for a in run.split_annotations(split)]


def _plan(run: Run, scorer: str, annotations: Sequence[Annotation]) -> ScorerPlan:
    config = run.config.score
    by_id = {a.video: a for a in annotations}
    units: dict[Group, tuple[ScoreUnit, ...]] = {}
    for fold in run.dataset.folds:
        checkpoints = run.checkpoints(scorer, fold.index, config.checkpoints)
        refuse_leakage(checkpoints[0], fold.scored, run.config.audit.allow_in_sample)
        held_out = [by_id[video] for video in fold.scored]
        source = run.features_of(scorer, fold.index)
        require_features(source, fold.scored)
        features = {a.video: seen_features(source, a) for a in held_out}
        groups = plan_groups(held_out, features, fold=fold.index, group_frames=config.group_frames)
        for group in groups:
            units[group] = tuple(
                ScoreUnit(checkpoint=checkpoint, group=group, dtype=config.dtype)
                for checkpoint in checkpoints
            )
    return ScorerPlan(scorer=scorer, units=units)


def _pending_groups(run: Run, plan: ScorerPlan) -> list[Group]:
    """Groups that are not published with exactly these units."""
    store = run.trajectories(plan.scorer)
    known = store.published_fingerprints()
    return [g for g in plan.units if not store.is_published(g, plan.units_of(g), known)]


def _pending_slices(run: Run, plan: ScorerPlan, groups: list[Group]) -> list[ScoreSlice]:
    """What is left to score, by checkpoint."""
    store = run.trajectories(plan.scorer)
    left: dict[tuple[int, int], list[ScoreUnit]] = {}
    for group in groups:
        scored = store.scored(group)
        for unit in plan.units[group]:
            if unit.unit.fingerprint not in scored:
                place = (unit.checkpoint.fold, unit.checkpoint.epoch)
                left.setdefault(place, []).append(unit)
    adapt = run.config.features.adapt
    batch_frames = run.config.score.batch_frames
    if plan.scorer == CNN and adapt is not None:
        batch_frames = adapt.batch_frames
    return [
        ScoreSlice(scorer=plan.scorer, units=tuple(units), batch_frames=batch_frames)
        for units in left.values()
    ]


def _lay_out_rows(run: Run, plan: ScorerPlan, groups: list[Group]) -> None:
    store = run.trajectories(plan.scorer)
    for group in groups:
        store.create_rows(
            group,
            plan.units_of(group),
            num_classes=len(run.dataset.classes),
            dtype=run.config.score.dtype,
        )


def _compact_all(stage: Stage, plans: list[ScorerPlan], pending: dict[str, list[Group]]) -> None:
    futures = [
        _compact.remote(stage.run.trajectories(plan.scorer), group, plan.units_of(group))
        for plan in plans
        for group in pending[plan.scorer]
    ]
    with progress_bar(stage.console, "score: compact", total=len(futures)) as bar:
        while futures:
            ready, futures = ray.wait(futures)
            get_all(ready)
            bar.advance(len(ready))


@ray.remote
def _compact(store: TrajectoryStore, group: Group, units: dict[int, Unit]) -> None:
    store.compact(group, units)


def _num_actors(config: ScoreConfig, resources: Resources) -> int:
    if resources.num_gpus:
        return resources.num_gpus
    if config.cpus_per_worker > resources.num_cpus:
        raise ConfigError(
            f"score.cpus_per_worker is {config.cpus_per_worker}, but the cluster has "
            f"{resources.num_cpus} CPUs; lower it"
        )
    return resources.num_cpus // config.cpus_per_worker


def _actor_maker(run: Run, orders: dict[str, IntArray], resources: Resources) -> Callable[[], Any]:
    config = run.config.score
    share = {"num_gpus": 1} if resources.num_gpus else {"num_cpus": config.cpus_per_worker}
    actor_class = ray.remote(**share)(ScoreActor)
    # One copy on each node, however many actors there are.
    sources = {
        (scorer, fold.index): run.features_of(scorer, fold.index)
        for scorer in run.config.scorers
        for fold in run.dataset.folds
    }
    shared = ray.put(sources), ray.put(orders)
    return lambda: actor_class.remote(config, run.layout, *shared)


class ScoreActor:
    """Evaluates checkpoints on one GPU, or on its share of CPUs."""

    def __init__(
        self,
        config: ScoreConfig,
        layout: RunLayout,
        sources: dict[tuple[str, int], FeatureSource],
        orders: dict[str, IntArray],
    ):
        self._layout = layout
        self._sources = sources
        self._orders = orders
        self._reader: FeatureReader | None = None
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        if self._device.type == "cpu":
            torch.set_num_threads(config.cpus_per_worker)

    def work(self, task: ScoreSlice) -> None:
        """Scores a checkpoint's units, writing each as it is done."""
        checkpoint = task.units[0].checkpoint
        checkpoints = CheckpointStore(
            self._layout.checkpoints(task.scorer, checkpoint.fold, checkpoint.training)
        )
        trajectories = TrajectoryStore(self._layout.scorer(task.scorer))
        reader = self._reader_of(self._sources[task.scorer, checkpoint.fold])
        scorer = build_scorer(checkpoint.model)
        scorer.load_state_dict(checkpoints.load(checkpoint))
        scorer.eval().to(self._device)
        for unit in task.units:
            logp_NC = self._log_probabilities(scorer, unit, reader, task.batch_frames)
            require_finite(logp_NC, checkpoint)
            trajectories.write_row(unit.group, checkpoint.epoch, unit.unit, logp_NC)

    def _log_probabilities(
        self, scorer: Scorer, unit: ScoreUnit, reader: FeatureReader, batch_frames: int
    ) -> npt.NDArray[np.float32]:
        return within_memory(
            lambda frames: group_log_probabilities(
                scorer,
                unit.group,
                reader.read,
                model=unit.checkpoint.model,
                batch_frames=frames,
                device=self._device,
            ),
            batch_frames,
        )

    def _reader_of(self, source: FeatureSource) -> FeatureReader:
        """The reader of a source; that of the last source is kept, with what it holds."""
        if self._reader is None or self._reader.source is not source:
            self._reader = FeatureReader(source, self._orders)
        return self._reader
