"""Commands that look at a dataset before any work: `csl init`, `csl check`."""

import importlib.util
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer

from csl_dist.cli.app import (
    ConfigPath,
    Overrides,
    app,
    busy,
    complain,
    console,
    load_config,
    say,
    say_run,
    shown_path,
)
from csl_dist.errors import ConfigError, DataError
from csl_dist.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from csl_dist.config import RunConfig
    from csl_dist.cost.recipes import Machine
    from csl_dist.data.check import VideoFacts
    from csl_dist.data.dataset import Dataset
    from csl_dist.data.facts import DatasetFacts
    from csl_dist.data.layouts.layout import Draft

PROBLEMS_SHOWN = 3
"""Of `csl init`; `csl check` lists all."""


@app.command(rich_help_panel="Dataset")
def init(
    layout: Annotated[str, typer.Argument(help="Its layout, or `auto`.", metavar="LAYOUT")],
    path: Annotated[str, typer.Argument(help="Folder, file or URL.", metavar="PATH")],
    out: Annotated[Path, typer.Option(help="Config file to write.")] = Path("csl.yaml"),
    recipe: Annotated[
        Literal["quick", "standard", "paper"],
        typer.Option(help="How thorough; `paper` is the paper's protocol, for GPUs."),
    ] = "standard",
    fps: Annotated[
        float | None, typer.Option(help="Label entries per second, where files do not say.")
    ] = None,
) -> None:
    """Look at a dataset on disk or in a bucket; write a config that fits it and this machine."""
    from csl_dist.cost.recipes import RecipeName, chosen_settings, recipe_text, this_machine
    from csl_dist.data.facts import dataset_facts
    from csl_dist.data.init import (
        config_text,
        draft_config,
        refuse_unknown,
        with_even_folds,
        with_group,
        with_settings,
    )
    from csl_dist.data.layouts import read_dataset, read_labelled
    from csl_dist.data.splits import with_patterns
    from csl_dist.storage.files import place

    if fps is not None and not 0 < fps < 1e6:
        raise ConfigError(f"--fps is {fps}, expected a number above 0")
    refuse_unknown(layout)
    if os.path.lexists(out):
        raise ConfigError(f"{out} exists already; remove it, or give another --out")
    folder = place(path).absolute()
    draft = draft_config(layout, folder, out.absolute(), fps=fps)
    name = folder.stem or "mine"
    section = _parsed(config_text(draft, name), out).dataset
    usable = read_dataset(section)
    problems = usable.problems
    # Labels tell much even where no video was found.
    dataset = usable if usable.videos else read_labelled(section)
    if not dataset.videos and problems:
        _refuse(problems, f"{out} is not written, since no video can be used")
    draft = with_group(draft, dataset)
    section = _parsed(config_text(draft, name), out).dataset
    dataset = replace(dataset, videos=with_patterns(dataset.videos, section))
    facts, machine = dataset_facts(dataset), this_machine()
    sections = chosen_settings(RecipeName(recipe), facts, machine)
    settings = {key: (choice.value, choice.why) for key, choice in sections["dataset"].items()}
    draft = with_settings(draft, dataset, settings)
    if "folds" in draft.dataset:
        draft = with_even_folds(draft, dataset, facts.classes)
    text = config_text(draft, name) + recipe_text(sections)
    try:
        out.write_text(text)
    except OSError as error:
        raise ConfigError(f"can't write {out}: {error.strerror}") from error
    _print_draft(draft, dataset, out)
    if problems and usable.videos:
        _refuse(problems, f"{out} is written, but csl run refuses it until this is put right")
    _complain_of_first(problems)
    say(f"{out}: recipe {recipe} for {machine}")
    if not problems:
        _say_time(load_config(out, []), facts, machine)
    if not usable.videos:  # not a mistake: some have labels alone
        say(f"labels alone: csl lint {shown_path(str(folder))}")
    say(f"next: csl check {out}")


def _refuse(problems: "Sequence[str]", outcome: str) -> NoReturn:
    """Names the first problems of a dataset, and ends with what came of the config."""
    _complain_of_first(problems)
    raise DataError(outcome)


def _complain_of_first(problems: "Sequence[str]") -> None:
    for problem in problems[:PROBLEMS_SHOWN]:
        complain("problem", problem)
    if len(problems) > PROBLEMS_SHOWN:
        complain("problem", f"and {len(problems) - PROBLEMS_SHOWN:,} more")


