"""Commands that look into the stores of a run: features, checkpoints, trajectories."""

from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from csl_dist.cli.app import (
    ConfigPath,
    Overrides,
    Root,
    Verbose,
    app,
    complain,
    console,
    load_config,
    say,
)
from csl_dist.errors import ConfigError, DataError, StorageError

if TYPE_CHECKING:
    from csl_dist.predict.trajectories import TrajectoryStore
    from csl_dist.storage.url import Storage


@app.command(rich_help_panel="Stores and speed")
def verify(
    root: Root,
    repair: Annotated[
        bool, typer.Option("--repair", help="Make again what is damaged, by the run's config.")
    ] = False,
    verbose: Verbose = False,
) -> None:
    """Compare everything that a run has stored with what was written, and name what is damaged."""
    from csl_dist import pipeline
    from csl_dist.audit.verify import checks
    from csl_dist.cluster.progress import progress_bar
    from csl_dist.storage.paths import RunPaths
    from csl_dist.storage.url import Storage

    if not Storage(root).exists(RunPaths.RUN):
        raise StorageError(f"{root} is not a run root: it has no {RunPaths.RUN}")
    found, planned = [], checks(root)
    with progress_bar(console, "verify", total=len(planned)) as bar:
        for check in planned:
            found += check.find()
            bar.advance()
    for damage in found:
        gone = "; it was removed, and is not made again yet" * damage.is_removed
        complain("damaged", f"{damage.what}{gone}; {damage.remade}")
    counts = Counter(str(check.kind) for check in planned)
    words = ", ".join(f"{count} of {kind}" for kind, count in counts.items())
    if not found:
        say(f"all {len(planned)} parts are as they were written: {words}")
        return
    if not repair:
        raise StorageError(
            f"{len(found)} of {len(planned)} parts are damaged; `csl verify {root} --repair` makes "
            "them again"
        )
    pipeline.repair(root, found, console=console, verbose=verbose)
    lost = [damage for damage in found if damage.forget is None]
    if lost:
        raise StorageError(
            f"{len(lost)} of {len(found)} damaged parts can't be made again from what is in {root}"
        )
    say(f"repaired: {len(found)} parts")


