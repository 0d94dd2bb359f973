"""What an audit has to score: every scorer's units, which of them are done, and which are left."""

from collections.abc import Sequence
from dataclasses import dataclass

from csl_dist.data.layouts import Fold
from csl_dist.errors import CheckpointError
from csl_dist.flag.rehearse import swapped_copies
from csl_dist.predict.forward import ScoreSlice, ScoreUnit, plan_groups, refuse_leakage
from csl_dist.predict.trajectories import Group
from csl_dist.run import CNN, Run, require_features, seen_features
from csl_dist.storage.ledger import Unit
from csl_dist.strategies import selected_epochs
from csl_dist.training.checkpoints import CheckpointInfo
from csl_dist.types import Annotation, Split


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorerPlan:
    """All units of one scorer, over all folds."""

    scorer: str
    units: dict[Group, tuple[ScoreUnit, ...]]
    num_expected: int
    """Units when training is over; as many as there are now where it is."""

    @property
    def num_units(self) -> int:
        return sum(len(units) for units in self.units.values())

    def units_of(self, group: Group) -> dict[int, Unit]:
        """The units of a group by epoch."""
        return {unit.checkpoint.epoch: unit.unit for unit in self.units[group]}

    def epochs_of(self, fold: int) -> set[int]:
        """Epochs of the checkpoints that a fold's videos are scored with."""
        groups = [units for group, units in self.units.items() if group.fold == fold]
        return {unit.checkpoint.epoch for units in groups for unit in units}


def scored_annotations(run: Run) -> list[Annotation]:
    """All that no training sees: videos to audit, those that set the threshold, and copies."""
    held_out = {split: run.split_annotations(split) for split in (Split.AUDIT, Split.VAL)}
    copies = swapped_copies(run, held_out)
    return [*held_out[Split.AUDIT], *held_out[Split.VAL], *(copy.wrong for copy in copies)]


def plan_scorers(
    run: Run, annotations: Sequence[Annotation], *, so_far: bool = False
) -> list[ScorerPlan]:
    """The plan of every scorer; `so_far` while training still adds checkpoints."""
    return [_plan_scorer(run, scorer, annotations, so_far) for scorer in run.config.scorers]


def _plan_scorer(
    run: Run, scorer: str, annotations: Sequence[Annotation], so_far: bool
) -> ScorerPlan:
    config = run.config.score
    units: dict[Group, tuple[ScoreUnit, ...]] = {}
    num_expected = 0
    for fold in run.dataset.folds:
        checkpoints, num_checkpoints = _checkpoints(run, scorer, fold, so_far)
        source = run.features_of(scorer, fold.index)
        require_features(source, fold.scored)
        scored = set(fold.scored)
        held_out = [a for a in annotations if a.footage in scored]
        features = {a.video: seen_features(source, a) for a in held_out}
        # Apart, because a corrected label can move a copy's frames, but never a video's.
        copies = [a for a in held_out if a.copy_of is not None]
        videos = [a for a in held_out if a.copy_of is None]
        groups = [
            group
            for part in (videos, copies)
            for group in plan_groups(
                part, features, fold=fold.index, group_frames=config.group_frames
            )
        ]
        num_expected += len(groups) * num_checkpoints
        for group in groups:
            units[group] = tuple(
                ScoreUnit(checkpoint=checkpoint, group=group, dtype=config.dtype)
                for checkpoint in checkpoints
            )
    return ScorerPlan(scorer=scorer, units=units, num_expected=num_expected)


def _checkpoints(
    run: Run, scorer: str, fold: Fold, so_far: bool
) -> tuple[list[CheckpointInfo], int]:
    """The checkpoints to score a fold with, and how many it will be in the end."""
    config = run.config.score
    store = run.checkpoint_store(scorer, fold.index)
    num_epochs = run.num_epochs(scorer)
    if so_far and num_epochs is not None:
        chosen = selected_epochs(range(1, num_epochs + 1), config.checkpoints)
        infos = [info for info in store.infos(num_epochs) if info.epoch in chosen]
        num_checkpoints = len(chosen)
    else:
        infos = run.checkpoints(scorer, fold.index, config.checkpoints)
        num_checkpoints = len(infos)
    if config.on_bad_checkpoint == "skip":
        bad = store.bad()
        usable = [info for info in infos if info.epoch not in bad]
        if infos and not usable:
            raise CheckpointError(
                f"every checkpoint of scorer {scorer!r}, fold {fold.index}, is bad; the first: "
                f"{bad[infos[0].epoch]}"
            )
        num_checkpoints -= len(infos) - len(usable)
        infos = usable
    for info in infos[:1]:
        refuse_leakage(info, fold.scored, run.config.audit.allow_in_sample)
    return infos, num_checkpoints


def unpublished_groups(run: Run, plan: ScorerPlan) -> list[Group]:
    """Groups that are not published with exactly these units."""
    store = run.trajectories(plan.scorer)
    known = store.published_fingerprints()
    return [g for g in plan.units if not store.is_published(g, plan.units_of(g), known)]


def pending_slices(run: Run, plan: ScorerPlan) -> list[ScoreSlice]:
    """What is left to score, by checkpoint, the earliest first."""
    store = run.trajectories(plan.scorer)
    groups = unpublished_groups(run, plan)
    scored = store.scored(groups, store.published_fingerprints())
    left: dict[tuple[int, int], list[ScoreUnit]] = {}
    for group in groups:
        for unit in plan.units[group]:
            if unit.unit.fingerprint not in scored[group]:
                place = (unit.checkpoint.epoch, unit.checkpoint.fold)
                left.setdefault(place, []).append(unit)
    adapt = run.config.features.adapt
    batch_frames = run.config.score.batch_frames
    if plan.scorer == CNN and adapt is not None:
        batch_frames = adapt.batch_frames
    return [
        ScoreSlice(scorer=plan.scorer, units=tuple(units), batch_frames=batch_frames)
        for _, units in sorted(left.items())
    ]


def skipped_checkpoints(run: Run) -> dict[str, str]:
    """Why checkpoints are not part of the trajectories, by scorer, fold and epoch."""
    if run.config.score.on_bad_checkpoint == "error":
        return {}
    stores = {
        f"{scorer}/fold-{fold.index}": run.checkpoint_store(scorer, fold.index)
        for scorer in run.config.scorers
        for fold in run.dataset.folds
    }
    return {
        f"{place}/epoch-{epoch:04d}": reason
        for place, store in stores.items()
        for epoch, reason in store.bad().items()
    }


def drop_scored_weights(run: Run, plans: Sequence[ScorerPlan]) -> None:
    """Deletes the weights that `checkpoints.keep` does not keep, of plans that are all scored."""
    if run.config.checkpoints.keep == "all":
        return
    for plan in plans:
        if run.num_epochs(plan.scorer) is None:
            continue  # imported: the user's own, who may have no copy
        for fold in run.dataset.folds:
            store = run.checkpoint_store(plan.scorer, fold.index)
            kept = _kept_epochs(run, plan.scorer, store.published_epochs())
            scored = plan.epochs_of(fold.index)
            store.drop_weights(set(store.loadable_epochs()) & scored - kept)


def _kept_epochs(run: Run, scorer: str, published: list[int]) -> set[int]:
    kept = set(published[-1:])
    num_epochs = run.num_epochs(scorer)
    if run.config.checkpoints.keep == "selected" and num_epochs is not None:
        kept |= set(selected_epochs(range(1, num_epochs + 1), run.config.reduce.checkpoints))
    return kept
