"""Reduction on Ray: the scores of every held-out video, in parallel over videos."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import ray

from csl_dist.cluster.progress import progress_bar
from csl_dist.cluster.session import connect, get_all
from csl_dist.cluster.stage import Stage
from csl_dist.config import ReduceConfig
from csl_dist.measures import BASES
from csl_dist.predict.plan import scored_annotations
from csl_dist.predict.trajectories import TrajectoryStore
from csl_dist.run import Run, class_weights_of
from csl_dist.score.formulas import trajectory_scores
from csl_dist.score.store import ScoreStore
from csl_dist.storage.ledger import Unit
from csl_dist.storage.url import key_part
from csl_dist.types import Annotation, FloatArray, array_fingerprint, fingerprint

VIDEOS_PER_TASK = 16
SCORES_FORM = "with labels"
"""What is stored with the scores; other stored scores are made again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reduction:
    """What the videos of one scorer and fold have in common."""

    store: TrajectoryStore
    scores: ScoreStore
    scorer: str
    weights_C: FloatArray
    """Weights of the loss that scores are made of."""
    class_weights_C: FloatArray
    """Weights in training."""
    config: ReduceConfig

    def reduce_video(self, annotation: Annotation, unit: Unit) -> None:
        trajectory = self.store.trajectory(annotation.video)
        by_name = trajectory_scores(trajectory, annotation.labels_T, self.weights_C, self.config)
        self.scores.write_annotation(annotation, self.scorer, self.class_weights_C)
        self.scores.write(annotation.video, self.scorer, unit, by_name)


def reduce(stage: Stage) -> None:
    """Computes CSL and its companions under the run's labels."""
    run = stage.run
    annotations = scored_annotations(run)
    fold_of = run.dataset.folds_by_video()
    done = run.scores.done()
    jobs: list[tuple[_Reduction, list[tuple[Annotation, Unit]]]] = []
    for scorer in run.config.scorers:
        store = run.trajectories(scorer)
        published = store.published_fingerprints()
        for fold in run.dataset.folds:
            weights_C = class_weights_of(run, scorer, fold.index)
            own = [a for a in annotations if fold_of[a.footage] == fold.index]
            work = [(a, _unit(run, published, scorer, a, weights_C)) for a in own]
            work = [(a, unit) for a, unit in work if unit not in done]
            reduction = _Reduction(
                store=store,
                scores=run.scores,
                scorer=scorer,
                weights_C=weights_C,
                class_weights_C=np.array(run.checkpoints(scorer, fold.index)[0].class_weights),
                config=run.config.reduce,
            )
            for start in range(0, len(work), VIDEOS_PER_TASK):
                jobs.append((reduction, work[start : start + VIDEOS_PER_TASK]))
    total = len(annotations) * len(run.config.scorers)
    if not jobs:
        stage.say(f"scores: all {total} videos are reduced")
        return
    run.scores.retire(unit for _, work in jobs for _, unit in work)
    connect(verbose=stage.verbose)
    num_pending = sum(len(work) for _, work in jobs)
    title = "reduce: videos"
    with progress_bar(stage.console, title, total=total, done=total - num_pending) as bar:
        futures = {_reduce_videos.remote(*job): len(job[-1]) for job in jobs}
        while futures:
            ready, _ = ray.wait(list(futures))
            get_all(ready)
            bar.advance(sum(futures.pop(future) for future in ready))


def _unit(
    run: Run,
    published: Mapping[str, str],
    scorer: str,
    annotation: Annotation,
    weights_C: FloatArray,
) -> Unit:
    parts = fingerprint(
        published[key_part(annotation.video)],
        array_fingerprint(annotation.labels_T),
        weights_C.tolist(),
        run.config.reduce,
        list(BASES),
        SCORES_FORM,
    )
    return ScoreStore.unit(annotation.video, scorer, parts)


@ray.remote
def _reduce_videos(reduction: _Reduction, work: list[tuple[Annotation, Unit]]) -> None:
    for annotation, unit in work:
        reduction.reduce_video(annotation, unit)
