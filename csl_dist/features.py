"""FeatureStore: the features of each video, by encoder, in Zarr.

One unit of extraction writes whole chunks of one video and records them. A video can be read once
its own record is there, which is written when all its chunks are; their records then go.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from csl_dist.arrays import create_array, open_array
from csl_dist.errors import NotReadyError
from csl_dist.ledger import Ledger, Unit
from csl_dist.records import FloatArray, Span
from csl_dist.storage import Storage, key_part


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureEntry:
    """A video in the store: its id, and the fingerprint of its source, sampling and encoder."""

    video: str
    fingerprint: str

    @property
    def key(self) -> str:
        return key_part(self.video)


class FeatureStore:
    """Features (T, D) and times (T,) of many videos, made by one encoder."""

    def __init__(self, storage: Storage, encoder: str):
        self._storage = storage.child(encoder)
        self._chunks = Ledger(self._storage.child("records/chunks"))
        self._videos = Ledger(self._storage.child("records/videos"))
        self.encoder = encoder

    def __repr__(self) -> str:
        return f"FeatureStore({self._storage.url!r})"

    def create(
        self,
        entry: FeatureEntry,
        times_T: FloatArray,
        *,
        width: int,
        chunk_frames: int,
        dtype: str,
    ) -> None:
        """Lays out a video's arrays; its chunks are written afterwards, each by one writer."""
        self._videos.retire([_video_unit(entry)], entry.key)
        self._chunks.forget(self._chunks.done(entry.key))
        num_frames = len(times_T)
        attributes = {"encoder": self.encoder, "fingerprint": entry.fingerprint}
        create_array(
            self._storage,
            f"{entry.key}/features",
            shape=(num_frames, width),
            chunks=(min(chunk_frames, num_frames), width),
            dtype=dtype,
            attributes=attributes,
        )
        times = create_array(
            self._storage,
            f"{entry.key}/times",
            shape=(num_frames,),
            chunks=(num_frames,),
            dtype="float64",
            attributes={"unit": "seconds"},
        )
        times[:] = times_T

    def write_chunk(
        self, entry: FeatureEntry, span: Span, features_TD: npt.NDArray[np.floating[Any]]
    ) -> None:
        """Writes the whole chunks of a span and records them."""
        array = open_array(self._storage, f"{entry.key}/features", writable=True)
        array[span.start : span.stop] = features_TD
        self._chunks.write(self._chunk_unit(entry, span))

    def missing_chunks(self, entry: FeatureEntry, spans: list[Span]) -> list[Span]:
        """Those of a video's chunks that are not on record."""
        done = self._chunks.done(entry.key)
        return [span for span in spans if self._chunk_unit(entry, span) not in done]

    def finish(self, entry: FeatureEntry, *, num_frames: int, source: dict[str, Any]) -> None:
        """Records a video whose chunks are all written."""
        self._videos.write(_video_unit(entry), num_frames=num_frames, source=source)
        self._chunks.forget(self._chunks.done(entry.key))

    def finished(self) -> set[Unit]:
        """The records of all videos that can be read."""
        return self._videos.done()

    def has(self, entry: FeatureEntry, finished: set[Unit]) -> bool:
        return _video_unit(entry) in finished

    def times(self, entry: FeatureEntry) -> FloatArray:
        """Seconds (T,) of a video's frames."""
        return np.asarray(open_array(self._storage, f"{entry.key}/times")[:])

    def read(self, entry: FeatureEntry) -> npt.NDArray[np.float32]:
        """Features (T, D) of a whole video."""
        array = open_array(self._storage, f"{entry.key}/features")
        if array.attrs.get("fingerprint") != entry.fingerprint:
            raise NotReadyError(
                f"the features of video {entry.video!r} in {self._storage.url} are of another "
                "version of the video; run `csl extract`"
            )
        return np.asarray(array[:], dtype=np.float32)

    @staticmethod
    def _chunk_unit(entry: FeatureEntry, span: Span) -> Unit:
        return Unit(f"{entry.key}/{span.start}-{span.stop}", entry.fingerprint)


def _video_unit(entry: FeatureEntry) -> Unit:
    return Unit(f"{entry.key}/video", entry.fingerprint)


class FeatureReader:
    """Reads features and keeps the most recently used, up to a number of bytes."""

    def __init__(self, store: FeatureStore, entries: dict[str, FeatureEntry], max_bytes: int):
        self._store = store
        self._entries = entries
        self._max_bytes = max_bytes
        self._num_bytes = 0
        self._kept: OrderedDict[str, npt.NDArray[np.float32]] = OrderedDict()

    def read(self, video: str) -> npt.NDArray[np.float32]:
        """Features (T, D) of a video; the caller does not write to them."""
        if video in self._kept:
            self._kept.move_to_end(video)
            return self._kept[video]
        features_TD = self._store.read(self._entries[video])
        self._kept[video] = features_TD
        self._num_bytes += features_TD.nbytes
        while self._num_bytes > self._max_bytes and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            self._num_bytes -= dropped.nbytes
        return features_TD