def _print_draft(draft: "Draft", dataset: "Dataset", out: Path) -> None:
    """What was found, and what was guessed and can be changed, in two columns each."""
    from rich.table import Table
    from rich.text import Text

    from csl_dist.data.init import guesses, told

    def rows(pairs: "Iterable[tuple[str, str]]") -> Table:
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True, min_width=10)
        table.add_column(overflow="fold")
        for name, words in pairs:
            table.add_row(Text(f"  {name}"), Text(words))
        return table

    console.print(rows(told(draft, dataset)))
    say(f"guessed or chosen; change it in {out}, section dataset:")
    console.print(rows(guesses(draft)))


def _say_time(config: "RunConfig", facts: "DatasetFacts", machine: "Machine") -> None:
    """How long the run will take, where what it needs is installed."""
    if importlib.util.find_spec("torch") is None:
        say("time: unknown without torch; install csl_dist[run]")
        return
    from csl_dist.cost.forecast import forecast
    from csl_dist.cost.words import time_words
    from csl_dist.data.layouts import read_dataset

    with busy("measuring this machine"):
        made = forecast(config, read_dataset(config.dataset), machine, facts=facts)
    say(f"time: about {time_words(made.seconds)} on this machine")
    for sentence in (made.refusal(config.root), made.advice()):
        if sentence is not None:
            say(sentence)


def _parsed(text: str, out: Path) -> "RunConfig":
    import yaml

    from csl_dist.config import parse_config

    return parse_config(yaml.safe_load(text), where=str(out))


@app.command(rich_help_panel="Dataset")
def check(config: ConfigPath, overrides: Overrides = []) -> None:  # noqa: B006
    """Read every label, probe every video, and print what is there and what is wrong."""
    from csl_dist.cli.tables.dataset import class_table, dataset_table
    from csl_dist.cluster.progress import progress_bar
    from csl_dist.data.check import (
        all_problems,
        doubtful_rate,
        exchanged_labels,
        lone_classes,
        look_at_videos,
        orientation,
        summaries,
        trimmed,
    )
    from csl_dist.data.layouts import read_dataset
    from csl_dist.types import Split

    loaded = load_config(config, overrides)
    dataset = read_dataset(loaded.dataset).remembered()
    facts = []
    with progress_bar(console, "check: videos", total=len(dataset.videos)) as bar:
        for found in look_at_videos(dataset, loaded.dataset):
            facts.append(found)
            bar.advance()
    lines = summaries(dataset, facts)
    if lines:
        console.print(dataset_table(lines), class_table(dataset.classes, lines))
    for note in (*dataset.notes, *exchanged_labels(facts)):
        say(note)
    told = (orientation(facts), trimmed(facts), doubtful_rate(facts), lone_classes(dataset, facts))
    for sentence in told:
        if sentence is not None:
            say(sentence)
    if not dataset.in_split(Split.VAL) and loaded.flag.rule == "validation":
        say(
            "threshold: there are no validation videos to set it, so the worst "
            f"{loaded.flag.percent:g} % of the audited frames will be flagged"
        )
    problems = all_problems(dataset, facts, loaded) + _refused(loaded, dataset, facts)
    for problem in problems:
        complain("problem", problem)
    if problems:
        count = counted(len(problems), "problem")
        raise DataError(f"{config}: {count} found; fix what is wrong, then check again")
    console.print("no problems found")
    say_run(config, overrides)


def _refused(config: "RunConfig", dataset: "Dataset", facts: "Sequence[VideoFacts]") -> list[str]:
    """What `csl run` would refuse beside the data, where what it needs is installed."""
    if importlib.util.find_spec("torch") is None:
        say("not checked: models, weights, time and disk; install csl_dist[run]")
        return []
    from csl_dist.cluster.local import is_local
    from csl_dist.cost.forecast import forecast
    from csl_dist.cost.recipes import this_machine
    from csl_dist.cost.words import size_words, time_words
    from csl_dist.training.refusals import refusals
    from csl_dist.types import Media

    machine = this_machine()
    ready = any(video.media is Media.FEATURES for video in dataset.videos)
    widths = [found.file.width for found in facts if found.file is not None]
    problems = refusals(
        config,
        num_classes=len(dataset.classes),
        brought_width=widths[0] if widths else 1 if ready else None,
        cores=machine.cores if is_local() else None,
    )
    if problems or not dataset.videos or not dataset.classes:
        return problems
    with busy("measuring this machine"):
        made = forecast(config, dataset, machine)
    say(
        f"run: about {time_words(made.seconds)} on this machine ({machine}), "
        f"{size_words(made.num_bytes)} to write"
    )
    refusal = made.refusal(config.root)
    return problems if refusal is None else [*problems, refusal]
