"""Compaction: rows of a group, and an earlier array, as blocks of one video's new array."""

from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from csl_dist.predict.published import Published
from csl_dist.storage.requests import at_once
from csl_dist.storage.url import Storage
from csl_dist.storage.zarr import ChunkReader, open_array
from csl_dist.types import Span, consecutive_spans

CHUNK_BYTES = 1 << 20
"""Of a published chunk, which is what reading one frame reads; see docs/decisions/023-scale.md."""
LEAST_CHUNK_FRAMES, MOST_CHUNK_FRAMES = 128, 1024
COMPACT_BLOCK_FRAMES = 4096
"""Frames that compaction reads at once, of every checkpoint."""


def chunk_frames(num_frames: int, frame_bytes: int) -> int:
    """Frames of a published chunk: about a megabyte, and chunks of a video equally long."""
    most = min(max(CHUNK_BYTES // frame_bytes, LEAST_CHUNK_FRAMES), MOST_CHUNK_FRAMES)
    return -(-num_frames // -(-num_frames // most))


def block_spans(num_frames: int, width: int) -> list[Span]:
    """Frames that are written, and checked, together: whole chunks of so many frames."""
    return consecutive_spans(num_frames, max(1, COMPACT_BLOCK_FRAMES // width) * width)


class RowBlocks:
    """Reads a group's rows in blocks that hold many short videos, or a part of a long one: a chunk
    of each row.

    Videos follow each other in the rows, so that it is enough to keep two blocks.
    """

    def __init__(self, storage: Storage, key: str):
        self._storage = storage
        self._key = key
        self._block = lru_cache(maxsize=2)(self._read_block)

    @cached_property
    def chunks(self) -> ChunkReader:
        return ChunkReader(self._storage, self._key)

    def read(self, rows: tuple[int, ...], span: Span) -> npt.NDArray[Any]:
        """Some rows (E, T, C) of a span of the group's frames."""
        width = self.chunks.chunks[1]
        parts = []
        for number in range(span.start // width, -(-span.stop // width)):
            first = number * width
            inside = slice(max(0, span.start - first), span.stop - first)
            parts.append(self._block(rows, number)[:, inside])
        return np.concatenate(parts, axis=1)

    def _read_block(self, rows: tuple[int, ...], number: int) -> npt.NDArray[Any]:
        def read(row: int) -> npt.NDArray[Any]:
            return self.chunks.read(row, number, 0)

        # Threads are for waiting, which files of this machine do not make anybody do.
        read_each = map if self.chunks.is_local else at_once
        return np.concatenate(list(read_each(read, rows)))


class VideoRows:
    """The rows of one video: some just predicted, some from an earlier array."""

    def __init__(
        self,
        storage: Storage,
        rows: dict[str, str],
        earlier: Published | None,
        fresh: RowBlocks,
        place: Span,
    ):
        known = earlier.rows if earlier is not None else {}
        is_old_E = np.array([known.get(epoch) == unit for epoch, unit in rows.items()])
        self._is_old_E = is_old_E
        self._old_rows = [
            list(known).index(e) for e, old in zip(rows, is_old_E, strict=True) if old
        ]
        self._fresh_rows = tuple(
            int(epoch) - 1 for epoch, old in zip(rows, is_old_E, strict=True) if not old
        )
        self._old = open_array(storage, earlier.array) if earlier and self._old_rows else None
        self._fresh = fresh
        self._place = place

    def num_classes_and_dtype(self) -> tuple[int, str]:
        if self._old is not None:
            return self._old.shape[2], str(self._old.dtype)
        form = self._fresh.chunks.form
        return form.shape[2], form.dtype

    def read(self, span: Span) -> npt.NDArray[Any]:
        """Log-probabilities (E, T, C) of a span of the video."""
        num_classes, dtype = self.num_classes_and_dtype()
        block_ETC = np.empty((len(self._is_old_E), len(span), num_classes), dtype)
        if self._old is not None:
            old_ETC = self._old[:, span.start : span.stop]
            block_ETC[self._is_old_E] = old_ETC[self._old_rows]
        if self._fresh_rows:
            start = self._place.start + span.start
            inside = Span(start, start + len(span))
            block_ETC[~self._is_old_E] = self._fresh.read(self._fresh_rows, inside)
        return block_ETC
