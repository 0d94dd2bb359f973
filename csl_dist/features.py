"""Features of videos, whoever made them: our own store in Zarr, or the user's files.

One unit of extraction writes whole chunks of one video and records them. A video can be read once
its own record is there, which is written when all its chunks are; their records then go.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from csl_dist.arrays import create_array, open_array, require_numbers
from csl_dist.feature_files import FeatureFile
from csl_dist.ledger import Ledger, Unit
from csl_dist.records import FloatArray, IntArray, Span, Timeline
from csl_dist.storage import Storage, key_part
from csl_dist.timeline import sampled

Features = npt.NDArray[np.float32]

FEATURE_CACHE_BYTES = 2 * 2**30
"""Features that one worker keeps in memory."""


class FeatureSource(Protocol):
    """Where training and scoring get features from, by video id."""

    encoder: str
    """Names what made the features."""

    def missing(self) -> list[str]:
        """Ids of videos that can't be read yet."""
        ...

    def timeline(self, video: str) -> Timeline:
        """When the frames behind the features are shown."""
        ...

    def read(self, video: str) -> Features:
        """Features (T, D) of a whole video."""
        ...

    def width(self) -> int:
        """D."""
        ...

    def fingerprint(self, video: str) -> str:
        """Changes whenever the features do."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureEntry:
    """A video in the store: its id, and the fingerprint of its source, sampling and encoder."""

    video: str
    fingerprint: str

    @property
    def key(self) -> str:
        """Holds the fingerprint, so that runs which share a store never overwrite each other."""
        return f"{key_part(self.video)}/{self.fingerprint}"

    @property
    def unit(self) -> Unit:
        """The record of the whole video."""
        return Unit(key_part(self.video), self.fingerprint)

    def chunk_unit(self, span: Span) -> Unit:
        return Unit(f"{self.key}/{span.start}-{span.stop}", self.fingerprint)


class FeatureStore:
    """Features (T, D) and times (T,) of videos that one encoder has seen."""

    def __init__(
        self, storage: Storage, encoder: str, entries: Mapping[str, FeatureEntry], width: int
    ):
        self.encoder = encoder
        self._storage = storage.child(encoder)
        self._entries = entries
        self._width = width
        self._chunks = Ledger(self._storage.child("records/chunks"))
        self._videos = Ledger(self._storage.child("records/videos"))

    def __repr__(self) -> str:
        return f"FeatureStore({self._storage.url!r})"

    def create(
        self, entry: FeatureEntry, timeline: Timeline, *, chunk_frames: int, dtype: str
    ) -> None:
        """Lays out a video's arrays; its chunks are written afterwards, each by one writer."""
        num_frames = len(timeline.times_T)
        create_array(
            self._storage,
            f"{entry.key}/features",
            shape=(num_frames, self._width),
            chunks=(min(chunk_frames, num_frames), self._width),
            dtype=dtype,
            attributes={"encoder": self.encoder, "video": entry.video},
        )
        times = create_array(
            self._storage,
            f"{entry.key}/times",
            shape=(num_frames,),
            chunks=(num_frames,),
            dtype="float64",
            attributes={
                "unit": "seconds",
                "duration": timeline.duration,
                "source_fps": timeline.source_fps,
            },
        )
        times[:] = timeline.times_T

    def write_chunk(
        self, entry: FeatureEntry, span: Span, features_TD: npt.NDArray[np.floating[Any]]
    ) -> None:
        """Writes the whole chunks of a span and records them."""
        array = open_array(self._storage, f"{entry.key}/features", writable=True)
        array[span.start : span.stop] = features_TD
        self._chunks.write(entry.chunk_unit(span))

    def missing_chunks(self, entry: FeatureEntry, spans: list[Span]) -> list[Span]:
        """Those of a video's chunks that are not on record."""
        done = self._chunks.done(entry.key)
        return [span for span in spans if entry.chunk_unit(span) not in done]

    def finish(self, entry: FeatureEntry, *, num_frames: int, source: dict[str, Any]) -> None:
        """Records a video whose chunks are all written."""
        self._videos.write(entry.unit, num_frames=num_frames, source=source)
        self._chunks.forget(self._chunks.done(entry.key))

    def missing(self) -> list[str]:
        finished = self._videos.done()
        return [video for video, entry in self._entries.items() if entry.unit not in finished]

    def timeline(self, video: str) -> Timeline:
        array = open_array(self._storage, f"{self._entries[video].key}/times")
        return Timeline(
            times_T=np.asarray(array[:]),
            duration=float(array.attrs["duration"]),  # type: ignore[arg-type]
            source_fps=float(array.attrs["source_fps"]),  # type: ignore[arg-type]
        )

    def read(self, video: str) -> Features:
        key = f"{self._entries[video].key}/features"
        features_TD = np.asarray(open_array(self._storage, key)[:], dtype=np.float32)
        require_numbers(features_TD, f"{self._storage.url}/{key}")
        return features_TD

    def width(self) -> int:
        return self._width

    def fingerprint(self, video: str) -> str:
        return self._entries[video].fingerprint


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyEntry:
    """A video whose features the user brought."""

    file: FeatureFile
    fps: float
    fingerprint: str


class ReadyFeatures:
    """The user's own feature files, sampled at a rate; nothing is copied."""

    encoder = "ready-made"

    def __init__(self, entries: Mapping[str, ReadyEntry], fps: float | None):
        self._entries = entries
        self._fps = fps

    def __repr__(self) -> str:
        return f"ReadyFeatures({len(self._entries)} videos)"

    def missing(self) -> list[str]:
        return []

    def timeline(self, video: str) -> Timeline:
        return self._sampled(video)[0]

    def read(self, video: str) -> Features:
        features_TD = self._entries[video].file.read()
        return features_TD if self._fps is None else features_TD[self._sampled(video)[1]]

    def width(self) -> int:
        return next(iter(self._entries.values())).file.width

    def fingerprint(self, video: str) -> str:
        return self._entries[video].fingerprint

    def _sampled(self, video: str) -> tuple[Timeline, IntArray]:
        entry = self._entries[video]
        times_N: FloatArray = np.arange(entry.file.num_frames) / entry.fps
        return sampled(times_N, self._fps)


class FeatureReader:
    """Reads features in their planted order and keeps the latest used, up to some bytes."""

    def __init__(
        self,
        source: FeatureSource,
        orders: Mapping[str, IntArray],
        max_bytes: int = FEATURE_CACHE_BYTES,
    ):
        self._source = source
        self._orders = orders
        self._max_bytes = max_bytes
        self._num_bytes = 0
        self._kept: OrderedDict[str, Features] = OrderedDict()

    def read(self, video: str) -> Features:
        """Features (T, D) of a video; the caller does not write to them."""
        if video in self._kept:
            self._kept.move_to_end(video)
            return self._kept[video]
        features_TD = self._source.read(video)
        if video in self._orders:
            features_TD = features_TD[self._orders[video]]
        self._kept[video] = features_TD
        self._num_bytes += features_TD.nbytes
        while self._num_bytes > self._max_bytes and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            self._num_bytes -= dropped.nbytes
        return features_TD
