"""What an audit is made of: scores, labels and trajectories, by video and scorer.

Which version of a video's scores counts is what the audit says; before the first audit, it is what
is there.
"""

from collections.abc import Sequence
from functools import cached_property, lru_cache

import numpy as np

from csl_dist.audit.revision import AuditStore
from csl_dist.config import ScoreConfig
from csl_dist.errors import NotReadyError
from csl_dist.flag.record import AuditRecord
from csl_dist.measures import base_and_smoothing
from csl_dist.predict.published import Location, Trajectory
from csl_dist.predict.trajectories import TrajectoryStore
from csl_dist.score.formulas import rescored, smoothed_as_named
from csl_dist.score.store import ScoreStore, Versions
from csl_dist.storage.paths import RunPaths
from csl_dist.storage.url import key_part
from csl_dist.types import Annotation, FloatArray, IntArray

MAX_KEPT = 256
"""Videos, times scorers, whose labels and open trajectories an audit keeps: about 0.1 GB."""


class StoredVideos:
    """The held-out videos of one audit, or of a run without one; the last used are kept open."""

    def __init__(
        self,
        audits: AuditStore,
        revision: int,
        record: AuditRecord | None,
        paths: RunPaths,
        *,
        config: ScoreConfig,
        videos: Sequence[str],
        scorers: Sequence[str],
    ):
        self._audits = audits
        self._revision = revision
        self._record = record
        self._paths = paths
        self._config = config
        self._videos = videos
        self._scorers = scorers
        self._scores = ScoreStore(paths.scores)
        self._weights: dict[tuple[str, int], FloatArray] = {}
        self.annotated = lru_cache(MAX_KEPT)(self._read_annotation)
        """Labels of a video under a scorer, and the weights (C,) of the loss in its training."""
        self.trajectory = lru_cache(MAX_KEPT)(self._read_trajectory)
        """The trajectory of a video under a scorer."""

    def __repr__(self) -> str:
        return f"StoredVideos({len(self._videos)} videos, revision {self._revision})"

    def missing(self) -> list[str]:
        """Trajectories and scores that videos do not have yet, a sentence each."""
        sentences = []
        for scorer in self._scorers:
            published = self._store(scorer).published_fingerprints()
            without = [video for video in self._videos if key_part(video) not in published]
            sentences += _lacking(without, len(self._videos), f"trajectory of {scorer}")
            known = self._versions[scorer]
            without = [video for video in self._videos if video not in known]
            sentences += _lacking(without, len(self._videos), f"score of {scorer}")
        return sentences

    def score_names(self, video: str, scorer: str) -> list[str]:
        """Names of the scores that are stored of a video."""
        return self._scores.names(video, scorer, self._version(video, scorer))

    def score(self, video: str, scorer: str, name: str) -> FloatArray:
        """A stored score (T,) of a video."""
        return self._scores.read(video, scorer, name, self._version(video, scorer))

    def named_score(
        self, video: str, scorer: str, name: str, given_T: IntArray | None = None
    ) -> FloatArray:
        """A score (T,) of a video, smoothed as its name ends.

        Under other labels than the video's own, frames whose label differs are computed anew.
        """
        base, smoothing = base_and_smoothing(name)
        score_T = self.score(video, scorer, base)
        if given_T is None and not smoothing:
            return score_T
        labels_T = self.annotated(video, scorer)[0].labels_T
        if given_T is not None:
            score_T = rescored(
                score_T,
                base,
                self.trajectory(video, scorer),
                self.loss_weights(video, scorer),
                before_T=labels_T,
                after_T=given_T,
                strategy=self._config.checkpoints,
            )
            labels_T = given_T
        return smoothed_as_named(score_T, labels_T, smoothing=smoothing, window=self._config.window)

    def loss_weights(self, video: str, scorer: str, weighted: bool | None = None) -> FloatArray:
        """Weights (C,) that losses are read with; as the run has it unless `weighted` is given."""
        use_weights = self._config.weighted if weighted is None else weighted
        if not use_weights:
            return np.ones(self.trajectory(video, scorer).shape[2])
        return self.training_weights(video, scorer)

    def training_weights(self, video: str, scorer: str) -> FloatArray:
        """Weights (C,) of the loss in one training, which all videos of a fold have in common."""
        training = scorer, self.trajectory(video, scorer).fold
        if training not in self._weights:
            self._weights[training] = self.annotated(video, scorer)[1]
        return self._weights[training]

    @cached_property
    def _versions(self) -> Versions:
        """Which version of its scores each video has."""
        if self._record is not None:
            return self._record.scores
        done = {unit.name: unit.fingerprint for unit in self._scores.done()}
        return {
            scorer: {
                video: done[name]
                for video in self._videos
                if (name := ScoreStore.unit(video, scorer, "").name) in done
            }
            for scorer in self._scorers
        }

    def _version(self, video: str, scorer: str) -> str:
        if video not in self._versions[scorer]:
            raise NotReadyError(f"video {video!r} has no scores of {scorer} yet; run `csl audit`")
        return self._versions[scorer][video]

    def _read_annotation(self, video: str, scorer: str) -> tuple[Annotation, FloatArray]:
        return self._scores.read_annotation(video, scorer, self._version(video, scorer))

    def _read_trajectory(self, video: str, scorer: str) -> Trajectory:
        store = self._store(scorer)
        location = self._locations.get(scorer, {}).get(key_part(video))
        if location is not None and not store.is_there(location):
            location = None  # a later run has more checkpoints of the video
        return store.trajectory(video, location)

    @cached_property
    def _locations(self) -> dict[str, dict[str, Location]]:
        return self._audits.locations(self._revision) if self._revision else {}

    def _store(self, scorer: str) -> TrajectoryStore:
        return TrajectoryStore(self._paths.scorer(scorer))


def _lacking(videos: list[str], total: int, what: str) -> list[str]:
    if not videos:
        return []
    names = ", ".join(videos[:5]) + (", …" if videos[5:] else "")
    return [f"{len(videos)} of {total} videos have no {what} yet ({names})"]
