"""The order of stages, once: the command line, jobs, the service and `reproduce` call this.

Every function goes on from where it stopped; what is done is not done again.
"""

import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console

from csl_dist.audit.damage import Damage, Kind, forget, settle
from csl_dist.audit.reader import open_audit
from csl_dist.audit.revision import AuditStore
from csl_dist.audit.verify import forget_damage
from csl_dist.cluster.stage import Stage
from csl_dist.config import RunConfig
from csl_dist.errors import (
    CheckpointError,
    ConfigError,
    CslError,
    DamagedError,
    DataError,
    JobError,
    LeakageError,
    NotReadyError,
    StorageError,
)
from csl_dist.evaluate.brought import read_scores
from csl_dist.evaluate.stage import brought_metrics
from csl_dist.evaluate.stage import evaluate as evaluate_stage
from csl_dist.features.adapt import adapt
from csl_dist.features.stage import extract as extract_stage
from csl_dist.flag.stage import audit_fingerprint, flag, sweep_of
from csl_dist.predict.follow import follow_training, train_and_follow
from csl_dist.predict.plan import checkpoints_done, first_sweep
from csl_dist.predict.stage import forget_nodes, predict
from csl_dist.report import current_report
from csl_dist.score.stage import score, score_versions
from csl_dist.storage.lock import RootLock
from csl_dist.storage.paths import RunPaths
from csl_dist.storage.run_file import RunFile, put_run_file, read_run_config, read_run_file
from csl_dist.storage.url import Storage
from csl_dist.strategies import SWEEPS
from csl_dist.training.inputs import Inputs, open_inputs
from csl_dist.training.stage import train as train_stage
from csl_dist.types import Split

REFUSALS = (ConfigError, DataError, CheckpointError, LeakageError, NotReadyError, JobError)
"""What a user can mend before a command goes on; JobError where Ray can't be reached."""
PACKAGES = ("csl_dist", "numpy", "ray", "torch", "torchvision", "zarr")
"""Whose versions a run notes."""


@contextmanager
def open_stage(
    config: RunConfig,
    command: str,
    *,
    inputs: Inputs | None = None,
    console: Console | None = None,
    verbose: bool = False,
) -> Iterator[Stage]:
    """Opens what a config names; holds the lock of its root, where `command` says who writes.

    What is wrong with config or dataset is told before anything is written. `inputs` are those of
    the config, where they are open already.
    """
    with damage_forgotten(config, command):
        inputs = inputs or open_inputs(config)
        with RootLock(inputs.run.paths, command), _put_unless_refused(inputs):
            yield Stage(inputs=inputs, console=console or Console(), verbose=verbose)


@contextmanager
def _put_unless_refused(inputs: Inputs) -> Iterator[None]:
    """Writes down what a run is going to do; a command that is refused leaves what was there.

    Otherwise `csl status` and `csl verify --repair` would go by a config that never ran.
    """
    root = inputs.run.paths.root
    try:
        read_run_file(root.url)
        keys = (RunPaths.RUN, RunPaths.VIDEO_LIST)
        before = {key: root.read(key) for key in keys if root.exists(key)}
    except CslError:  # none yet, or damaged: it is written anew
        before = {}
    put_run(inputs)
    try:
        yield
    except REFUSALS as error:
        if not isinstance(error, DamagedError):
            for key, data in before.items():
                root.put_if_changed(key, data)
        raise


@contextmanager
def damage_forgotten(config: RunConfig, command: str) -> Iterator[None]:
    """What is found to be damaged in the block is taken away, so that the next run makes it again.

    Otherwise every run would stop at the same place.
    """
    try:
        yield
    except DamagedError as error:
        with RootLock(RunPaths(Storage(config.root)), command):
            forgotten = forget_damage(config.root, error.place)
        if not forgotten:
            raise
        raise DamagedError(
            f"{'; '.join(damage.what for damage in forgotten)}; it was removed: run again, and it "
            "is made again",
            error.place,
        ) from error


def repair(
    root: str, found: Sequence[Damage], *, console: Console | None = None, verbose: bool = False
) -> None:
    """Makes again what is damaged in a run root, by the config of its last command.

    What the config or the dataset refuse is told before anything is taken away.
    """
    kinds = {damage.kind for damage in found if damage.forget is not None}
    if kinds:
        try:
            config = read_run_config(root)
        except DamagedError as error:
            raise StorageError(
                f"{root} can't be repaired by itself, as its config is damaged ({error.place}); "
                "run any command on the config file, which writes it again, then repair"
            ) from error
        with suppress(DamagedError):  # that is what is going to be taken away
            open_inputs(config)
    with RootLock(RunPaths(Storage(root)), "csl verify"):
        forget(root, found)
    if kinds:
        with open_stage(config, "csl verify", console=console, verbose=verbose) as stage:
            if Kind.FEATURES in kinds:
                extract(stage)
            if Kind.CHECKPOINTS in kinds:
                train(stage)
            if kinds & {Kind.CHECKPOINTS, Kind.TRAJECTORIES, Kind.SCORES, Kind.AUDITS}:
                number = audit(stage)
                if stage.inputs.labels.has_known_errors():
                    evaluate_stage(stage, number)
            settle(stage.run.paths.root, kinds)


