"""Forecast: what a run has still to do on this machine, how long that takes and how much it writes.

Times come from a measurement of some seconds on this machine's own cores or GPU; starting Ray and
its workers, and writing checkpoints, have times of their own.
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from csl_dist.config import CNN, RunConfig
from csl_dist.cost.footage import Footage, labelled_footage, unique_videos
from csl_dist.cost.machines import DECODED_PER_CPU, GPUS, Machines
from csl_dist.cost.measure import BRIEF, measured_rates
from csl_dist.cost.plan import StagePlan, plan_run
from csl_dist.cost.rates import Rates, StageRate
from csl_dist.cost.recipes import Machine
from csl_dist.cost.words import size_words
from csl_dist.data.dataset import Dataset
from csl_dist.data.facts import DatasetFacts, dataset_facts
from csl_dist.data.media.pixels import PixelSource, pixel_source
from csl_dist.errors import StorageError
from csl_dist.predict.trajectories import TrajectoryStore
from csl_dist.storage.url import Storage, key_part
from csl_dist.training.inputs import Inputs
from csl_dist.training.scorers import train_config
from csl_dist.training.train import settings_fingerprint
from csl_dist.types import Media, Split

START_SECONDS = {"sample": 12.0, "adapt": 20.0, "extract": 12.0, "train": 20.0, "audit": 5.0}
"""Of Ray and of the workers of a stage."""
EPOCH_SECONDS = 0.4
"""To write a checkpoint and hand it on."""
END_SECONDS = 15.0
"""Scores, flags and the report, at the least."""
END_SHARE = 0.05
"""The same as a share of all that comes before."""
LONG_SECONDS = 3600.0
SLOW_FLOPS = 5e9
UNMEASURED_SECONDS = 30.0
"""A run that takes no longer by slow rates is not worth a measurement of some seconds."""
SPARE_BYTES = 1e9
"""Room on the disk that a run leaves to others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageForecast:
    """What is left of one stage."""

    stage: str
    work: str
    seconds: float
    num_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What is left of a run."""

    stages: tuple[StageForecast, ...]
    machine: Machine
    free_bytes: float | None
    """Room where the run writes; None where that is a bucket."""

    @property
    def seconds(self) -> float:
        return sum(stage.seconds for stage in self.stages)

    @property
    def num_bytes(self) -> float:
        return sum(stage.num_bytes for stage in self.stages)

    def refusal(self, root: str) -> str | None:
        """Why the run can't be done here: the disk is too small."""
        if self.free_bytes is None or self.num_bytes + SPARE_BYTES < self.free_bytes:
            return None
        largest = max(self.stages, key=lambda stage: stage.num_bytes)
        remedy = (
            "set checkpoints.keep: last, fewer train.epochs or a smaller preset"
            if largest.stage.startswith("train")
            else "set a lower dataset.fps"
        )
        return (
            f"the run will write about {size_words(self.num_bytes)}, most of it in "
            f"`{largest.stage}`, but {root} has {size_words(self.free_bytes)} free; {remedy}, or "
            "another root"
        )

    def advice(self) -> str | None:
        """What would be faster, where the run takes more than an hour."""
        if self.seconds < LONG_SECONDS:
            return None
        slowest = max(self.stages, key=lambda stage: stage.seconds)
        if slowest.stage == "extract":
            way = "a lower dataset.fps, a smaller features.size"
        else:
            way = "fewer train.epochs, a smaller preset, fewer scorers"
        gpu = "" if self.machine.gpus else ", a GPU, a cluster (csl submit)"
        return f"faster: {way}{gpu}, or what `csl init --recipe quick` writes"


