"""`csl reproduce`: the paper's protocol and its tables."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from csl_dist.cli.app import ConfigPath, Overrides, Verbose, app, console, load_config, say

if TYPE_CHECKING:
    from csl_dist.config import RunConfig
    from csl_dist.evaluate.paper_tables import SeedResults
    from csl_dist.training.inputs import Inputs


@app.command(rich_help_panel="Results")
def reproduce(
    config: ConfigPath,
    seeds: Annotated[int, typer.Option(min=1, help="Trainings to average over.")] = 3,
    noise: Annotated[
        bool, typer.Option(help="Also train with errors, four times for each seed.")
    ] = True,
    overrides: Overrides = [],  # noqa: B006
    verbose: Verbose = False,
) -> None:
    """Run the paper's protocol and print its tables."""
    from csl_dist.evaluate.paper import published_for
    from csl_dist.evaluate.paper_tables import latex, markdown, paper_tables
    from csl_dist.evaluate.reproduce import with_planted_errors
    from csl_dist.storage.paths import RunPaths
    from csl_dist.storage.url import Storage
    from csl_dist.training.inputs import open_inputs

    base = load_config(config, overrides)
    known = open_inputs(base).labels.has_known_errors()
    base = with_planted_errors(base, has_known_errors=known)
    results = []
    for seed in range(seeds):
        say(f"seed {seed + 1} of {seeds}")
        results.append(_seed_results(base, seed, noise, verbose))
    paths = RunPaths(Storage(base.root))
    for name, table in paper_tables(results, published_for(base.dataset)).items():
        text = markdown(table)
        paths.tables.put(f"{name}.md", text.encode())
        paths.tables.put(f"{name}.csv", table.to_csv(index=False).encode())
        paths.tables.put(f"{name}.tex", latex(table).encode())
        console.print(f"\n{name.replace('_', ' ')}\n\n{text}", markup=False, soft_wrap=True)
    say(f"tables: {paths.tables.url}")


def _seed_results(base: "RunConfig", seed: int, noise: bool, verbose: bool) -> "SeedResults":
    from csl_dist.evaluate.paper_tables import SeedResults
    from csl_dist.evaluate.reproduce import (
        NOISE_KINDS,
        NOISE_PERCENTS,
        frozen_variant,
        main_variant,
        noise_variant,
        sampling_aucs,
    )
    from csl_dist.training.scorers import temporal_scorer

    main = main_variant(base, seed)
    inputs, metrics = _measured(main.config, verbose)
    temporal = temporal_scorer(main.config)
    noisy = {}
    for kind in NOISE_KINDS if noise else ():
        for percent in NOISE_PERCENTS:
            variant = noise_variant(main, kind, percent, temporal)
            say(f"training noise: {variant.name} %")
            _, noisy[kind, percent] = _measured(variant.config, verbose)
    frozen = None
    if base.features.adapt is not None:
        say("frozen encoder")
        _, frozen = _measured(frozen_variant(main, temporal).config, verbose)
    return SeedResults(
        main=metrics, sampling=sampling_aucs(inputs, temporal), noise=noisy, frozen=frozen
    )


def _measured(config: "RunConfig", verbose: bool) -> tuple["Inputs", dict[str, Any]]:
    """Does all stages of a run, each from where it stopped; its inputs and metrics."""
    from csl_dist import pipeline

    with pipeline.open_stage(config, "csl reproduce", console=console, verbose=verbose) as stage:
        metrics = pipeline.run(stage)
    assert metrics is not None, "errors are planted where none are known"
    return stage.inputs, metrics
