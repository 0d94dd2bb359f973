"""What an audit has to predict: every scorer's units, and which of them are left."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from csl_dist.config import CNN
from csl_dist.data.dataset import Fold
from csl_dist.features.source import require_features
from csl_dist.predict.catalog import Locations, TrajectoryCatalog
from csl_dist.predict.checkpoints import (
    ChosenCheckpoints,
    chosen_checkpoints,
    loadable_epochs,
)
from csl_dist.predict.trajectories import (
    Group,
    Rows,
    TrajectoryStore,
    rows_fingerprint,
)
from csl_dist.predict.units import PredictSlice, PredictUnit, plan_groups, row_of
from csl_dist.storage.ledger import Unit
from csl_dist.storage.requests import at_once
from csl_dist.storage.url import key_part
from csl_dist.strategies import SWEEPS, selected_epochs
from csl_dist.training.checkpoints import CheckpointInfo
from csl_dist.training.inputs import Inputs
from csl_dist.training.models import weight_bytes
from csl_dist.training.scorers import num_epochs
from csl_dist.types import Annotation, Split

CHECKPOINTS_AT_ONCE = 16
"""Most checkpoints that a group is run through while its features are in memory; of `cnn`, whose
frames are decoded for that, 0.7 GB of weights."""
WEIGHTS_AT_ONCE = 64 << 20
"""Bytes of their weights, of other scorers: large ones take longer to compute than to read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorerPlan:
    """What is left to predict with one scorer, over all folds."""

    scorer: str
    units: dict[Group, tuple[PredictUnit, ...]]
    """Of groups that have a video to publish."""
    rows: dict[str, Rows]
    """What each video that is to be published will be made of."""
    checkpoints: dict[int, tuple[CheckpointInfo, ...]]
    """Those that a fold's videos are run through; of a sweep, those of it and all before it."""
    num_videos: int
    """All that the scorer is run over, published ones included."""
    num_expected: int
    """Units when training is over; as many as there are now where it is."""
    stale: tuple[Group, ...]
    """Groups with rows that nobody wants any more."""

    @property
    def num_units(self) -> int:
        return sum(len(units) for units in self.units.values())

    @property
    def num_shortened(self) -> int:
        """Videos that lack checkpoints whose weights `checkpoints.keep` deleted."""
        most = max((len(infos) for infos in self.checkpoints.values()), default=0)
        return sum(len(rows) < most for rows in self.rows.values())

    def units_of(self, group: Group) -> dict[int, Unit]:
        """The units of a group by epoch."""
        return {unit.checkpoint.epoch: unit.unit for unit in self.units[group]}

    def rows_of(self, group: Group) -> dict[str, Rows]:
        """What the videos of a group that are to be published will be made of."""
        return {video: self.rows[video] for video in group.videos if video in self.rows}

    def epochs_of(self, fold: int) -> set[int]:
        """Epochs of the checkpoints that a fold's videos are run through."""
        return {info.epoch for info in self.checkpoints[fold]}


def plan_scorers(
    inputs: Inputs, *, so_far: bool = False, sweep: int | None = None
) -> list[ScorerPlan]:
    """The plan of every scorer; `so_far` while training still adds checkpoints.

    `sweep`: only for the checkpoints of that sweep and those before it; rows of others that are
    there are kept.
    """
    annotations = inputs.labels.held_out()
    return [
        _plan_scorer(inputs, name, annotations, so_far, sweep) for name in inputs.run.config.scorers
    ]


def first_sweep(inputs: Inputs) -> int:
    """The sweep to go on with: the last one that is done, whose audit may be lacking, or 0."""
    for sweep in range(len(SWEEPS)):
        if any(plan.units for plan in plan_scorers(inputs, sweep=sweep)):
            return max(0, sweep - 1)
    return len(SWEEPS) - 1


def checkpoints_done(inputs: Inputs) -> tuple[int, int]:
    """How many checkpoints all held-out videos are published with, and how many there are.

    Of several scorers and folds those of the least share.
    """
    annotations = inputs.labels.held_out()
    counts = []
    for scorer in inputs.run.config.scorers:
        store = store_of(inputs, scorer)
        for fold in inputs.run.dataset.folds:
            total = chosen_checkpoints(inputs, scorer, fold, so_far=False, sweep=None).num_expected
            wanted = set(fold.held_out)
            videos = [a.video for a in annotations if a.original in wanted]
            done = min(map(len, at_once(store.published_rows, videos)), default=total)
            counts.append((min(done, total), total))
    return min(counts, key=lambda count: count[0] / count[1])


