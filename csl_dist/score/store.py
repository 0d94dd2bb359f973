"""ScoreStore: per-frame scores of every video and scorer, in Zarr. Higher is more suspicious.

Scores are stored under the fingerprint of all that they are made from, so that nothing is ever
written over, and audits of other labels or settings stand side by side. The labels that scores were
computed under are stored beside them: scores can be read without the dataset.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict

import numpy as np

from csl_dist.config import ScoreConfig
from csl_dist.errors import DamagedError, NotReadyError, StorageError, damaged
from csl_dist.measures import BASES
from csl_dist.score.formulas import UsualCsl, usual_csl
from csl_dist.storage.ledger import Ledger, Unit
from csl_dist.storage.requests import at_once
from csl_dist.storage.url import Storage, key_part
from csl_dist.storage.zarr import ArrayForm, ChunkReader, lay_out_array, open_array
from csl_dist.types import Annotation, FloatArray, array_fingerprint, fingerprint

ANNOTATION = "annotation"
"""The array beside the scores: labels, times, and times in the source, as rows."""
SCORES = "scores"
"""The array of all scores, a row each."""
NAMES = "names"
"""Its attribute: which row is which score."""
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
    """Scores (T,) by video, scorer, version and name; NaN on frames without a label."""

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
        facts = {
            "class_weights": class_weights_C.tolist(),
            "source_fps": annotation.source_fps,
            "duration": annotation.duration,
        }
        # Two arrays, each a chunk: making one takes longer than all that is computed for it.
        seen_3T = np.stack([annotation.labels_T, annotation.times_T, annotation.source_times_T])
        arrays = {
            ANNOTATION: (seen_3T.astype("float64"), facts),
            SCORES: (np.stack([*scores.values()]).astype("float32"), {NAMES: list(scores)}),
        }
        written = {}
        for name, (values, attributes) in arrays.items():
            key = f"{_folder(annotation.video, scorer, made)}/{name}"
            form = ArrayForm(values.shape, values.shape, str(values.dtype), is_compressed=True)
            writer = lay_out_array(self._storage, key, form, attributes)
            writer.write((0, 0), values)
            written[name] = array_fingerprint(values)
        self._ledger.write(
            self.unit(annotation.video, scorer, made),
            arrays=written,
            facts=facts,
            csl=asdict(usual_csl(scores["csl"])),
        )

    def usual_csl(self, made: Mapping[str, str], scorer: str) -> dict[str, UsualCsl]:
        """What is usual of each of many videos, from the records of their scores alone."""

        def usual(video: str) -> UsualCsl:
            unit = self.unit(video, scorer, made[video])
            found = self._ledger.read(unit, lambda facts: facts.get("csl"))
            if found is None:  # of an earlier csl_dist
                return usual_csl(self.read(video, scorer, "csl", made[video]))
            return UsualCsl(**found)

        return dict(zip(made, at_once(usual, made), strict=True))

    def read_annotation(self, video: str, scorer: str, made: str) -> tuple[Annotation, FloatArray]:
        """The labels behind a video's scores, and the scorer's class weights (C,) in training."""
        key = f"{_folder(video, scorer, made)}/{ANNOTATION}"
        found = self._opened(key)
        if found is not None:
            labels_T, times_T, shown_T = found.read(0, 0)
        else:  # three arrays, as an earlier csl_dist wrote them
            parts = [self._opened(f"{key}/{name}") for name in ("labels", "times", "source_times")]
            found = parts[0]
            if found is None:
                raise NotReadyError(
                    f"video {video!r} has no scores of {scorer} with their labels; run `csl audit`"
                )
            labels_T, times_T, shown_T = (
                _whole(part, f"{self._storage.url}/{key}") for part in parts
            )
        annotation = Annotation(
            video=video,
            labels_T=labels_T.astype(np.int64),
            times_T=times_T,
            shown_T=shown_T,
            source_fps=float(found.attributes["source_fps"]),
            duration=float(found.attributes["duration"]),
        )
        return annotation, np.array(found.attributes["class_weights"])

    def names(self, video: str, scorer: str, made: str) -> list[str]:
        """Names of the scores of a video, sorted."""
        folder = _folder(video, scorer, made)
        found = self._opened(f"{folder}/{SCORES}")
        if found is not None:
            stored = set(found.attributes[NAMES])
        else:  # an array a score, as an earlier csl_dist wrote them
            keys = (key.removeprefix(f"{folder}/") for key in self._storage.list_keys(folder))
            parts = [key.split("/") for key in keys]
            stored = {name for name, *rest in parts if rest == ["zarr.json"]}
        # It also stored the smoothed CSL, which is `csl_smoothed`.
        return sorted(stored.intersection(BASES))

    def read(self, video: str, scorer: str, name: str, made: str) -> FloatArray:
        """One score (T,) of a video."""
        folder = _folder(video, scorer, made)
        found = self._opened(f"{folder}/{SCORES}")
        if found is not None and name in found.attributes[NAMES]:
            score_T: FloatArray = found.read(0, 0)[found.attributes[NAMES].index(name)]
            return score_T
        earlier = self._opened(f"{folder}/{name}")
        if earlier is None:
            raise NotReadyError(
                f"video {video!r} has no score {scorer}/{name}; run `csl audit`, and if it says "
                "that all are scored, `csl verify --repair` first"
            )
        return earlier.read(0)

    def _opened(self, key: str) -> ChunkReader | None:
        """An array that is one chunk; None where there is none."""
        try:
            return ChunkReader(self._storage, key)
        except DamagedError:
            raise
        except StorageError:
            return None

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


def _whole(part: ChunkReader | None, where: str) -> FloatArray:
    if part is None:
        raise damaged(where, "it has lost data")
    return part.read(0)


def _folder(video: str, scorer: str, made: str) -> str:
    return f"{key_part(video)}/{key_part(scorer)}/{made}"
