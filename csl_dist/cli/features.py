"""Commands for a feature store: `csl features ls`, `verify`, `rm`."""

from typing import Annotated

import typer

from csl_dist.cli.app import app, complain, console, say
from csl_dist.errors import DataError, StorageError
from csl_dist.storage.paths import RunLayout
from csl_dist.storage.url import Storage

features = typer.Typer(no_args_is_help=True, help="Look into a feature store, check it, tidy it.")
app.add_typer(features, name="features", rich_help_panel="Stores and speed")

StoreUrl = Annotated[
    str, typer.Argument(help="Run root, or a shared feature store: a path or URL.", metavar="STORE")
]
Encoder = Annotated[str | None, typer.Option(help="Only features of this encoder.")]
Videos = Annotated[list[str], typer.Option("--video", help="Only this video; may be repeated.")]


@features.command()
def ls(store: StoreUrl) -> None:
    """List the encoders and videos in a store."""
    from csl_dist.cli import tables
    from csl_dist.features.catalog import catalog

    console.print(tables.feature_table(catalog(_storage(store))))


@features.command()
def verify(store: StoreUrl, encoder: Encoder = None, videos: Videos = []) -> None:  # noqa: B006
    """Read every number in a store and compare it with what was written."""
    from csl_dist.cluster.progress import progress_bar
    from csl_dist.features.catalog import catalog, chosen, damages

    storage = _storage(store)
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


@features.command()
def rm(
    store: StoreUrl,
    encoder: Encoder = None,
    videos: Videos = [],  # noqa: B006
    unfinished: Annotated[bool, typer.Option(help="Only what was never finished.")] = False,
) -> None:
    """Remove features of an encoder, of videos, or of extractions that never finished."""
    from csl_dist.features.catalog import catalog, chosen, remove

    if encoder is None and not videos and not unfinished:
        raise DataError("say what to remove: --encoder, --video or --unfinished")
    storage = _storage(store)
    entries = chosen(catalog(storage), encoder=encoder, videos=videos, unfinished=unfinished)
    remove(storage, entries)
    num_bytes = sum(entry.num_bytes for entry in entries)
    say(f"removed {len(entries)} entries, {num_bytes / 2**20:,.1f} MiB")


def _storage(url: str) -> Storage:
    """The feature store at a URL, which may also be that of a run root."""
    from csl_dist.run import feature_storage
    from csl_dist.storage.run_file import read_run_config

    if Storage(url).exists(RunLayout.RUN):
        return feature_storage(read_run_config(url))
    storage = Storage(url)
    if not storage.list_keys():
        raise StorageError(f"{url} is neither a run root nor a feature store: there is nothing")
    return storage
