"""How videos are scored: by a worker of Ray, and by commands that score a few themselves.

A module of its own, because a worker that imports the whole stage waits for torch, too.
"""

from dataclasses import dataclass

from csl_dist.config import ScoreConfig
from csl_dist.predict.published import Trajectory
from csl_dist.predict.trajectories import TrajectoryStore
from csl_dist.score.formulas import loss_weights, trajectory_scores
from csl_dist.score.store import ScoreStore, version_of
from csl_dist.types import Annotation, FloatArray

Work = list[tuple[Annotation, str]]
"""Videos, and the version of the scores that each is to get."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """What the videos of one training have in common, whatever their labels."""

    store: ScoreStore
    scorer: str
    class_weights_C: FloatArray
    """Weights of the loss in training."""
    config: ScoreConfig

    @property
    def weights_C(self) -> FloatArray:
        """Weights of the loss that scores are made of."""
        return loss_weights(self.class_weights_C, self.config)

    def version(self, annotation: Annotation, trajectory: str) -> str:
        """Of a video's scores; `trajectory` is the fingerprint of its trajectory."""
        return version_of(annotation, trajectory, self.weights_C, self.config)

    def by_name(self, annotation: Annotation, trajectory: Trajectory) -> dict[str, FloatArray]:
        """Scores (T,) of a video under its labels."""
        return trajectory_scores(trajectory, annotation.labels_T, self.weights_C, self.config)

    def write(self, annotation: Annotation, made: str, by_name: dict[str, FloatArray]) -> None:
        self.store.write(annotation, self.scorer, made, by_name, self.class_weights_C)


def score_videos(scoring: Scoring, trajectories: TrajectoryStore, work: Work) -> None:
    for annotation, made in work:
        trajectory = trajectories.trajectory(annotation.video)
        scoring.write(annotation, made, scoring.by_name(annotation, trajectory))
