"""What an audit has to predict: every scorer's units, and which of them are left."""

from collections.abc import Sequence
from dataclasses import dataclass

from csl_dist.config import CNN
from csl_dist.data.dataset import Fold
from csl_dist.errors import CheckpointError, LeakageError
from csl_dist.features.source import require_features
from csl_dist.predict.trajectories import Group, TrajectoryStore
from csl_dist.predict.units import PredictSlice, PredictUnit, plan_groups
from csl_dist.storage.ledger import Unit
from csl_dist.strategies import selected_epochs
from csl_dist.training.checkpoints import CheckpointInfo
from csl_dist.training.inputs import Inputs
from csl_dist.training.scorers import num_epochs
from csl_dist.types import Annotation, Split


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorerPlan:
    """All units of one scorer, over all folds."""

    scorer: str
    units: dict[Group, tuple[PredictUnit, ...]]
    num_expected: int
    """Units when training is over; as many as there are now where it is."""

    @property
    def num_units(self) -> int:
        return sum(len(units) for units in self.units.values())

    def units_of(self, group: Group) -> dict[int, Unit]:
        """The units of a group by epoch."""
        return {unit.checkpoint.epoch: unit.unit for unit in self.units[group]}

    def epochs_of(self, fold: int) -> set[int]:
        """Epochs of the checkpoints that a fold's videos are run through."""
        groups = [units for group, units in self.units.items() if group.fold == fold]
        return {unit.checkpoint.epoch for units in groups for unit in units}


def plan_scorers(inputs: Inputs, *, so_far: bool = False) -> list[ScorerPlan]:
    """The plan of every scorer; `so_far` while training still adds checkpoints."""
    annotations = inputs.labels.held_out()
    return [_plan_scorer(inputs, name, annotations, so_far) for name in inputs.run.config.scorers]


def _plan_scorer(
    inputs: Inputs, scorer: str, annotations: Sequence[Annotation], so_far: bool
) -> ScorerPlan:
    config = inputs.run.config.predict
    units: dict[Group, tuple[PredictUnit, ...]] = {}
    num_expected = 0
    for fold in inputs.run.dataset.folds:
        checkpoints, num_checkpoints = _checkpoints(inputs, scorer, fold, so_far)
        source = inputs.seen_features(scorer, fold.index, Split.AUDIT)
        require_features(source, fold.held_out)
        wanted = set(fold.held_out)
        own = [a for a in annotations if a.original in wanted]
        features = {a.video: source.fingerprint(a.video) for a in own}
        # Apart, because a corrected label can move a copy's frames, but never a video's.
        videos = [a for a in own if a.original == a.video]
        copies = [a for a in own if a.original != a.video]
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
                PredictUnit(checkpoint=checkpoint, group=group, dtype=config.dtype)
                for checkpoint in checkpoints
            )
    return ScorerPlan(scorer=scorer, units=units, num_expected=num_expected)


def _checkpoints(
    inputs: Inputs, scorer: str, fold: Fold, so_far: bool
) -> tuple[list[CheckpointInfo], int]:
    """The checkpoints to run over a fold's videos, and how many it will be in the end."""
    config = inputs.run.config.predict
    store = inputs.checkpoints.store(scorer, fold.index)
    epochs = num_epochs(inputs.run.config, scorer)
    if so_far and epochs is not None:
        chosen = selected_epochs(range(1, epochs + 1), config.checkpoints)
        infos = [info for info in store.infos(epochs) if info.epoch in chosen]
        num_checkpoints = len(chosen)
    else:
        source = inputs.features.of(scorer, fold.index)
        infos = inputs.checkpoints.infos(scorer, fold.index, source, config.checkpoints)
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
        refuse_leakage(info, fold.held_out, inputs.run.config.audit.allow_in_sample)
    return infos, num_checkpoints


def refuse_leakage(
    checkpoint: CheckpointInfo, videos: Sequence[str], allowed: Sequence[str]
) -> None:
    """Stops an audit of videos that the checkpoint was trained on."""
    leaked = sorted(set(videos) & set(checkpoint.train_ids) - set(allowed))
    if leaked:
        names = ", ".join(leaked[:10]) + (f" and {len(leaked) - 10} more" if leaked[10:] else "")
        raise LeakageError(
            f"{len(leaked)} of the videos to audit were used to train scorer "
            f"{checkpoint.scorer!r}: {names}; move them out of the audit, or name them in "
            "audit.allow_in_sample"
        )


def store_of(inputs: Inputs, scorer: str) -> TrajectoryStore:
    """The trajectories of one of a run's scorers."""
    return TrajectoryStore(inputs.run.paths.scorer(scorer))


def unpublished_groups(inputs: Inputs, plan: ScorerPlan) -> list[Group]:
    """Groups that are not published with exactly these units."""
    store = store_of(inputs, plan.scorer)
    known = store.published_fingerprints()
    return [g for g in plan.units if not store.is_published(g, plan.units_of(g), known)]


def pending_slices(inputs: Inputs, plan: ScorerPlan) -> list[PredictSlice]:
    """What is left to predict, by checkpoint, the earliest first."""
    store = store_of(inputs, plan.scorer)
    groups = unpublished_groups(inputs, plan)
    written = store.written(groups, store.published_fingerprints())
    left: dict[tuple[int, int], list[PredictUnit]] = {}
    for group in groups:
        for unit in plan.units[group]:
            if unit.unit.fingerprint not in written[group]:
                place = (unit.checkpoint.epoch, unit.checkpoint.fold)
                left.setdefault(place, []).append(unit)
    config = inputs.run.config
    adapt, batch_frames = config.features.adapt, config.predict.batch_frames
    if plan.scorer == CNN and adapt is not None:
        batch_frames = adapt.batch_frames
    return [
        PredictSlice(scorer=plan.scorer, units=tuple(units), batch_frames=batch_frames)
        for _, units in sorted(left.items())
    ]


def skipped_checkpoints(inputs: Inputs) -> dict[str, str]:
    """Why checkpoints are not part of the trajectories, by scorer, fold and epoch."""
    if inputs.run.config.predict.on_bad_checkpoint == "error":
        return {}
    stores = {
        f"{scorer}/fold-{fold.index}": inputs.checkpoints.store(scorer, fold.index)
        for scorer in inputs.run.config.scorers
        for fold in inputs.run.dataset.folds
    }
    return {
        f"{place}/epoch-{epoch:04d}": reason
        for place, store in stores.items()
        for epoch, reason in store.bad().items()
    }


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
