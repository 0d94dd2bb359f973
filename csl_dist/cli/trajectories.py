"""Commands for trajectories: `csl trajectories verify`, `rm`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from csl_dist.cli.app import Root, app, complain, console, say
from csl_dist.errors import DataError, StorageError

if TYPE_CHECKING:
    from csl_dist.predict.trajectories import TrajectoryStore

trajectories = typer.Typer(no_args_is_help=True, help="Check what an audit has predicted.")
app.add_typer(trajectories, name="trajectories", rich_help_panel="Stores and speed")


@trajectories.command()
def verify(root: Root) -> None:
    """Read every trajectory of a run and compare it with what was written."""
    from csl_dist.cluster.progress import progress_bar

    published = list(_published(root))
    num_damaged = 0
    with progress_bar(console, "verify: trajectories", total=len(published)) as bar:
        for scorer, video, store in published:
            damage = store.damage(video)
            if damage is not None:
                num_damaged += 1
                complain("problem", f"{scorer}, video {video!r}: {damage}")
            bar.advance()
    if num_damaged:
        raise StorageError(
            f"{num_damaged} of {len(published)} trajectories are damaged; remove them with "
            f"`csl trajectories rm {root} --video …` and run `csl audit`"
        )
    say(f"all {len(published)} trajectories are as they were written")


@trajectories.command()
def rm(
    root: Root,
    videos: Annotated[list[str], typer.Option("--video", help="Id; may be given repeatedly.")],
) -> None:
    """Remove the trajectories of videos, which `csl audit` then predicts again."""
    removed = [(video, store) for _, video, store in _published(root) if video in videos]
    unknown = sorted(set(videos) - {video for video, _ in removed})
    if unknown:
        raise DataError(f"{root} has no trajectory of {', '.join(map(repr, unknown))}")
    for video, store in removed:
        store.remove(video)
    say(f"removed {len(removed)} trajectories")


def _published(root: str) -> Iterator[tuple[str, str, "TrajectoryStore"]]:
    """Scorer, video and store of every trajectory of a run."""
    from csl_dist.audit.reader import open_audit
    from csl_dist.data.planted import copy_id
    from csl_dist.predict.trajectories import TrajectoryStore
    from csl_dist.storage.url import key_part

    audit = open_audit(root)
    for scorer in audit.scorers:
        store = TrajectoryStore(audit.layout.scorer(scorer))
        known = store.published_fingerprints()
        for video in audit.held_out_videos():
            for name in (video.id, copy_id(video.id)):
                if key_part(name) in known:
                    yield scorer, name, store