def extract(stage: Stage) -> None:
    """Features of all videos; adapts the encoder where the config asks for it."""
    extract_stage(stage)
    adapt(stage)
    settle(stage.run.paths.root, {Kind.FEATURES})


def train(stage: Stage) -> None:
    """A checkpoint of every epoch of every scorer."""
    train_stage(stage)
    settle(stage.run.paths.root, {Kind.CHECKPOINTS})


def audit(stage: Stage, *, follow: bool = False) -> int:
    """Predict, score and flag; `follow` waits for the checkpoints of a training elsewhere.

    Returns the number of the audit: a new one, or the newest if nothing has changed since.
    """
    if follow:
        follow_training(stage)
    number = _find(stage)
    settle(stage.run.paths.root, {Kind.TRAJECTORIES, Kind.SCORES, Kind.AUDITS})
    return number


def _find(stage: Stage) -> int:
    """Predict, score and flag with all checkpoints; in sweeps, where the config says so.

    After each sweep there is an audit, and a report of it; a sweep that is done is not done again.
    """
    inputs, config = stage.inputs, stage.run.config.predict
    if not config.in_sweeps:
        predict(stage)
        return flag(stage, score(stage))
    number, has_predicted = 0, False
    for sweep in range(first_sweep(inputs), len(SWEEPS)):
        has_predicted |= predict(stage, sweep=sweep)
        versions = score(stage)
        asked = score_versions(inputs, unpredicted=True)
        part = sweep_of(inputs, asked, checkpoints_done(inputs))
        number = flag(stage, versions, sweep=part)
        found = AuditStore(stage.run.paths).record(number).sweep
        if found is None:
            break  # all of few checkpoints
        stage.say(f"audit {number} {found.sentence()}; report: {report(stage)}")
        if found.settled and config.stop == "settled":
            break
    if has_predicted:
        forget_nodes(stage)
    return number


def evaluate(stage: Stage, brought: Mapping[str, Path] | None = None) -> dict[str, Any]:
    """Metrics of the newest audit beside known errors; `brought` are folders of others' scores,
    whose metrics are those of `brought_metrics`, kept nowhere."""
    if not stage.inputs.labels.has_known_errors():
        raise DataError(
            f"the config of {stage.run.config.root} names no known errors; set dataset.truth to a "
            "CSV of them, plant some with `corrupt`, or read the flags with `csl report`"
        )
    number, record = AuditStore(stage.run.paths).newest_of_dataset()
    if record is None:
        raise NotReadyError(f"{stage.run.config.root} has no flags yet; run `csl audit`")
    now = audit_fingerprint(stage.inputs, score_versions(stage.inputs))
    if record.made_from != now:
        raise NotReadyError(
            f"audit {number} of {stage.run.config.root} is of other labels or settings than the "
            "config has now, or by another csl_dist; run `csl audit`"
        )
    metrics = evaluate_stage(stage, number)
    if not brought:
        return metrics
    scores = read_scores(brought, stage.inputs.labels.in_split(Split.AUDIT))
    return metrics | {"brought": brought_metrics(stage.inputs, record, scores)}


def run(stage: Stage) -> dict[str, Any] | None:
    """All stages, prediction beside training; the metrics where errors are known."""
    extract(stage)
    train_and_follow(stage)
    settle(stage.run.paths.root, {Kind.CHECKPOINTS})
    number = audit(stage)
    return evaluate_stage(stage, number) if stage.inputs.labels.has_known_errors() else None


def report(stage: Stage) -> str:
    """Writes the report of what was found unless it is there, and returns its URL."""
    return current_report(open_audit(stage.run.config.root))


def put_run(inputs: Inputs) -> None:
    """Writes down in the run root what a run is going to do."""
    run, features = inputs.run, inputs.features
    content = RunFile(
        config=run.config,
        classes=run.dataset.classes,
        num_held_out=sum(len(fold.held_out) for fold in run.dataset.folds),
        folds=tuple(fold.index for fold in run.dataset.folds),
        num_to_extract=len(features.to_extract),
        encoder=features.base.encoder,
        has_known_errors=inputs.labels.has_known_errors(),
        versions={"python": platform.python_version()} | {p: version(p) for p in PACKAGES},
    )
    put_run_file(run.paths, content, run.dataset.videos)
    inputs.contents.put(run.paths)