@app.command(rich_help_panel="Stores and speed")
def clean(
    root: Annotated[
        str | None,
        typer.Argument(help="Run root to look into, instead of this machine.", metavar="ROOT"),
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Remove what is listed.")] = False,
) -> None:
    """List what killed commands left on this machine, or in a run root; remove it if asked to."""
    from csl_dist.cluster.leftovers import Leftover, leftovers
    from csl_dist.storage.lock import RootLock
    from csl_dist.storage.paths import RunPaths
    from csl_dist.storage.url import Storage

    def tell(some: list[Leftover]) -> list[Leftover]:
        for leftover in some:
            say(f"{leftover.what}, {leftover.num_bytes / 2**20:,.1f} MiB")
            if remove:
                leftover.remove()
        return some

    if root is None:
        found = tell(leftovers())
    else:
        # Needs all of csl_dist, and a machine is cleaned without.
        from csl_dist.audit.unneeded import unneeded

        begun = unneeded(root)  # refuses what is no run root, or in use
        with RootLock(RunPaths(Storage(root)), "csl clean") if begun and remove else nullcontext():
            found = tell(begun)
    total = sum(leftover.num_bytes for leftover in found) / 2**20
    done = "removed" if remove else "left behind"
    say(
        f"{done}: {len(found)}, {total:,.1f} MiB"
        + "; --remove removes" * bool(found and not remove)
    )


features = typer.Typer(no_args_is_help=True, help="Look into a feature store, check it, tidy it.")
app.add_typer(features, name="features", rich_help_panel="Stores and speed")

StoreUrl = Annotated[
    str, typer.Argument(help="Run root, or a shared feature store: a path or URL.", metavar="STORE")
]
Encoder = Annotated[str | None, typer.Option(help="Only features of this encoder.")]
Videos = Annotated[list[str], typer.Option("--video", help="Only this video; may be repeated.")]


@features.command("ls")
def ls_features(store: StoreUrl) -> None:
    """List the encoders and videos in a store."""
    from csl_dist.cli.tables.stores import feature_table
    from csl_dist.features.catalog import catalog

    console.print(feature_table(catalog(_feature_storage(store))))


@features.command("verify")
def verify_features(store: StoreUrl, encoder: Encoder = None, videos: Videos = []) -> None:  # noqa: B006
    """Read every number in a store and compare it with what was written."""
    from csl_dist.cluster.progress import progress_bar
    from csl_dist.features.catalog import catalog, chosen, damages

    storage = _feature_storage(store)
    entries = chosen(catalog(storage), encoder=encoder, videos=videos, unfinished=False)
    finished = [entry for entry in entries if entry.stored]
    num_damaged = 0
    with progress_bar(console, "verify: videos", total=len(finished)) as bar:
        for entry, spans in zip(finished, damages(storage, finished), strict=True):
            bar.advance()
            if spans:
                num_damaged += 1
                complain("problem", f"video {entry.video!r}: frames {', '.join(spans)} are damaged")
    if num_damaged:
        raise StorageError(
            f"{num_damaged} of {len(finished)} videos are damaged; remove them with "
            f"`csl features rm {store} --video …` and extract again"
        )
    say(f"all {len(finished)} videos are as they were written")


@features.command("rm")
def rm_features(
    store: StoreUrl,
    encoder: Encoder = None,
    videos: Videos = [],  # noqa: B006
    unfinished: Annotated[bool, typer.Option(help="Only what was never finished.")] = False,
) -> None:
    """Remove features of an encoder, of videos, or of extractions that never finished."""
    from csl_dist.features.catalog import catalog, chosen, remove
    from csl_dist.storage.lock import RootLock
    from csl_dist.storage.paths import RunPaths
    from csl_dist.storage.url import Storage

    if encoder is None and not videos and not unfinished:
        raise DataError("say what to remove: --encoder, --video or --unfinished")
    storage = _feature_storage(store)
    # Of a run, whether the root is named or the store in it; one that runs share has none to lock.
    paths = RunPaths(Storage(Storage(store).url.removesuffix("/features.zarr") or "/"))
    with RootLock(paths, "csl features rm") if paths.root.exists(paths.RUN) else nullcontext():
        entries = chosen(catalog(storage), encoder=encoder, videos=videos, unfinished=unfinished)
        remove(storage, entries)
    num_bytes = sum(entry.num_bytes for entry in entries)
    say(f"removed {len(entries)} entries, {num_bytes / 2**20:,.1f} MiB")


def _feature_storage(url: str) -> "Storage":
    """The feature store at a URL, which may also be that of a run root."""
    from csl_dist.run import feature_storage
    from csl_dist.storage.paths import RunPaths
    from csl_dist.storage.run_file import read_run_config
    from csl_dist.storage.url import Storage
    from csl_dist.types import is_fingerprint

    if Storage(url).exists(RunPaths.RUN):
        return feature_storage(read_run_config(url))
    storage = Storage(url)
    # What a store makes is named by fingerprints; another folder is not to be tidied as one.
    if not any(is_fingerprint(key.partition("/")[0]) for key in storage.list_keys()):
        raise StorageError(f"{url} is neither a run root nor a feature store; name one of these")
    return storage


checkpoints = typer.Typer(no_args_is_help=True, help="Look at checkpoints, bring own.")
app.add_typer(checkpoints, name="checkpoints", rich_help_panel="Stores and speed")


@checkpoints.command("ls")
def ls_checkpoints(root: Root) -> None:
    """List the trainings of a run and their checkpoints."""
    from csl_dist.cli.tables.stores import training_table
    from csl_dist.training.catalog import stored_trainings

    console.print(training_table(list(stored_trainings(root))))


@checkpoints.command("import")
def import_checkpoints(
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
    with open_stage(load_config(config, overrides), "csl checkpoints import") as stage:
        num_imported = len(import_training(stage.inputs, scorer, fold, files, ids))
        num_known = len(set(ids) & {video.id for video in stage.run.dataset.videos})
    say(
        f"{num_imported} checkpoints of scorer {scorer!r}, trained on {num_known} of this "
        f"dataset's videos; next: csl audit {config}"
    )


trajectories = typer.Typer(no_args_is_help=True, help="Remove what an audit has predicted.")
app.add_typer(trajectories, name="trajectories", rich_help_panel="Stores and speed")


@trajectories.command("rm")
def rm_trajectories(
    root: Root,
    videos: Annotated[list[str], typer.Option("--video", help="Id; may be given repeatedly.")],
) -> None:
    """Remove the trajectories of videos, which `csl audit` then predicts again."""
    from csl_dist.storage.lock import RootLock
    from csl_dist.storage.paths import RunPaths
    from csl_dist.storage.url import Storage, key_part

    removed = [(video, store) for video, store in _published(root) if video in videos]
    unknown = sorted(set(videos) - {video for video, _ in removed})
    if unknown:
        raise DataError(f"{root} has no trajectory of {', '.join(map(repr, unknown))}")
    with RootLock(RunPaths(Storage(root)), "csl trajectories rm"):
        for video, store in removed:
            store.remove(key_part(video))
    say(f"removed {len(removed)} trajectories")


def _published(root: str) -> Iterator[tuple[str, "TrajectoryStore"]]:
    """Video and store of every trajectory of a run."""
    from csl_dist.audit.reader import open_audit
    from csl_dist.data.planted import copy_id
    from csl_dist.predict.trajectories import TrajectoryStore
    from csl_dist.storage.url import key_part

    audit = open_audit(root)
    for scorer in audit.scorers:
        store = TrajectoryStore(audit.paths.scorer(scorer))
        known = store.published_fingerprints()
        for video in audit.held_out_videos():
            for name in (video.id, copy_id(video.id)):
                if key_part(name) in known:
                    yield name, store
