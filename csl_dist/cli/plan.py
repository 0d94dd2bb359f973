"""The command that looks ahead: `csl plan`."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from csl_dist.cli.app import ConfigPath, Overrides, app, console, load_config, say
from csl_dist.errors import ConfigError, DataError
from csl_dist.storage.output import output_file

if TYPE_CHECKING:
    from csl_dist.config import RunConfig
    from csl_dist.cost.footage import Footage
    from csl_dist.cost.rates import Rates


@app.command(rich_help_panel="Cluster")
def plan(
    config: ConfigPath,
    gpus: Annotated[int, typer.Option(min=1, help="GPUs of the cluster.")] = 1,
    gpu_type: Annotated[str, typer.Option(help="t4, v100, l4, a10g, a100 or h100.")] = "a100",
    utilisation: Annotated[
        float,
        typer.Option(min=0.01, max=1, help="Share of the GPU's peak, where it is not measured."),
    ] = 0.3,
    measure: Annotated[
        Path | None,
        typer.Option(
            help="Measure what this machine's GPU, or a core, reaches; kept in this file."
        ),
    ] = None,
    rates: Annotated[
        Path | None, typer.Option(help="Plan with what --measure wrote, perhaps elsewhere.")
    ] = None,
    cpus_per_gpu: Annotated[int, typer.Option(min=1, help="CPU cores that decode.")] = 8,
    price: Annotated[
        float | None,
        typer.Option(min=0, max=1_000_000, help="Dollars for an hour of one GPU."),
    ] = None,
    videos: Annotated[
        int | None,
        typer.Option(
            min=2, max=10_000_000, help="Suppose so many videos; the dataset is not read."
        ),
    ] = None,
    minutes: Annotated[
        float,
        typer.Option(min=0.01, max=10_000, help="With --videos: length of each."),
    ] = 38.0,
    classes: Annotated[
        int, typer.Option(min=2, max=100_000, help="With --videos: number of classes.")
    ] = 7,
    overrides: Overrides = [],  # noqa: B006
) -> None:
    """Estimate units, arithmetic, storage, hours and cost of a run."""
    from csl_dist.cli.tables.cost import plan_table, rates_table
    from csl_dist.cost.footage import supposed_footage
    from csl_dist.cost.machines import GPUS, Machines
    from csl_dist.cost.plan import dollars_of, plan_run
    from csl_dist.data.layouts import listed_in
    from csl_dist.features.encoders import output_width

    loaded = load_config(config, overrides)
    if gpu_type not in GPUS:
        raise ConfigError(f"--gpu-type is {gpu_type!r}, but must be one of {', '.join(GPUS)}")
    if measure is not None and rates is not None:
        raise ConfigError("--measure and --rates exclude each other: measure anew, or read")
    if measure is not None and measure.absolute().parent.is_dir():
        measure = output_file(measure, [str(config), *listed_in(loaded.dataset)])
    gpu = GPUS[gpu_type]
    if videos is None:
        footage = footage_of(loaded)
    else:
        footage = supposed_footage(
            loaded,
            num_videos=videos,
            minutes=minutes,
            num_classes=classes,
            num_features=output_width(replace(loaded.features, adapt=None)),
        )
    measured = _rates(loaded, footage, measure, rates, has_dataset=videos is None)
    machines = Machines(
        num_gpus=gpus,
        gpu=gpu if price is None else replace(gpu, dollars=price),
        utilisation=utilisation,
        cpus_per_gpu=cpus_per_gpu,
        rates=measured,
    )
    stages = plan_run(loaded, footage, machines)
    console.print(plan_table(stages))
    if measured is None:
        basis = f"{100 * utilisation:g} % of the peak of {gpu_type}"
    else:
        console.print(rates_table(measured))
        basis = f"rates measured on {measured.device}"
    if machines.on_cores and price is None:
        say(
            f"hours: for {machines.named(gpus)} (--gpus counts cores here), by {basis}; with "
            "--price, dollars for an hour of a core, also the cost"
        )
        return
    say(
        f"cost: {dollars_of(stages, machines):,.2f} dollars for {machines.named(gpus)} at "
        f"{machines.gpu.dollars:.2f} an hour, by {basis}"
    )


def _rates(
    config: "RunConfig",
    footage: "Footage",
    measure: Path | None,
    rates: Path | None,
    *,
    has_dataset: bool,
) -> "Rates | None":
    """Rates that are measured now, or read from where they were measured; None for neither."""
    from csl_dist.cost.rates import read_rates, write_rates

    if rates is not None:
        return read_rates(rates)
    if measure is None:
        return None
    if not measure.absolute().parent.is_dir():
        raise ConfigError(f"--measure: there is no folder {measure.absolute().parent} to write to")
    from csl_dist.cost.measure import THOROUGH, measured_rates
    from csl_dist.data.layouts import open_dataset
    from csl_dist.data.media.pixels import pixel_source

    say("plan: measuring, which takes a minute or two")
    use_dataset = has_dataset and footage.has_pixels
    video = pixel_source(open_dataset(config.dataset).videos[0]) if use_dataset else None
    measured = measured_rates(config, footage, video, THOROUGH)
    write_rates(measured, measure)
    return measured


def footage_of(config: "RunConfig") -> "Footage":
    """What the dataset holds."""
    from csl_dist.cluster.progress import progress_bar
    from csl_dist.cost.footage import Footage, copied_ids
    from csl_dist.cost.storage import USUAL_SHARES, tried_shares
    from csl_dist.data.check import look_at_videos
    from csl_dist.data.layouts import open_dataset
    from csl_dist.data.media.pixels import pixel_source
    from csl_dist.features.encoders import output_width
    from csl_dist.features.sample import Sample
    from csl_dist.types import Media, Split

    dataset = open_dataset(config.dataset).remembered()
    lengths: dict[Split, dict[str, int]] = {split: {} for split in Split}
    adapt = config.features.adapt
    sample = Sample.of(adapt, frozenset(dataset.trained_ids())) if adapt is not None else None
    sampled: list[int] = []
    width = output_width(replace(config.features, adapt=None))
    with progress_bar(console, "plan: videos", total=len(dataset.videos)) as bar:
        for facts in look_at_videos(dataset, config.dataset):
            if facts.timeline is None:
                raise DataError(f"{facts.problems[0]}; `csl check` lists every problem")
            lengths[facts.video.split][facts.video.id] = len(facts.timeline.times_T)
            if sample is not None and facts.video.id in sample.videos:
                sampled.append(len(sample.frames(facts.video.id, facts.timeline.times_T)))
            width = facts.file.width if facts.file is not None else width
            bar.advance()
    folds = len(dataset.folds)
    held_out = lengths[Split.AUDIT] | lengths[Split.VAL]
    pixels = [video for video in dataset.videos if video.media is not Media.FEATURES]
    return Footage(
        train=tuple((held_out if folds > 1 else lengths[Split.TRAIN]).values()),
        held_out=tuple(held_out.values()),
        copies=tuple(held_out[video] for video in copied_ids(config, dataset)),
        has_pixels=bool(pixels),
        num_classes=len(dataset.classes),
        num_features=width,
        num_folds=folds,
        sample=tuple(sampled),
        shares=tried_shares(config.features, pixel_source(pixels[0])) if pixels else USUAL_SHARES,
    )