def _plan_scorer(
    inputs: Inputs,
    scorer: str,
    annotations: Sequence[Annotation],
    so_far: bool,
    sweep: int | None,
) -> ScorerPlan:
    stored = _Stored.of(store_of(inputs, scorer))
    folds = []
    for fold in inputs.run.dataset.folds:
        chosen = chosen_checkpoints(inputs, scorer, fold, so_far=so_far, sweep=sweep)
        planner = _FoldPlanner(inputs, scorer, fold, annotations, chosen, stored)
        folds.append((fold.index, chosen, planner.plan()))
    units = {group: own for *_, plan in folds for group, own in plan.units.items()}
    return ScorerPlan(
        scorer=scorer,
        units=units,
        rows={video: rows for *_, plan in folds for video, rows in plan.rows.items()},
        checkpoints={index: chosen.wanted_infos for index, chosen, _ in folds},
        num_videos=len(annotations),
        num_expected=sum(
            len(own) + chosen.num_expected - len(chosen.wanted)
            for _, chosen, plan in folds
            for own in plan.units.values()
        ),
        stale=tuple(set(stored.begun) - units.keys()),
    )


@dataclass(frozen=True, slots=True)
class _Stored:
    """What a scorer's store holds, from three listings."""

    store: TrajectoryStore
    published: dict[str, str]
    written: dict[str, set[str]]
    begun: list[Group]

    @classmethod
    def of(cls, store: TrajectoryStore) -> "_Stored":
        return cls(store, store.published_fingerprints(), store.written(), store.open_groups())


@dataclass(frozen=True, slots=True)
class _FoldPlan:
    units: dict[Group, tuple[PredictUnit, ...]]
    rows: dict[str, Rows]


class _FoldPlanner:
    """Finds out which videos of a fold are to be predicted, with which checkpoints."""

    def __init__(
        self,
        inputs: Inputs,
        scorer: str,
        fold: Fold,
        annotations: Sequence[Annotation],
        chosen: ChosenCheckpoints,
        stored: _Stored,
    ):
        self._config = inputs.run.config.predict
        self._fold = fold
        self._checkpoints = chosen.infos
        self._wanted = chosen.wanted
        self._stored = stored
        self._loadable = loadable_epochs(inputs, scorer, fold, chosen.infos)
        source = inputs.seen_features(scorer, fold.index, Split.AUDIT)
        require_features(source, fold.held_out)
        wanted = set(fold.held_out)
        self._own = {a.video: a for a in annotations if a.original in wanted}
        self._features = {video: source.fingerprint(video) for video in self._own}

    def plan(self) -> _FoldPlan:
        pending = {video for video in self._own if not self._is_current(video)}
        units: dict[Group, tuple[PredictUnit, ...]] = {}
        rows: dict[str, Rows] = {}
        for group in self._groups(pending):
            waiting = pending & set(group.videos)
            covered = self._covered(waiting)
            units[group] = self._units(group, covered)
            epochs = covered | {unit.checkpoint.epoch for unit in units[group]}
            rows |= {video: self._rows(video, epochs) for video in waiting}
        return _FoldPlan(units, rows)

    def _rows(self, video: str, epochs: set[int] | None = None) -> Rows:
        """What a video's rows are made from, of all checkpoints or of some."""
        frames, made = self._own[video].num_frames, self._features[video]
        return {
            info.epoch: row_of(info, made, frames, self._config.numbers)
            for info in self._checkpoints
            if epochs is None or info.epoch in epochs
        }

    def _is_current(self, video: str) -> bool:
        """Whether a video is published with all rows that are wanted and that it can have."""
        known, whole = self._stored.published.get(key_part(video)), self._rows(video)
        if known is None or known == rows_fingerprint(whole):
            return known is not None
        there = self._stored.store.published_rows(video)
        # Rows whose weights are gone can't be added; all others must be there.
        lacking = self._wanted - there.keys()
        return there.items() <= whole.items() and not lacking & self._loadable

    def _groups(self, pending: set[str]) -> list[Group]:
        """Groups with a pending video: first those that an interrupted run has begun."""
        begun = [g for g in self._stored.begun if self._fits(g) and pending & set(g.videos)]
        grouped = {video for group in begun for video in group.videos}
        rest = [a for a in self._own.values() if a.video in pending - grouped]
        # Apart, because a corrected label can move a copy's frames, but never a video's.
        videos = [a for a in rest if a.original == a.video]
        copies = [a for a in rest if a.original != a.video]
        frames, fold = self._config.group_frames, self._fold.index
        fresh = (
            plan_groups(part, self._features, fold=fold, group_frames=frames)
            for part in (videos, copies)
        )
        return [*begun, *(group for part in fresh for group in part)]

    def _fits(self, group: Group) -> bool:
        """Whether a group holds videos as they are now."""
        members = zip(group.videos, group.lengths, group.features, strict=True)
        return group.fold == self._fold.index and all(
            video in self._own
            and self._own[video].num_frames == length
            and self._features[video] == made
            for video, length, made in members
        )

    def _covered(self, videos: set[str]) -> set[int]:
        """Epochs whose rows all of these videos have from an earlier publication."""
        known = [v for v in videos if key_part(v) in self._stored.published]
        if len(known) < len(videos):
            return set()
        shared = [
            self._stored.store.published_rows(video).items() & self._rows(video).items()
            for video in videos
        ]
        return set.intersection(*({epoch for epoch, _ in rows} for rows in shared))

    def _units(self, group: Group, covered: set[int]) -> tuple[PredictUnit, ...]:
        """The units of a group whose rows are written, or whose weights are there."""
        needed = tuple(
            PredictUnit(checkpoint=info, group=group, numbers=self._config.numbers)
            for info in self._checkpoints
            if info.epoch not in covered
        )
        written = self._stored.written.get(group.key, set())
        usable = tuple(
            unit
            for unit in needed
            if unit.checkpoint.epoch in self._wanted & self._loadable
            or unit.unit.fingerprint in written
        )
        if usable or covered:
            return usable
        # Where no weights are left at all, loading says what to do.
        return tuple(unit for unit in needed if unit.checkpoint.epoch in self._wanted)


