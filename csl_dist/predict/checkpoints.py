"""Which checkpoints an audit's videos are run through, and which are refused.

A checkpoint that saw a video, or that other settings than the config's have made, would make an
audit of something else than it says.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from csl_dist.config import CNN
from csl_dist.data.dataset import Fold
from csl_dist.errors import CheckpointError, LeakageError, NotReadyError
from csl_dist.strategies import selected_epochs, swept_epochs
from csl_dist.training.checkpoints import CheckpointInfo
from csl_dist.training.inputs import Inputs
from csl_dist.training.scorers import num_epochs, train_config
from csl_dist.training.train import settings_fingerprint


@dataclass(frozen=True, slots=True)
class ChosenCheckpoints:
    """The checkpoints of a fold."""

    infos: Sequence[CheckpointInfo]
    """All that videos may be run through."""
    wanted: set[int]
    """Epochs of those that they are run through now: all, or those of a sweep."""
    num_expected: int
    """Of the latter, how many it will be when training is over."""

    @property
    def wanted_infos(self) -> tuple[CheckpointInfo, ...]:
        return tuple(info for info in self.infos if info.epoch in self.wanted)


def chosen_checkpoints(
    inputs: Inputs, scorer: str, fold: Fold, *, so_far: bool, sweep: int | None
) -> ChosenCheckpoints:
    """The checkpoints to run over a fold's videos."""
    config = inputs.run.config.predict
    store = inputs.checkpoints.store(scorer, fold.index)
    epochs = num_epochs(inputs.run.config, scorer)
    if so_far and epochs is not None:
        selected = selected_epochs(range(1, epochs + 1), config.checkpoints)
        infos = [info for info in store.infos(epochs) if info.epoch in selected]
    else:
        _refuse_other_settings(inputs, scorer, fold.index)
        source = inputs.features.of(scorer, fold.index)
        infos = inputs.checkpoints.infos(scorer, fold.index, source, config.checkpoints)
        selected = [info.epoch for info in infos]
    wanted = set(selected) if sweep is None else swept_epochs(selected, sweep)
    if config.on_bad_checkpoint == "skip":
        bad = store.bad()
        usable = [info for info in infos if info.epoch not in bad]
        if infos and not usable:
            raise CheckpointError(
                f"every checkpoint of scorer {scorer!r}, fold {fold.index}, is bad; the first: "
                f"{bad[infos[0].epoch]}"
            )
        infos = usable
        # A sweep has at least one; once training is over, the last that can be used.
        wanted = wanted - bad.keys() or {info.epoch for info in infos[-1:]}
    for info in infos[:1]:
        refuse_leakage(info, fold.held_out, inputs.run.config.audit.allow_in_sample)
    there = {info.epoch for info in infos}
    return ChosenCheckpoints(infos, wanted & there, num_expected=len(wanted))


def _refuse_other_settings(inputs: Inputs, scorer: str, fold: int) -> None:
    """Refuses checkpoints of another config: an audit would record settings never used."""
    config, record = inputs.run.config, inputs.checkpoints.current(scorer, fold)
    if record is None or not record.settings or num_epochs(config, scorer) is None:
        return  # there are none, or they were imported
    model, classes = inputs.model_spec(scorer), inputs.run.dataset.classes
    if settings_fingerprint(model, train_config(config, scorer), classes) != record.settings:
        raise CheckpointError(
            f"the checkpoints of scorer {scorer!r} were trained with other settings or classes "
            "than the config has now; run `csl train`, or put back what was changed below `train` "
            f"and `scorers.{scorer}`"
        )
    _refuse_part_of_a_training(inputs, scorer, fold)


def _refuse_part_of_a_training(inputs: Inputs, scorer: str, fold: int) -> None:
    """Refuses 3 of 50 epochs: an audit would record more than anything was run through."""
    config = inputs.run.config
    trained_as, store = train_config(config, scorer), inputs.checkpoints.store(scorer, fold)
    published = [epoch for epoch in store.published_epochs() if epoch <= trained_as.epochs]
    if not published or len(published) == trained_as.epochs:
        return  # where there are none, the next step says so
    # Of a falling learning rate, the first epochs are not those of a shorter training.
    is_shorter = trained_as.schedule == "constant" and scorer != CNN
    raise NotReadyError(
        f"scorer {scorer!r}, fold {fold}, has {len(published)} of {trained_as.epochs} epochs; run "
        "`csl train` for the others, or `csl audit --follow` while a training goes on"
        + f", or set train.epochs={published[-1]} to audit with these"
        * is_shorter
    )


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


def loadable_epochs(
    inputs: Inputs, scorer: str, fold: Fold, infos: Sequence[CheckpointInfo]
) -> set[int]:
    """Epochs whose weights are there."""
    if inputs.run.config.checkpoints.keep == "all":
        return {info.epoch for info in infos}
    return set(inputs.checkpoints.store(scorer, fold.index).loadable_epochs())


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
