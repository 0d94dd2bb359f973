"""What a run says of itself in its root: `run.json` and the list of its videos.

Reading them takes neither the dataset nor a model.
"""

import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import pandas as pd

from csl_dist.config import RunConfig, parse_config
from csl_dist.errors import NotReadyError, StorageError
from csl_dist.storage.paths import FORMAT_VERSION, RunLayout
from csl_dist.storage.url import Storage
from csl_dist.types import Media, Split, Video


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFile:
    """`run.json`: the config of a run, the classes, and what it is going to do."""

    config: RunConfig
    classes: tuple[str, ...]
    num_scored: int
    """Videos that checkpoints are evaluated on."""


def read_run_file(root: str) -> RunFile:
    """What a run's root says of it."""
    content = _read(root)
    config = parse_config(content["config"], where=f"{root}/{RunLayout.RUN}")
    return RunFile(
        # The root may have been moved or copied since.
        config=replace(config, root=Storage(root).url),
        classes=tuple(content["classes"]),
        num_scored=content["num_scored"],
    )


def read_run_config(root: str) -> RunConfig:
    """The config of a run from its root alone."""
    return read_run_file(root).config


def put_videos(layout: RunLayout, videos: Sequence[Video]) -> None:
    """Keeps the list of a run's videos, unless it is there already."""
    buffer = io.BytesIO()
    pd.DataFrame([asdict(video) for video in videos]).to_parquet(buffer, index=False)
    data = buffer.getvalue()
    if not layout.root.exists(layout.VIDEO_LIST) or layout.root.read(layout.VIDEO_LIST) != data:
        layout.root.put(layout.VIDEO_LIST, data)


def read_videos(layout: RunLayout) -> list[Video]:
    """All videos of a run, in the dataset's order."""
    if not layout.root.exists(layout.VIDEO_LIST):
        raise NotReadyError(
            f"{layout.root.url} has no list of its videos yet; run `csl audit` on its config"
        )
    table = pd.read_parquet(io.BytesIO(layout.root.read(layout.VIDEO_LIST)))
    return [_video(row) for row in table.to_dict("records")]


def _video(row: dict[Any, Any]) -> Video:
    row = {name: None if pd.isna(value) else value for name, value in row.items()}
    return Video(**row | {"split": Split(row["split"]), "media": Media(row["media"])})


def _read(root: str) -> dict[str, Any]:
    storage = Storage(root)
    if not storage.exists(RunLayout.RUN):
        raise NotReadyError(
            f"{root} is not a run root: it has no {RunLayout.RUN}; give the folder that "
            "`root:` in the config names"
        )
    content: dict[str, Any] = storage.read_json(RunLayout.RUN)
    if content["format_version"] != FORMAT_VERSION:
        raise StorageError(
            f"{root} has format version {content['format_version']}, but this csl_dist reads "
            f"{FORMAT_VERSION}; use the version of csl_dist that wrote it"
        )
    return content
