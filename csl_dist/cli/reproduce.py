"""`csl reproduce`: the paper's protocol and its tables."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from csl_dist.cli.app import (
    ConfigPath,
    OtherScores,
    Overrides,
    Verbose,
    app,
    console,
    load_writable,
    say,
)

if TYPE_CHECKING:
    from csl_dist.config import RunConfig
    from csl_dist.evaluate.paper_tables import SeedResults
    from csl_dist.training.inputs import Inputs


@app.command(rich_help_panel="Results")
def reproduce(
    config: ConfigPath,
    seeds: Annotated[int, typer.Option(min=1, help="Trainings to average over.")] = 3,
    noise: Annotated[
        bool, typer.Option(help="Also train with errors: each kind at each --noise-percent.")
    ] = True,
    noise_percent: Annotated[
        list[int],
        typer.Option(min=1, max=99, help="Training videos with errors; may be given again."),
    ] = [10, 20],  # noqa: B006
    encoders: Annotated[
        bool, typer.Option(help="Also run with the encoder frozen, or adapted where it is not.")
    ] = True,
    scores: OtherScores = [],  # noqa: B006
    overrides: Overrides = [],  # noqa: B006
    verbose: Verbose = False,
) -> None:
    """Run the paper's protocol and print its tables."""
    base = load_writable(config, overrides)
    from csl_dist.cli.tables.paper import paper_table
    from csl_dist.evaluate.brought import named_folders
    from csl_dist.evaluate.paper import published_for
    from csl_dist.evaluate.paper_tables import TITLES, latex, markdown, paper_tables
    from csl_dist.evaluate.reproduce import with_planted_errors
    from csl_dist.storage.paths import RunPaths
    from csl_dist.storage.url import Storage
    from csl_dist.training.inputs import open_inputs

    folders = named_folders(scores)
    opened = open_inputs(base)
    base = with_planted_errors(base, has_known_errors=opened.labels.has_known_errors())
    runs = _Runs(
        noise_percents=tuple(noise_percent) if noise else (),
        # Without pixels there is nothing to adapt an encoder to.
        encoders=encoders and bool(opened.features.to_extract),
        scores=folders,
        verbose=verbose,
    )
    results = []
    for seed in range(seeds):
        say(f"seed {seed + 1} of {seeds}")
        results.append(_seed_results(base, seed, runs))
    paths = RunPaths(Storage(base.root))
    for name, table in paper_tables(results, published_for(base.dataset)).items():
        paths.tables.put(f"{name}.md", markdown(table).encode())
        paths.tables.put(f"{name}.csv", table.to_csv(index=False).encode())
        paths.tables.put(f"{name}.tex", latex(table).encode())
        console.print(paper_table(TITLES[name], table, width=console.width))
    say(f"tables: {paths.tables.url}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Runs:
    """Which runs of the protocol are wanted beside the main one."""

    noise_percents: tuple[int, ...]
    encoders: bool
    scores: dict[str, Path]
    verbose: bool


def _seed_results(base: "RunConfig", seed: int, runs: _Runs) -> "SeedResults":
    from csl_dist.evaluate.paper_tables import SeedResults
    from csl_dist.evaluate.reproduce import (
        ADAPTED,
        FROZEN,
        NOISE_KINDS,
        dataset_statistics,
        main_variant,
        noise_variant,
        other_encoder,
        other_noise,
        sampling_aucs,
    )
    from csl_dist.training.scorers import temporal_scorer

    main = main_variant(base, seed)
    inputs, metrics = _measured(main.config, runs.verbose, runs.scores)
    temporal = temporal_scorer(main.config)
    noisy = {}
    # Noise of a kind that no audited video has could not be looked for.
    for kind in [kind for kind in NOISE_KINDS if kind in metrics["scorers"][temporal]]:
        for percent in runs.noise_percents:
            variant = noise_variant(main, kind, percent, temporal)
            say(f"training noise: {variant.name} %")
            _, noisy[kind, percent] = _measured(variant.config, runs.verbose)
    both = {}
    if runs.encoders:
        variant = other_encoder(main, temporal)
        say(f"{variant.name} encoder")
        _, other = _measured(variant.config, runs.verbose)
        own = FROZEN if variant.name == ADAPTED else ADAPTED
        both = {own: metrics, variant.name: other}
    return SeedResults(
        dataset=dataset_statistics(inputs),
        main=metrics,
        sampling=sampling_aucs(inputs, temporal),
        other_noise=other_noise(inputs, temporal),
        noise=noisy,
        encoders=both,
    )


def _measured(
    config: "RunConfig", verbose: bool, scores: dict[str, Path] | None = None
) -> tuple["Inputs", dict[str, Any]]:
    """Does all stages of a run, each from where it stopped; its inputs and metrics."""
    from csl_dist import pipeline

    with pipeline.open_stage(config, "csl reproduce", console=console, verbose=verbose) as stage:
        metrics = pipeline.run(stage)
        if scores:
            metrics = pipeline.evaluate(stage, scores)
    assert metrics is not None, "errors are planted where none are known"
    return stage.inputs, metrics
