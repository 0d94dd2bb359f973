"""NodeFeatures: features decoded once on a machine, in files that all its workers map.

An audit needs every video once for each checkpoint. Features that are mapped take no memory of a
worker's own, and the system keeps in memory what fits of them.
"""

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from csl_dist.features.decoded import DecodedActivations
from csl_dist.features.source import ALL_FRAMES, Features, FeatureSource, Frames
from csl_dist.types import Timeline, fingerprint

MAX_SHARE = 4
"""A video is kept if it takes at most one part in so many of the disk space that is left."""


def kept_on_node(
    source: FeatureSource, folder: Path, num_rows: Mapping[str, int] | None = None
) -> FeatureSource:
    """A source whose videos lie in a folder of this machine, where they are stored at all.

    `num_rows` are the rows of its videos, where these are not as many as their frames.
    """
    if isinstance(source, DecodedActivations):
        return source
    return NodeFeatures(source, folder, num_rows or {})


class NodeFeatures:
    """A source of features whose videos lie decoded in a folder of this machine.

    Numbers that float16 holds exactly, such as those of a store in float16, are kept and given so.
    """

    def __init__(
        self, source: FeatureSource, folder: Path, num_rows: Mapping[str, int] | None = None
    ):
        self.encoder = source.encoder
        self._source = source
        self._folder = folder
        self._num_rows = num_rows or {}

    def __repr__(self) -> str:
        return f"NodeFeatures({self._source!r}, {str(self._folder)!r})"

    def missing(self) -> list[str]:
        return self._source.missing()

    def timeline(self, video: str) -> Timeline:
        return self._source.timeline(video)

    def width(self) -> int:
        return self._source.width()

    def fingerprint(self, video: str) -> str:
        return self._source.fingerprint(video)

    def read(self, video: str, frames: Frames = ALL_FRAMES) -> Features:
        path = self._folder / f"{fingerprint(video, self._source.fingerprint(video))}.npy"
        if not path.exists() and not self._keep(video, path):
            return self._source.read(video, frames)
        # Copy-on-write rather than read-only, which torch would warn of.
        whole_TD: Features = np.load(path, mmap_mode="c")
        return whole_TD[frames]

    def _keep(self, video: str, path: Path) -> bool:
        """Decodes a video into its file, where there is room for it."""
        num_rows = self._num_rows.get(video) or len(self._source.timeline(video).times_T)
        num_bytes = num_rows * self.width() * np.dtype(np.float32).itemsize
        if num_bytes > shutil.disk_usage(self._folder).free // MAX_SHARE:
            return False
        # Another worker may do the same at the same time; either file will do.
        with tempfile.NamedTemporaryFile(dir=self._folder, delete=False) as file:
            np.save(file, as_small_as_exact(self._source.read(video)))
        os.replace(file.name, path)
        return True


def as_small_as_exact(values: Features) -> Features:
    """The numbers in float16 where that changes none of them."""
    if values.dtype == np.float16:
        return values
    with np.errstate(over="ignore"):
        half = values.astype(np.float16)
    return half if np.array_equal(half, values) else values


def node_folder(root: str) -> Path:
    """Where this machine keeps decoded features of a run, made if it is not there."""
    folder = _node_folder(root)
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        # Somebody else was first; what they put there is not to be trusted.
        return Path(tempfile.mkdtemp(prefix=folder.name))
    return folder


def forget_node_folder(root: str) -> None:
    """Deletes what this machine keeps of a run."""
    shutil.rmtree(_node_folder(root), ignore_errors=True)


def _node_folder(root: str) -> Path:
    name = f"csl-features-{os.getuid()}-{fingerprint(root)}"
    return Path(tempfile.gettempdir()) / name
