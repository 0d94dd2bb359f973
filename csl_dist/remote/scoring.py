"""Scoring on Ray: a pool of actors, one per GPU or CPU share, each taking the next checkpoint."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import ray
import torch

from csl_dist.checkpoints import CheckpointStore, require_checkpoints
from csl_dist.config import ScoreConfig
from csl_dist.errors import CslError
from csl_dist.features import FeatureEntry, FeatureReader, FeatureStore
from csl_dist.ledger import Unit
from csl_dist.models import build_scorer
from csl_dist.records import Annotation
from csl_dist.remote.pool import run_on_actors
from csl_dist.remote.progress import progress_bar
from csl_dist.remote.session import Resources, connect, user_error
from csl_dist.remote.stage import Stage
from csl_dist.run import SCORED_SPLITS
from csl_dist.score import (
    ScoreUnit,
    group_log_probabilities,
    plan_groups,
    refuse_leakage,
    require_finite,
)
from csl_dist.trajectories import Group, TrajectoryStore

FEATURE_CACHE_BYTES = 2 * 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreSlice:
    """One checkpoint and the units that need it, so that it is loaded once."""

    scorer: str
    units: tuple[ScoreUnit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorerPlan:
    """All units of one scorer."""

    scorer: str
    units: tuple[ScoreUnit, ...]
    groups: tuple[Group, ...]

    def units_of(self, group: Group) -> dict[int, Unit]:
        """The units of a group by epoch."""
        return {u.checkpoint.epoch: u.unit for u in self.units if u.group == group}


def score(stage: Stage) -> None:
    """Evaluates every checkpoint on every held-out video, and publishes the trajectories."""
    run = stage.run
    annotations = run.annotations(run.dataset.in_split(*SCORED_SPLITS))
    plans = [_plan(stage, scorer, annotations) for scorer in run.config.scorers]
    pending = {plan.scorer: _pending_groups(stage, plan) for plan in plans}
    total = sum(len(plan.units) for plan in plans)
    if not any(pending.values()):
        stage.say(f"trajectories: all {total} units are scored")
        return
    slices = [s for plan in plans for s in _pending_slices(stage, plan, pending[plan.scorer])]
    num_pending = sum(len(s.units) for s in slices)
    resources = connect(verbose=stage.verbose)
    for plan in plans:
        _lay_out_rows(stage, plan, pending[plan.scorer])
    with progress_bar(stage.console, "score: units", total=total, done=total - num_pending) as bar:
        for done in run_on_actors(
            slices,
            make_actor=_actor_maker(stage, resources),
            num_actors=_num_actors(run.config.score, resources),
            max_retries=run.config.score.max_retries,
        ):
            bar.advance(len(done.units))
    _compact_all(stage, plans, pending)


def _plan(stage: Stage, scorer: str, annotations: Sequence[Annotation]) -> ScorerPlan:
    run = stage.run
    checkpoints = run.checkpoints(scorer).infos()
    require_checkpoints(checkpoints, scorer)
    refuse_leakage(checkpoints[0], [a.video for a in annotations], run.config.audit.allow_in_sample)
    config = run.config.score
    features = {video: entry.fingerprint for video, entry in run.entries.items()}
    groups = plan_groups(annotations, features, fold=0, group_frames=config.group_frames)
    units = tuple(
        ScoreUnit(checkpoint=checkpoint, group=group, dtype=config.dtype)
        for checkpoint in checkpoints
        for group in groups
    )
    return ScorerPlan(scorer=scorer, units=units, groups=tuple(groups))


def _pending_groups(stage: Stage, plan: ScorerPlan) -> list[Group]:
    """Groups that are not published with exactly these units."""
    store = stage.run.trajectories(plan.scorer)
    known = store.published_fingerprints()
    return [g for g in plan.groups if not store.is_published(g, plan.units_of(g), known)]


def _pending_slices(stage: Stage, plan: ScorerPlan, groups: list[Group]) -> list[ScoreSlice]:
    """What is left to score, by checkpoint."""
    store = stage.run.trajectories(plan.scorer)
    scored = {group: store.scored(group) for group in groups}
    units = [
        u for u in plan.units if u.group in scored and u.unit.fingerprint not in scored[u.group]
    ]
    by_checkpoint = groupby(units, key=lambda u: u.checkpoint.epoch)
    return [ScoreSlice(scorer=plan.scorer, units=tuple(part)) for _, part in by_checkpoint]


def _lay_out_rows(stage: Stage, plan: ScorerPlan, groups: list[Group]) -> None:
    store = stage.run.trajectories(plan.scorer)
    for group in groups:
        store.create_rows(
            group,
            plan.units_of(group),
            num_classes=len(stage.run.dataset.classes),
            dtype=stage.run.config.score.dtype,
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


def get_all(futures: list[ray.ObjectRef]) -> None:
    """Waits for tasks; a user's mistake among them is raised as itself."""
    try:
        ray.get(futures)
    except Exception as error:
        cause = user_error(error)
        if isinstance(cause, CslError):
            raise cause from None
        raise


@ray.remote
def _compact(store: TrajectoryStore, group: Group, units: dict[int, Unit]) -> None:
    store.compact(group, units)


def _num_actors(config: ScoreConfig, resources: Resources) -> int:
    if resources.num_gpus:
        return resources.num_gpus
    return max(1, resources.num_cpus // config.cpus_per_worker)


def _actor_maker(stage: Stage, resources: Resources):  # type: ignore[no-untyped-def]
    run = stage.run
    config = run.config.score
    share = {"num_gpus": 1} if resources.num_gpus else {"num_cpus": config.cpus_per_worker}
    stores = {
        scorer: (run.checkpoints(scorer), run.trajectories(scorer)) for scorer in run.config.scorers
    }
    actor_class = ray.remote(**share)(ScoreActor)
    return lambda: actor_class.remote(config, run.features, run.entries, stores)


class ScoreActor:
    """Evaluates checkpoints on one GPU, or on its share of CPUs."""

    def __init__(
        self,
        config: ScoreConfig,
        features: FeatureStore,
        entries: dict[str, FeatureEntry],
        stores: dict[str, tuple[CheckpointStore, TrajectoryStore]],
    ):
        self._config = config
        self._stores = stores
        self._reader = FeatureReader(features, entries, FEATURE_CACHE_BYTES)
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        if self._device.type == "cpu":
            torch.set_num_threads(config.cpus_per_worker)

    def work(self, task: ScoreSlice) -> None:
        """Scores a checkpoint's units, writing each as it is done."""
        checkpoints, trajectories = self._stores[task.scorer]
        checkpoint = task.units[0].checkpoint
        scorer = build_scorer(checkpoint.model)
        scorer.load_state_dict(checkpoints.load(checkpoint))
        scorer.eval().to(self._device)
        for unit in task.units:
            logp_NC = group_log_probabilities(
                scorer,
                unit.group,
                self._reader.read,
                batch_frames=self._config.batch_frames,
                device=self._device,
            )
            require_finite(logp_NC, checkpoint)
            trajectories.write_row(unit.group, checkpoint.epoch, unit.unit, logp_NC)
