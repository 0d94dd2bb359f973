"""What a run says of itself in its root: `run.json` and the list of its videos.

Reading them takes neither the dataset nor a model.
"""

import time
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import pandas as pd

from csl_dist.config import RunConfig, config_as_dict, parse_config
from csl_dist.errors import DamagedError, NotReadyError, StorageError, damaged
from csl_dist.storage.paths import FORMAT_VERSION, RunPaths
from csl_dist.storage.tables import digest_of, read_table, table_bytes
from csl_dist.storage.url import Storage
from csl_dist.types import Media, Split, Video

VIDEOS_DIGEST = "videos_digest"
"""Key of the digest of the list of videos."""
WRITING_SECONDS = 1.0
"""That the list of videos may be newer than its digest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFile:
    """`run.json`: the config of a run, the classes, and what it is going to do."""

    config: RunConfig
    classes: tuple[str, ...]
    num_held_out: int
    """Videos that checkpoints are evaluated on."""
    folds: tuple[int, ...]
    """Indices of the folds that have videos."""
    num_to_extract: int
    encoder: str
    """Names what makes the features."""
    has_known_errors: bool
    versions: dict[str, str]
    """Of Python and of packages."""


def put_run_file(paths: RunPaths, run: RunFile, videos: Sequence[Video]) -> None:
    """Writes what a run says of itself, unless that is there; refuses a root of another format.

    A damaged `run.json` is written anew, as all that it says is known here; but not one in a folder
    that nothing else shows to be a run root.
    """
    if not paths.root.exists(RunPaths.RUN) and not paths.root.exists(RunPaths.IDENTITY):
        paths.root.put_json(RunPaths.IDENTITY, {"id": uuid.uuid4().hex})
    try:
        require_format(paths.root)
    except DamagedError:
        if not paths.root.exists(RunPaths.VIDEO_LIST):
            raise
    content = {name: getattr(run, name) for name in run.__dataclass_fields__}
    content |= {"config": config_as_dict(run.config), "format_version": FORMAT_VERSION}
    content |= {VIDEOS_DIGEST: put_videos(paths.root, videos)}
    paths.root.put_json_if_changed(RunPaths.RUN, content)


def read_run_file(root: str) -> RunFile:
    """What a run's root says of it."""
    storage = Storage(root)
    if not storage.exists(RunPaths.RUN):
        raise NotReadyError(
            f"{root} is not a run root: it has no {RunPaths.RUN}; give the folder that "
            "`root:` in the config names"
        )
    require_format(storage)

    def built(content: dict[str, Any]) -> RunFile:
        config = parse_config(content.pop("config"), where=f"{root}/{RunPaths.RUN}")
        # The root may have been moved or copied since.
        content["config"] = replace(config, root=Storage(root).url)
        content |= {name: tuple(content[name]) for name in ("classes", "folds")}
        return RunFile(**{name: content[name] for name in RunFile.__dataclass_fields__})

    return storage.read_json(RunPaths.RUN, built)


def identity_of(root: str) -> str:
    """What tells a run from another at the same place; empty of a run of an earlier csl_dist."""
    storage = Storage(root)
    if not storage.exists(RunPaths.IDENTITY):
        return ""
    return storage.read_json(RunPaths.IDENTITY, lambda content: str(content["id"]))


def read_run_config(root: str) -> RunConfig:
    """The config of a run from its root alone."""
    return read_run_file(root).config


def put_videos(folder: Storage, videos: Sequence[Video]) -> str:
    """Keeps the list of the videos of a run, or of an audit, unless it is there; its digest."""
    data = table_bytes(pd.DataFrame([asdict(video) for video in videos]))
    folder.put_if_changed(RunPaths.VIDEO_LIST, data)
    return digest_of(data)


def read_run_videos(root: Storage) -> list[Video]:
    """All videos of a run; DamagedError where the list is not the one that `run.json` goes with."""

    def read() -> list[Video]:
        digest = root.read_json(RunPaths.RUN, lambda run: run.get(VIDEOS_DIGEST))
        return read_videos(root, digest=digest)

    try:
        return read()
    except DamagedError:
        # A command that starts writes the list and then `run.json`: this may be in between.
        time.sleep(WRITING_SECONDS)
        return read()


def read_videos(folder: Storage, *, digest: str | None = None) -> list[Video]:
    """All videos of a run, or of an audit, in the dataset's order."""
    if not folder.exists(RunPaths.VIDEO_LIST):
        raise NotReadyError(
            f"{folder.url} has no list of its videos yet; run `csl audit` on its config"
        )
    table = read_table(folder, RunPaths.VIDEO_LIST, digest=digest)
    try:
        return [_video(row) for row in table.to_dict("records")]
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(f"{folder.url}/{RunPaths.VIDEO_LIST}", error) from error


def _video(row: dict[Any, Any]) -> Video:
    row = {name: None if pd.isna(value) else value for name, value in row.items()}
    return Video(**row | {"split": Split(row["split"]), "media": Media(row["media"])})


def require_format(root: Storage) -> None:
    """Refuses a run root that another version of csl_dist wrote; whoever writes there asks this."""
    if not root.exists(RunPaths.RUN):
        return
    version = root.read_json(RunPaths.RUN, lambda content: content["format_version"])
    if version != FORMAT_VERSION:
        raise StorageError(
            f"{root.url} has format version {version}, but this csl_dist has {FORMAT_VERSION}; use "
            "the csl_dist that wrote it, or run the config with another root, where "
            f"features.store: {root.url}/features.zarr takes the features along"
        )
