"""ScoreStore: per-frame scores of every video and scorer, in Zarr. Higher is more suspicious.

The labels that scores were computed under are stored beside them, so that scores can be read, and
compared with those under other labels, without the dataset.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from csl_dist.errors import NotReadyError, StorageError
from csl_dist.storage.ledger import Ledger, Unit
from csl_dist.storage.url import Storage, at_once, key_part
from csl_dist.storage.zarr import ChunkReader, create_array, open_array
from csl_dist.types import Annotation, FloatArray

ANNOTATION = "annotation"
"""Folder of the labels beside the scores."""


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

    def write_annotation(
        self, annotation: Annotation, scorer: str, class_weights_C: FloatArray
    ) -> None:
        """Keeps the labels that scores are about to be written for; call it before `write`."""
        arrays = {
            "labels": annotation.labels_T,
            "times": annotation.times_T,
            "source_times": annotation.source_times_T,
        }
        for name, values_T in arrays.items():
            array = create_array(
                self._storage,
                f"{_annotation_key(annotation.video, scorer)}/{name}",
                shape=values_T.shape,
                chunks=values_T.shape,
                dtype="int64" if name == "labels" else "float64",
                attributes={
                    "class_weights": class_weights_C.tolist(),
                    "source_fps": annotation.source_fps,
                    "duration": annotation.duration,
                },
            )
            array[:] = values_T

    def read_annotation(self, video: str, scorer: str) -> tuple[Annotation, FloatArray]:
        """The labels behind a video's scores, and the scorer's class weights (C,) in training."""
        key = _annotation_key(video, scorer)
        try:
            labels = ChunkReader(self._storage, f"{key}/labels")
        except StorageError as error:
            raise NotReadyError(
                f"video {video!r} has no scores of {scorer} with their labels; run `csl audit`"
            ) from error
        annotation = Annotation(
            video=video,
            labels_T=labels.read(0),
            times_T=ChunkReader(self._storage, f"{key}/times").read(0),
            shown_T=ChunkReader(self._storage, f"{key}/source_times").read(0),
            source_fps=float(labels.attributes["source_fps"]),
            duration=float(labels.attributes["duration"]),
        )
        return annotation, np.array(labels.attributes["class_weights"])

    def names(self, video: str, scorer: str) -> list[str]:
        """Names of the scores of a video, sorted."""
        folder = f"{key_part(video)}/{key_part(scorer)}"
        keys = (key.removeprefix(f"{folder}/") for key in self._storage.list_keys(folder))
        parts = [key.split("/") for key in keys]
        names = {name for name, *rest in parts if rest == ["zarr.json"]}
        return sorted(names - {ANNOTATION})

    def read(self, video: str, scorer: str, name: str) -> FloatArray:
        """One score (T,) of a video."""
        key = f"{key_part(video)}/{key_part(scorer)}/{name}"
        try:
            array = open_array(self._storage, key)
        except StorageError as error:
            raise NotReadyError(
                f"video {video!r} has no score {scorer}/{name}; run `csl audit`, and if it says "
                f"that all are scored, delete {self._storage.url} first"
            ) from error
        # Frames without a label score NaN, so that a lost chunk must be told by its absence.
        if array.nchunks_initialized < array.nchunks:
            raise StorageError(
                f"{self._storage.url}/{key} has lost data; delete {self._storage.url} and run "
                "`csl audit`"
            )
        return np.asarray(array[:])

    def read_all(self, videos: Sequence[str], scorer: str, name: str) -> dict[str, FloatArray]:
        """One score (T,) of each of many videos."""
        scores = at_once(lambda video: self.read(video, scorer, name), videos)
        return dict(zip(videos, scores, strict=True))


def _annotation_key(video: str, scorer: str) -> str:
    return f"{key_part(video)}/{key_part(scorer)}/{ANNOTATION}"
