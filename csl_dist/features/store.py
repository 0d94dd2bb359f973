"""FeatureStore: our own features of videos, in Zarr.

One unit of extraction writes whole chunks of one video and records them. A video can be read once
its own record is there, which is written when all its chunks are; their records then go.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from csl_dist.errors import StorageError
from csl_dist.features.sample import Sample
from csl_dist.features.source import ALL_FRAMES, Features, Frames
from csl_dist.storage.ledger import Ledger, Unit
from csl_dist.storage.requests import at_once
from csl_dist.storage.url import Storage, key_part
from csl_dist.storage.zarr import Array, create_array, open_array, read_array, require_numbers
from csl_dist.types import (
    IntArray,
    Span,
    Timeline,
    array_fingerprint,
)

READ_BYTES = 2**20
"""About the size of what is read at once; wide features lie in several such chunks a file."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredVideo:
    """What is on record of a finished video."""

    video: str
    num_frames: int
    chunks: dict[str, str]
    """Fingerprint of the numbers in each `start-stop`."""
    repeated: list[float]
    """Seconds of frames that could not be decoded, and that the one before stands in for."""


class FeatureStore:
    """Features (T, D) and times (T,) of videos that one encoder has seen."""

    def __init__(
        self,
        storage: Storage,
        encoder: str,
        entries: Mapping[str, FeatureEntry],
        width: int,
        *,
        sample: Sample | None = None,
    ):
        """With a sample, there are features of its frames alone, and times of all of them."""
        self.encoder = encoder
        self._storage = storage.child(encoder)
        self._entries = entries
        self._width = width
        self._sample = sample
        self._chunks = Ledger(self._storage.child("records/chunks"))
        self._videos = Ledger(self._storage.child("records/videos"))

    def __repr__(self) -> str:
        return f"FeatureStore({self._storage.url!r})"

    def entry(self, video: str) -> FeatureEntry:
        return self._entries[video]

    def stored_frames(self, video: str, timeline: Timeline) -> IntArray:
        """Indices of the frames that the store has features of, or will have."""
        if self._sample is None:
            return np.arange(len(timeline.times_T))
        return self._sample.frames(video, timeline.times_T)

    def create(
        self,
        entry: FeatureEntry,
        timeline: Timeline,
        *,
        chunk_frames: int,
        dtype: str,
        source: dict[str, Any],
    ) -> None:
        """Lays out a video's arrays; its units of `chunk_frames` each have one writer."""
        num_frames = len(timeline.times_T)
        num_rows = len(self.stored_frames(entry.video, timeline))
        unit_frames = max(1, min(chunk_frames, num_rows))
        most_frames = max(1, READ_BYTES // (self._width * np.dtype(dtype).itemsize))
        # A file holds whole chunks.
        read_frames = max(n for n in range(1, most_frames + 1) if unit_frames % n == 0)
        create_array(
            self._storage,
            f"{entry.key}/features",
            shape=(num_rows, self._width),
            chunks=(read_frames, self._width),
            shards=(unit_frames, self._width) if read_frames < unit_frames else None,
            dtype=dtype,
            attributes={
                "encoder": self.encoder,
                "video": entry.video,
                "fingerprint": entry.fingerprint,
                "fps": timeline.fps,
                "source": source,
            },
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
        self,
        entry: FeatureEntry,
        span: Span,
        features_TD: npt.NDArray[np.floating[Any]],
        *,
        repeated: Sequence[float] = (),
    ) -> None:
        """Writes the whole chunks of a span and records them.

        `repeated` are the seconds of frames that another one stands in for.
        """
        array = open_array(self._storage, f"{entry.key}/features", writable=True)
        stored_TD = features_TD.astype(array.dtype)
        array[span.start : span.stop] = stored_TD
        hashed = array_fingerprint(stored_TD)
        self._chunks.write(entry.chunk_unit(span), content=hashed, repeated=list(repeated))

    def missing_chunks(self, entry: FeatureEntry, spans: list[Span]) -> list[Span]:
        """Those of a video's chunks that are not on record."""
        done = self._chunks.done(entry.key)
        return [span for span in spans if entry.chunk_unit(span) not in done]

    def finish(self, entry: FeatureEntry, spans: list[Span]) -> "StoredVideo":
        """Records a video whose chunks are all written."""
        units = [entry.chunk_unit(span) for span in spans]
        facts = at_once(lambda unit: self._chunks.read(unit, dict), units)
        stored = StoredVideo(
            video=entry.video,
            num_frames=spans[-1].stop if spans else 0,
            chunks={f"{s.start}-{s.stop}": f["content"] for s, f in zip(spans, facts, strict=True)},
            repeated=[seconds for f in facts for seconds in f["repeated"]],
        )
        self._videos.write(entry.unit, **asdict(stored))
        self._chunks.forget(self._chunks.done(entry.key))
        return stored

    def stored(self, entry: FeatureEntry) -> "StoredVideo":
        """What is on record of a finished video."""
        return self._videos.read(entry.unit, lambda facts: StoredVideo(**facts))

    def damaged_chunks(self, entry: FeatureEntry) -> list[str]:
        """Spans of a finished video whose numbers are not those that were written."""
        stored = self.stored(entry)
        try:
            array = open_array(self._storage, f"{entry.key}/features")
            self._timeline(entry)
        except StorageError:
            return list(stored.chunks)
        return [name for name, written in stored.chunks.items() if _read(array, name) != written]

    def remove(self, key: str) -> None:
        """Deletes a video's features and its records, by the key of its entry."""
        self._videos.forget([Unit(*key.split("/"))])
        self._chunks.forget(self._chunks.done(key))
        self._storage.delete_folder(key)

    def missing(self) -> list[str]:
        finished = self._videos.done()
        return [video for video, entry in self._entries.items() if entry.unit not in finished]

    def timeline(self, video: str) -> Timeline:
        return self._timeline(self._entries[video])

    def _timeline(self, entry: FeatureEntry) -> Timeline:
        array = open_array(self._storage, f"{entry.key}/times")
        return Timeline(
            times_T=_without_gaps(array[:], array.name),
            duration=float(array.attrs["duration"]),  # type: ignore[arg-type]
            source_fps=float(array.attrs["source_fps"]),  # type: ignore[arg-type]
        )

    def read(self, video: str, frames: Frames = ALL_FRAMES) -> Features:
        key = f"{self._entries[video].key}/features"
        features_TD: Features = (
            read_array(self._storage, key)
            if isinstance(frames, slice) and frames == ALL_FRAMES
            else open_array(self._storage, key).take(frames)
        )
        require_numbers(features_TD, f"{self._storage.url}/{key}")
        return features_TD

    def width(self) -> int:
        return self._width

    def fingerprint(self, video: str) -> str:
        return self._entries[video].fingerprint


def _read(array: Array, name: str) -> str | None:
    """Fingerprint of the numbers in a `start-stop`; None where they can't be read."""
    start, stop = map(int, name.split("-"))
    try:
        return array_fingerprint(array[start:stop])
    except StorageError:
        return None


def _without_gaps(times_T: npt.NDArray[Any], where: str) -> npt.NDArray[Any]:
    require_numbers(times_T, where)
    return times_T