def forecast(
    config: RunConfig,
    dataset: Dataset,
    machine: Machine,
    *,
    facts: DatasetFacts | None = None,
    left: Mapping[str, float] | None = None,
) -> Forecast:
    """What a config means on this machine; `left` is the share of each stage that is not done."""
    footage = labelled_footage(config, dataset, facts or dataset_facts(dataset))
    share = left or {}

    def plans(rates: Rates) -> list[tuple[StagePlan, float]]:
        machines = Machines(
            num_gpus=machine.gpus or machine.cores,
            gpu=GPUS["a100"],
            utilisation=1.0,
            cpus_per_gpu=max(1, machine.cores // max(1, machine.gpus)),
            rates=rates,
        )
        every = [(plan, share.get(plan.stage, 1.0)) for plan in plan_run(config, footage, machines)]
        return [(plan, remaining) for plan, remaining in every if remaining > 0]

    made = plans(slow_rates(config, footage))
    if sum(plan.hours * remaining for plan, remaining in made) * 3600 > UNMEASURED_SECONDS:
        made = plans(measured_rates(config, footage, _first_pixels(dataset), BRIEF))
    stages = _with_starts(made, config, footage, machine)
    before = sum(stage.seconds for stage in stages)
    end = StageForecast(
        stage="score, flag, report",
        work=f"{len(footage.held_out):,} videos",
        seconds=max(END_SECONDS, END_SHARE * before),
        num_bytes=0.0,
    )
    return Forecast(stages=(*stages, end), machine=machine, free_bytes=free_bytes(config.root))


def _with_starts(
    plans: Sequence[tuple[StagePlan, float]], config: RunConfig, footage: Footage, machine: Machine
) -> list[StageForecast]:
    """Plans and what is left of each, as stages that also take time to start."""
    side_by_side = min(machine.gpus or machine.cores, footage.num_folds * config.train.workers)
    stages, started = [], set()
    for plan, remaining in plans:
        kind = plan.stage.split()[0]
        seconds = plan.hours * 3600 * remaining
        if kind not in started:
            seconds += START_SECONDS[kind]
        if kind == "train":
            seconds += EPOCH_SECONDS * plan.num_units * remaining / side_by_side
        started.add(kind)
        stages.append(
            StageForecast(
                stage=plan.stage,
                work=work_words(plan, config, footage, remaining),
                seconds=seconds,
                num_bytes=plan.num_bytes * remaining,
            )
        )
    return stages


def slow_rates(config: RunConfig, footage: Footage) -> Rates:
    """Rates that a core reaches at the least: what is short by these needs no measurement."""
    stages = ["extract", *(f"{do} {name}" for do in ("train", "audit") for name in config.scorers)]
    return Rates(
        device="a slow core",
        on_gpu=False,
        stages={stage: StageRate(flops_per_second=SLOW_FLOPS, num_frames=0) for stage in stages},
        decoded_per_cpu=DECODED_PER_CPU if footage.has_pixels else None,
    )


def _first_pixels(dataset: Dataset) -> PixelSource | None:
    """A video to time the decoding of; None where none is here."""
    pixels = (
        v for v in dataset.videos if v.media is not Media.FEATURES and Path(v.source).exists()
    )
    first = next(pixels, None)
    return None if first is None else pixel_source(first)


def shares_left(inputs: Inputs) -> dict[str, float]:
    """The share of each stage that is not done yet, by the names that a plan has for them."""
    run, base = inputs.run, inputs.features.base
    shares = {}
    if inputs.features.to_extract:
        missing = len(base.missing()) / len(inputs.features.to_extract)
        if run.config.features.adapt is None:
            shares["extract"] = missing
        else:
            shares["sample"] = missing
            shares["adapt"] = _epochs_left(inputs, CNN)
            shares["extract"] = 1.0 if shares["adapt"] else _encoding_left(inputs)
    held_out = {key_part(video.id) for video in run.dataset.in_split(Split.AUDIT, Split.VAL)}
    for scorer, own in run.config.scorers.items():
        training = "adapt" if scorer == CNN else f"train {scorer}"
        if own.train and scorer != CNN:
            shares[training] = _epochs_left(inputs, scorer)
        published = TrajectoryStore(run.paths.scorer(scorer)).published_fingerprints()
        unpredicted = 1 - len(held_out & published.keys()) / max(1, len(held_out))
        shares[f"audit {scorer}"] = max(unpredicted, shares.get(training, 0.0))
    return shares


def _encoding_left(inputs: Inputs) -> float:
    """The share of videos that adapted encoders have not encoded, over all folds."""
    adapted, folds = inputs.features.adapted, inputs.run.dataset.folds
    assert adapted is not None
    missing = sum(len(adapted(fold.index).missing()) for fold in folds)
    return missing / (len(inputs.features.to_extract) * len(folds))


def _epochs_left(inputs: Inputs, scorer: str) -> float:
    """The share of epochs that trainings of the present settings have not published."""
    run, config = inputs.run, train_config(inputs.run.config, scorer)
    settings = settings_fingerprint(inputs.model_spec(scorer), config, run.dataset.classes)
    done = 0
    for fold in run.dataset.folds:
        record = inputs.checkpoints.current(scorer, fold.index)
        if record is not None and record.settings == settings:
            done += inputs.checkpoints.store(scorer, fold.index).resume_point(config.epochs)
    return 1 - done / (config.epochs * len(run.dataset.folds))


def work_words(plan: StagePlan, config: RunConfig, footage: Footage, left: float) -> str:
    """How much a stage has to do."""
    part = "" if left > 0.999 else f", {left:.0%} of it left"
    if plan.stage == "extract":
        return f"{sum(unique_videos(footage)):,} frames{part}"
    if plan.stage == "sample":
        return f"{sum(footage.sample):,} frames{part}"
    folds = f" x {footage.num_folds} folds" if footage.num_folds > 1 else ""
    adapt, of_cnn = config.features.adapt, plan.stage in ("adapt", f"audit {CNN}")
    epochs = adapt.epochs if of_cnn and adapt is not None else config.train.epochs
    if plan.stage.startswith("audit"):
        return f"{len(footage.held_out):,} videos x {epochs} checkpoints{part}"
    return f"{epochs} epochs{folds}{part}"


def free_bytes(root: str) -> float | None:
    """Room on the disk of a root that may not exist yet; None for a bucket."""
    storage = Storage(root)
    if not storage.is_local:
        return None
    place = Path(storage.url)
    while not place.exists():
        place = place.parent
    try:
        return float(shutil.disk_usage(place).free)
    except OSError as error:
        raise StorageError(f"can't tell the free space of {place}: {error.strerror}") from error
