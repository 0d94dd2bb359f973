"""What killed commands left in a run root, and no command will ever read."""

from collections.abc import Iterator
from functools import partial

from csl_dist.cluster.leftovers import Leftover, half_written
from csl_dist.storage.paths import RunPaths
from csl_dist.storage.run_file import require_format
from csl_dist.storage.url import Storage
from csl_dist.training.checkpoints import CheckpointStore


def unneeded(root: str) -> list[Leftover]:
    """Files that were begun, checkpoints without their record, audits without theirs.

    LockedError while a command writes to the root, as these may then be its own.
    """
    paths = RunPaths(Storage(root))
    require_format(paths.root)  # what another csl_dist needs is not known here
    begun = half_written(root)
    return [*begun, *_checkpoints(paths), *_audits(paths)]


def _checkpoints(paths: RunPaths) -> Iterator[Leftover]:
    keys = (key.split("/") for key in paths.root.list_keys())
    folders = {"/".join(parts[:4]) for parts in keys if parts[2:3] == ["checkpoints"]}
    for folder in sorted(folders):
        storage = paths.root.child(folder)
        for key, num_bytes in sorted(CheckpointStore(storage).unneeded().items()):
            yield Leftover(
                what=f"part of a checkpoint that was never finished, {storage.url}/{key}",
                num_bytes=num_bytes,
                remove=partial(storage.delete, key),
            )


def _audits(paths: RunPaths) -> Iterator[Leftover]:
    sizes: dict[str, dict[str, int]] = {}
    for key, num_bytes in paths.audits.list_sizes():
        number, _, name = key.partition("/")
        if number.isdecimal():
            sizes.setdefault(number, {})[name] = num_bytes
    for number, files in sorted(sizes.items()):
        if not files.keys() & {RunPaths.AUDIT, RunPaths.REMOVED}:
            folder = paths.audit(int(number))
            yield Leftover(
                what=f"audit that was never finished, {folder.url}",
                num_bytes=sum(files.values()),
                remove=folder.delete_folder,
            )
