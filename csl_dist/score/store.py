"""ScoreStore: per-frame scores of every video and scorer, in Zarr. Higher is more suspicious.

Scores are stored under the fingerprint of all that they are made from, so that nothing is ever
written over, and audits of other labels or settings stand side by side. The labels that scores were
computed under are stored beside them: scores can be read without the dataset.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from csl_dist.config import ScoreConfig
from csl_dist.errors import DamagedError, NotReadyError, StorageError, damaged
from csl_dist.measures import BASES
from csl_dist.storage.ledger import Ledger, Unit
from csl_dist.storage.url import Storage, at_once, key_part
from csl_dist.storage.zarr import ChunkReader, create_array, open_array
from csl_dist.types import Annotation, FloatArray, array_fingerprint, fingerprint

ANNOTATION = "annotation"
"""Folder of the labels beside the scores."""
FORM = "with labels and source times"
"""What is stored with the scores; scores of another form are made again."""

Versions = dict[str, dict[str, str]]
"""Fingerprint of all that scores are made from, by scorer, then video."""


def version_of(
    annotation: Annotation, trajectory: str, weights_C: FloatArray, config: ScoreConfig
) -> str:
    """Fingerprint of all that a video's scores are made from; `trajectory` is the trajectory's."""
    return fingerprint(
        trajectory,
        array_fingerprint(annotation.labels_T),
        array_fingerprint(annotation.source_times_T),
        weights_C.tolist(),
        config,
        list(BASES),
        FORM,
    )


class ScoreStore:
    """Arrays (T,) by video, scorer, version and name; NaN on frames without a label."""

    def __init__(self, storage: Storage):
        self._storage = storage
        self._ledger = Ledger(storage.child("records"))

    def __repr__(self) -> str:
        return f"ScoreStore({self._storage.url!r})"

    @staticmethod
    def unit(video: str, scorer: str, made: str) -> Unit:
        return Unit(f"{key_part(video)}/{key_part(scorer)}", made)

    def done(self) -> set[Unit]:
        return self._ledger.done()

    def write(
        self,
        annotation: Annotation,
        scorer: str,
        made: str,
        scores: Mapping[str, FloatArray],
        class_weights_C: FloatArray,
    ) -> None:
        """Writes one version of a video's scores with its labels, then the record."""
        folder = _folder(annotation.video, scorer, made)
        arrays = {
            f"{ANNOTATION}/labels": annotation.labels_T,
            f"{ANNOTATION}/times": annotation.times_T,
            f"{ANNOTATION}/source_times": annotation.source_times_T,
            **scores,
        }
        types = {f"{ANNOTATION}/labels": "int64", f"{ANNOTATION}/times": "float64"}
        types[f"{ANNOTATION}/source_times"] = "float64"
        facts = {
            "class_weights": class_weights_C.tolist(),
            "source_fps": annotation.source_fps,
            "duration": annotation.duration,
        }
        written = {}
        for name, values_T in arrays.items():
            array = create_array(
                self._storage,
                f"{folder}/{name}",
                shape=values_T.shape,
                chunks=values_T.shape,
                dtype=types.get(name, "float32"),
                attributes=facts if name == f"{ANNOTATION}/labels" else None,
            )
            stored_T = values_T.astype(array.dtype)
            array[:] = stored_T
            written[name] = array_fingerprint(stored_T)
        self._ledger.write(self.unit(annotation.video, scorer, made), arrays=written, facts=facts)

    def read_annotation(self, video: str, scorer: str, made: str) -> tuple[Annotation, FloatArray]:
        """The labels behind a video's scores, and the scorer's class weights (C,) in training."""
        key = f"{_folder(video, scorer, made)}/{ANNOTATION}"
        try:
            labels = ChunkReader(self._storage, f"{key}/labels")
        except StorageError as error:
            if isinstance(error, DamagedError):
                raise
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

    def names(self, video: str, scorer: str, made: str) -> list[str]:
        """Names of the scores of a video, sorted."""
        folder = _folder(video, scorer, made)
        keys = (key.removeprefix(f"{folder}/") for key in self._storage.list_keys(folder))
        parts = [key.split("/") for key in keys]
        return sorted({name for name, *rest in parts if rest == ["zarr.json"]})

    def read(self, video: str, scorer: str, name: str, made: str) -> FloatArray:
        """One score (T,) of a video."""
        key = f"{_folder(video, scorer, made)}/{name}"
        try:
            array = open_array(self._storage, key)
        except StorageError as error:
            if isinstance(error, DamagedError):
                raise
            raise NotReadyError(
                f"video {video!r} has no score {scorer}/{name}; run `csl audit`, and if it says "
                f"that all are scored, `csl verify --repair` first"
            ) from error
        # Frames without a label score NaN, so that a lost chunk must be told by its absence.
        if array.nchunks_initialized < array.nchunks:
            raise damaged(f"{self._storage.url}/{key}", "it has lost data")
        return np.asarray(array[:])

    def read_all(self, made: Mapping[str, str], scorer: str, name: str) -> dict[str, FloatArray]:
        """One score (T,) of each of many videos, given their versions."""
        scores = at_once(lambda video: self.read(video, scorer, name, made[video]), made)
        return dict(zip(made, scores, strict=True))

    def damage(self, unit: Unit) -> str | None:
        """What is wrong with a version of a video's scores; None if nothing."""
        folder = f"{unit.name}/{unit.fingerprint}"
        try:
            # Scores of an earlier csl_dist do not tell their fingerprints.
            written = self._ledger.read(unit, lambda facts: dict(facts.get("arrays", {})))
            for name, as_written in written.items():
                array = open_array(self._storage, f"{folder}/{name}")
                if array_fingerprint(array[:]) != as_written:
                    return f"{array.name} is not as it was written"
        except StorageError as error:
            return str(error)
        return None

    def remove(self, units: Iterable[Unit]) -> None:
        """Deletes versions that no audit has any more."""
        for unit in units:
            self._ledger.forget([unit])
            self._storage.delete_folder(f"{unit.name}/{unit.fingerprint}")


def _folder(video: str, scorer: str, made: str) -> str:
    return f"{key_part(video)}/{key_part(scorer)}/{made}"
