"""ScoreStore: per-frame scores of every video and scorer, in Zarr. Higher is more suspicious."""

from collections.abc import Iterable

import numpy as np

from csl_dist.arrays import create_array, open_array
from csl_dist.errors import NotReadyError, StorageError
from csl_dist.ledger import Ledger, Unit
from csl_dist.records import FloatArray
from csl_dist.storage import Storage, key_part


class ScoreStore:
    """Arrays (T,) named by video, scorer and score; NaN on frames without a label."""

    def __init__(self, storage: Storage):
        self._storage = storage
        self._ledger = Ledger(storage.child("records"))

    def __repr__(self) -> str:
        return f"ScoreStore({self._storage.url!r})"

    @staticmethod
    def unit(video: str, scorer: str, fingerprint: str) -> Unit:
        return Unit(f"{key_part(video)}/{key_part(scorer)}", fingerprint)

    def done(self) -> set[Unit]:
        return self._ledger.done()

    def versions(self, videos: Iterable[str], scorers: Iterable[str]) -> list[tuple[str, str]]:
        """Name and fingerprint of the scores of these videos and scorers alone."""
        names = {self.unit(v, s, "").name for v in videos for s in scorers}
        return sorted((u.name, u.fingerprint) for u in self.done() if u.name in names)

    def retire(self, units: Iterable[Unit]) -> None:
        """Call before units are written: their scores under other labels are about to go."""
        self._ledger.retire(units)

    def write(self, video: str, scorer: str, unit: Unit, scores: dict[str, FloatArray]) -> None:
        """Writes a video's scores, then the record."""
        for name, score_T in scores.items():
            array = create_array(
                self._storage,
                f"{key_part(video)}/{key_part(scorer)}/{name}",
                shape=score_T.shape,
                chunks=score_T.shape,
                dtype="float32",
            )
            array[:] = score_T
        self._ledger.write(unit)

    def read(self, video: str, scorer: str, name: str) -> FloatArray:
        """One score (T,) of a video."""
        key = f"{key_part(video)}/{key_part(scorer)}/{name}"
        try:
            array = open_array(self._storage, key)
        except StorageError as error:
            raise NotReadyError(
                f"video {video!r} has no score {scorer}/{name}; run `csl audit`, and if it says "
                f"that all are reduced, delete {self._storage.url} first"
            ) from error
        # Frames without a label score NaN, so that a lost chunk must be told by its absence.
        if array.nchunks_initialized < array.nchunks:
            raise StorageError(
                f"{self._storage.url}/{key} has lost data; delete {self._storage.url} and run "
                "`csl audit`"
            )
        return np.asarray(array[:])
