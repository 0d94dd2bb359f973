"""What a worker of Ray does to score some videos.

A module of its own, because a worker that imports the whole stage waits for torch, too.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from csl_dist.config import ScoreConfig
from csl_dist.predict.trajectories import TrajectoryStore
from csl_dist.score.formulas import trajectory_scores
from csl_dist.score.store import ScoreStore, version_of
from csl_dist.storage.url import key_part
from csl_dist.types import Annotation, FloatArray

Work = list[tuple[Annotation, str]]
"""Videos, and the version of the scores that each is to get."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldScoring:
    """What the videos of one scorer and fold have in common."""

    trajectories: TrajectoryStore
    scores: ScoreStore
    scorer: str
    weights_C: FloatArray
    """Weights of the loss that scores are made of."""
    class_weights_C: FloatArray
    """Weights in training."""
    config: ScoreConfig

    def version(self, annotation: Annotation, published: Mapping[str, str]) -> str:
        """`published` are fingerprints of trajectories."""
        trajectory = published.get(key_part(annotation.video), "")
        return version_of(annotation, trajectory, self.weights_C, self.config)

    def score_video(self, annotation: Annotation, made: str) -> None:
        trajectory = self.trajectories.trajectory(annotation.video)
        by_name = trajectory_scores(trajectory, annotation.labels_T, self.weights_C, self.config)
        self.scores.write(annotation, self.scorer, made, by_name, self.class_weights_C)


def score_videos(scoring: FoldScoring, work: Work) -> None:
    for annotation, made in work:
        scoring.score_video(annotation, made)
