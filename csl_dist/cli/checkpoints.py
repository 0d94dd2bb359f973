"""Commands for checkpoints: `csl checkpoints ls`, `verify`, `import`."""

from pathlib import Path
from typing import Annotated

import typer

from csl_dist.cli.app import ConfigPath, Overrides, Root, app, complain, console, say
from csl_dist.config import load_config
from csl_dist.errors import CheckpointError, ConfigError

checkpoints = typer.Typer(no_args_is_help=True, help="Look at checkpoints, check them, bring own.")
app.add_typer(checkpoints, name="checkpoints", rich_help_panel="Stores and speed")


@checkpoints.command()
def ls(root: Root) -> None:
    """List the trainings of a run and their checkpoints."""
    from csl_dist.cli import tables
    from csl_dist.training.catalog import stored_trainings

    console.print(tables.training_table(list(stored_trainings(root))))


@checkpoints.command()
def verify(root: Root) -> None:
    """Read every checkpoint of a run and compare it with its own description."""
    from csl_dist.cluster.progress import progress_bar
    from csl_dist.training.catalog import stored_trainings

    trainings = list(stored_trainings(root))
    pairs = [(t.checkpoints, info) for t in trainings for info in t.infos_with_weights()]
    num_damaged = 0
    with progress_bar(console, "verify: checkpoints", total=len(pairs)) as bar:
        for store, info in pairs:
            try:
                store.load(info)
            except CheckpointError as error:
                num_damaged += 1
                complain("problem", str(error))
            bar.advance()
    if num_damaged:
        raise CheckpointError(f"{num_damaged} of {len(pairs)} checkpoints of {root} are damaged")
    num_dropped = sum(len(t.infos) for t in trainings) - len(pairs)
    gone = f"; the weights of {num_dropped} more are deleted, as they have been used"
    say(f"all {len(pairs)} checkpoints are as they were written{gone * (num_dropped > 0)}")


@checkpoints.command("import")
def import_(
    config: ConfigPath,
    scorer: Annotated[str, typer.Argument(help="Scorer of the config, with `train: false`.")],
    files: Annotated[str, typer.Argument(help="Folder, or a quoted glob: 'out/epoch_*.pt'.")],
    train_ids: Annotated[
        Path | None, typer.Option(help="File of the ids that they were trained on, one a line.")
    ] = None,
    no_overlap: Annotated[
        bool, typer.Option("--no-overlap", help="They were trained on none of these videos.")
    ] = False,
    fold: Annotated[int, typer.Option(min=0, help="Fold that they belong to.")] = 0,
    overrides: Overrides = [],  # noqa: B006
) -> None:
    """Bring checkpoints that were trained elsewhere."""
    from csl_dist.data.text import read_lines
    from csl_dist.pipeline import open_stage
    from csl_dist.training.imported import import_training

    if (train_ids is None) is not no_overlap:
        raise ConfigError(
            "say which videos the checkpoints were trained on: --train-ids FILE, or --no-overlap "
            "where it was none of this dataset's; audits of training videos are refused"
        )
    ids = [line for line in read_lines(train_ids) if line] if train_ids else []
    inputs = open_stage(load_config(config, overrides)).inputs
    num_imported = len(import_training(inputs, scorer, fold, files, ids))
    num_known = len(set(ids) & {video.id for video in inputs.run.dataset.videos})
    say(
        f"{num_imported} checkpoints of scorer {scorer!r}, trained on {num_known} of this "
        f"dataset's videos; next: csl audit {config}"
    )
