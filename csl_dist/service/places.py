"""Where the service may read for a run: its root may come from somebody else, and then names
whatever they like as its dataset.

So only videos, pictures and label files are read, by their names, and only below the dataset's own
folder or below what the service was started with; a URL only below the latter, as asking for it
tells others of this machine, and may reach what only this machine can.
"""

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from csl_dist.config import DatasetConfig
from csl_dist.data.media.sources import VIDEO_SUFFIXES
from csl_dist.service.settings import ServiceSettings
from csl_dist.storage.files import is_url
from csl_dist.types import Media, Video

LABEL_SUFFIXES = (
    *(".txt", ".csv", ".tsv", ".json", ".jsonl", ".xml", ".eaf", ".anvil", ".boris", ".parquet"),
)

Folders = tuple[str, ...]
"""Real paths of folders, and URLs, that may be read below."""


def readable_folders(config: DatasetConfig, settings: ServiceSettings) -> Folders:
    """Where files of a dataset may be read from."""
    started_with = (*settings.media, *settings.roots, *settings.submit_below)
    own = config.path
    if not os.path.isdir(own) and PurePosixPath(own).suffix:
        own = own.rpartition("/")[0]
    media = getattr(config, "media", None)
    named = [one for one in (own, media) if one]
    allowed = [one for one in named if not is_url(one) or is_below(one, started_with)]
    return (*map(_real, allowed), *map(_real, settings.media))


def is_below(path: str, folders: Sequence[str]) -> bool:
    """Whether a path or URL lies in one of some folders, links and `..` followed."""
    return any(_is_in(path, folder) for folder in folders)


def may_show(video: Video, folders: Folders) -> bool:
    """Whether a source is a video or frames below these folders, where its links lead."""
    real = PurePosixPath(_real(video.source))
    if video.media is Media.VIDEO and real.suffix.lower() not in VIDEO_SUFFIXES:
        return False
    return is_below(video.source, folders)


def may_read_labels(file: str, folders: Folders) -> bool:
    """Whether a file is one of labels below these folders, where its links lead."""
    real = PurePosixPath(_real(file))
    return real.suffix.lower() in LABEL_SUFFIXES and is_below(file, folders)


def _is_in(path: str, folder: str) -> bool:
    if is_url(path) or is_url(folder):
        return f"{path}/".startswith(f"{folder.rstrip('/')}/") and ".." not in path.split("/")
    return Path(_real(path)).is_relative_to(_real(folder))


def _real(path: str) -> str:
    return path if is_url(path) else os.path.realpath(path)
