"""Commands that look at a dataset before any work: `csl init`, `csl check`."""

import os
from pathlib import Path
from typing import Annotated

import typer
import yaml

from csl_dist.cli.app import ConfigPath, Overrides, app, complain, console, say
from csl_dist.config import DatasetConfig, load_config, parse_config
from csl_dist.errors import ConfigError, DataError
from csl_dist.types import Split


@app.command(rich_help_panel="Dataset")
def init(
    layout: Annotated[str, typer.Argument(help="Its layout, or `auto`.", metavar="LAYOUT")],
    path: Annotated[Path, typer.Argument(help="Folder of the dataset.", metavar="PATH")],
    out: Annotated[Path, typer.Option(help="Config file to write.")] = Path("csl.yaml"),
) -> None:
    """Look at a dataset on disk and write a config for it."""
    from csl_dist.data.init import config_text, draft_config, with_even_folds
    from csl_dist.data.layouts import read_dataset

    if os.path.lexists(out):
        raise ConfigError(f"{out} exists already; remove it, or give another --out")
    path = path.absolute()
    draft = draft_config(layout, path, out.absolute())
    name = path.stem or "mine"
    dataset = read_dataset(_parsed(config_text(draft, name), out))
    if "folds" in draft.dataset:
        draft = with_even_folds(draft, dataset)
    text = config_text(draft, name)
    try:
        out.write_text(text)
    except OSError as error:
        raise ConfigError(f"can't write {out}: {error.strerror}") from error
    for problem in dataset.problems:
        complain("problem", problem)
    say(
        f"{out}: {draft.layout} layout, {len(dataset.videos)} videos, "
        f"{len(dataset.classes)} classes; next: csl check {out}"
    )


def _parsed(text: str, out: Path) -> DatasetConfig:
    return parse_config(yaml.safe_load(text), where=str(out)).dataset


@app.command(rich_help_panel="Dataset")
def check(config: ConfigPath, overrides: Overrides = []) -> None:  # noqa: B006
    """Read every label, probe every video, and print what is there and what is wrong."""
    from csl_dist.cli import tables
    from csl_dist.cluster.progress import progress_bar
    from csl_dist.data.check import all_problems, look_at_videos, orientation, summaries
    from csl_dist.data.layouts import read_dataset

    loaded = load_config(config, overrides)
    dataset = read_dataset(loaded.dataset)
    facts = []
    with progress_bar(console, "check: videos", total=len(dataset.videos)) as bar:
        for found in look_at_videos(dataset, loaded.dataset):
            facts.append(found)
            bar.advance()
    lines = summaries(dataset, facts)
    console.print(tables.dataset_table(lines), tables.class_table(dataset.classes, lines))
    turned = orientation(facts)
    if turned is not None:
        say(turned)
    if not dataset.in_split(Split.VAL) and loaded.flag.rule == "validation":
        say(
            "threshold: there are no validation videos to set it, so the worst "
            f"{loaded.flag.percent:g} % of the audited frames will be flagged"
        )
    problems = all_problems(dataset, facts, loaded)
    for problem in problems:
        complain("problem", problem)
    if problems:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        raise DataError(f"{config}: {count} found; fix what is wrong, then check again")
    console.print("no problems found")
