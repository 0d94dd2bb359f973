"""Scores of every held-out video under the run's labels, on Ray, in parallel over videos."""

from collections.abc import Mapping
from dataclasses import dataclass

import ray

from csl_dist.cluster.progress import progress_bar
from csl_dist.cluster.session import connect, get_all
from csl_dist.cluster.stage import Stage
from csl_dist.config import ScoreConfig
from csl_dist.measures import BASES
from csl_dist.predict.trajectories import TrajectoryStore
from csl_dist.score.formulas import trajectory_scores
from csl_dist.score.store import ScoreStore
from csl_dist.storage.ledger import Unit
from csl_dist.storage.url import key_part
from csl_dist.types import Annotation, FloatArray, array_fingerprint, fingerprint

VIDEOS_PER_TASK = 16
SCORES_FORM = "with labels and source times"
"""What is stored with the scores; other stored scores are made again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _FoldScoring:
    """What the videos of one scorer and fold have in common."""

    trajectories: TrajectoryStore
    scores: ScoreStore
    scorer: str
    weights_C: FloatArray
    """Weights of the loss that scores are made of."""
    class_weights_C: FloatArray
    """Weights in training."""
    config: ScoreConfig

    def score_video(self, annotation: Annotation, unit: Unit) -> None:
        trajectory = self.trajectories.trajectory(annotation.video)
        by_name = trajectory_scores(trajectory, annotation.labels_T, self.weights_C, self.config)
        self.scores.write_annotation(annotation, self.scorer, self.class_weights_C)
        self.scores.write(annotation.video, self.scorer, unit, by_name)

    def unit(self, annotation: Annotation, published: Mapping[str, str]) -> Unit:
        """The record of a video's scores; `published` are fingerprints of trajectories."""
        parts = fingerprint(
            published[key_part(annotation.video)],
            array_fingerprint(annotation.labels_T),
            array_fingerprint(annotation.source_times_T),
            self.weights_C.tolist(),
            self.config,
            list(BASES),
            SCORES_FORM,
        )
        return ScoreStore.unit(annotation.video, self.scorer, parts)


def score(stage: Stage) -> None:
    """Computes CSL and its companions under the run's labels."""
    run, inputs = stage.run, stage.inputs
    annotations = inputs.labels.held_out()
    fold_of = run.dataset.folds_by_video()
    scores = ScoreStore(run.paths.scores)
    done = scores.done()
    jobs: list[tuple[_FoldScoring, list[tuple[Annotation, Unit]]]] = []
    for scorer in run.config.scorers:
        trajectories = TrajectoryStore(run.paths.scorer(scorer))
        published = trajectories.published_fingerprints()
        for fold in run.dataset.folds:
            scoring = _FoldScoring(
                trajectories=trajectories,
                scores=scores,
                scorer=scorer,
                weights_C=inputs.checkpoints.loss_weights(scorer, fold.index),
                class_weights_C=inputs.checkpoints.class_weights(scorer, fold.index),
                config=run.config.score,
            )
            own = [a for a in annotations if fold_of[a.original] == fold.index]
            work = [(a, scoring.unit(a, published)) for a in own]
            work = [(a, unit) for a, unit in work if unit not in done]
            for start in range(0, len(work), VIDEOS_PER_TASK):
                jobs.append((scoring, work[start : start + VIDEOS_PER_TASK]))
    total = len(annotations) * len(run.config.scorers)
    if not jobs:
        stage.say(f"scores: all {total} videos are scored")
        return
    scores.retire(unit for _, work in jobs for _, unit in work)
    connect(verbose=stage.verbose)
    num_pending = sum(len(work) for _, work in jobs)
    title = "score: videos"
    with progress_bar(stage.console, title, total=total, done=total - num_pending) as bar:
        futures = {_score_videos.remote(*job): len(job[-1]) for job in jobs}
        while futures:
            ready, _ = ray.wait(list(futures))
            get_all(ready)
            bar.advance(sum(futures.pop(future) for future in ready))


@ray.remote
def _score_videos(scoring: _FoldScoring, work: list[tuple[Annotation, Unit]]) -> None:
    for annotation, unit in work:
        scoring.score_video(annotation, unit)