def store_of(inputs: Inputs, scorer: str) -> TrajectoryStore:
    """The trajectories of one of a run's scorers."""
    return TrajectoryStore(inputs.run.paths.scorer(scorer))


def trajectory_catalog(
    inputs: Inputs, scorers: Sequence[str], known: Locations | None = None
) -> TrajectoryCatalog:
    """All published trajectories of some scorers; `known` are places of earlier ones."""
    known = known or {}
    return TrajectoryCatalog(
        inputs.run.paths,
        {scorer: store_of(inputs, scorer).locations(known.get(scorer, {})) for scorer in scorers},
    )


def pending_slices(inputs: Inputs, plan: ScorerPlan) -> list[PredictSlice]:
    """What is left to predict: by checkpoint, the earliest first, or by group, where reading its
    features takes longer than reading weights."""
    written = store_of(inputs, plan.scorer).written()
    left = [
        unit
        for group, units in plan.units.items()
        for unit in units
        if unit.unit.fingerprint not in written.get(group.key, set())
    ]
    config = inputs.run.config
    adapt, batch_frames = config.features.adapt, config.predict.batch_frames
    if plan.scorer == CNN and adapt is not None:
        batch_frames = adapt.batch_frames
        parts = list(_by_group(left, CHECKPOINTS_AT_ONCE))
    else:
        num_bytes = weight_bytes(inputs.model_spec(plan.scorer))
        at_once = min(CHECKPOINTS_AT_ONCE, WEIGHTS_AT_ONCE // num_bytes)
        parts = list(_by_group(left, at_once)) if at_once > 1 else _by_checkpoint(left)
    return [
        PredictSlice(scorer=plan.scorer, units=tuple(units), batch_frames=batch_frames)
        for units in parts
    ]


def _by_checkpoint(units: Sequence[PredictUnit]) -> list[list[PredictUnit]]:
    parts: dict[tuple[int, int], list[PredictUnit]] = {}
    for unit in units:
        place = (unit.checkpoint.epoch, unit.checkpoint.fold)
        parts.setdefault(place, []).append(unit)
    return [part for _, part in sorted(parts.items())]


def _by_group(units: Sequence[PredictUnit], at_once: int) -> Iterator[list[PredictUnit]]:
    """Units of one group, as many as their checkpoints may be in memory at once."""
    for _, own in groupby(units, key=lambda unit: unit.group):
        rest = list(own)
        size = -(-len(rest) // -(-len(rest) // at_once))  # parts of like size
        for start in range(0, len(rest), size):
            yield rest[start : start + size]


def drop_stale_rows(inputs: Inputs, plans: Sequence[ScorerPlan]) -> None:
    """Deletes rows of groups that an interrupted run left, and that nobody wants any more."""
    for plan in plans:
        for group in plan.stale:
            store_of(inputs, plan.scorer).drop_rows(group)


def drop_used_weights(inputs: Inputs, plans: Sequence[ScorerPlan]) -> None:
    """Deletes the weights that `checkpoints.keep` does not keep, of plans that are all done."""
    if inputs.run.config.checkpoints.keep == "all":
        return
    for plan in plans:
        epochs = num_epochs(inputs.run.config, plan.scorer)
        if epochs is None:
            continue  # imported: the user's own, who may have no copy
        for fold in inputs.run.dataset.folds:
            store = inputs.checkpoints.store(plan.scorer, fold.index)
            kept = _kept_epochs(inputs, epochs, store.published_epochs())
            used = plan.epochs_of(fold.index)
            store.drop_weights(set(store.loadable_epochs()) & used - kept)


def _kept_epochs(inputs: Inputs, num_epochs: int, published: list[int]) -> set[int]:
    config = inputs.run.config
    kept = set(published[-1:])
    if config.checkpoints.keep == "selected":
        kept |= set(selected_epochs(range(1, num_epochs + 1), config.score.checkpoints))
    return kept
