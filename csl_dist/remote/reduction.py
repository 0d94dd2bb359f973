"""Reduction on Ray: the scores of every held-out video, in parallel over videos."""

from typing import Any

import numpy as np
import ray

from csl_dist.checkpoints import require_checkpoints
from csl_dist.ledger import Unit
from csl_dist.records import Annotation, FloatArray, array_fingerprint, fingerprint
from csl_dist.reduce import video_scores
from csl_dist.remote.progress import progress_bar
from csl_dist.remote.scoring import get_all
from csl_dist.remote.session import connect
from csl_dist.remote.stage import Stage
from csl_dist.run import SCORED_SPLITS
from csl_dist.scores import ScoreStore
from csl_dist.trajectories import TrajectoryStore

VIDEOS_PER_TASK = 16


def reduce(stage: Stage) -> None:
    """Computes CSL and its companions under the run's labels."""
    run = stage.run
    annotations = run.annotations(run.dataset.in_split(*SCORED_SPLITS))
    done = run.scores.done()
    jobs: list[tuple[TrajectoryStore, str, FloatArray, list[tuple[Annotation, Unit]]]] = []
    for scorer in run.config.scorers:
        weights_C = scorer_weights(stage, scorer)
        store = run.trajectories(scorer)
        work = [(a, _unit(stage, store, scorer, a, weights_C)) for a in annotations]
        work = [(a, unit) for a, unit in work if unit not in done]
        for start in range(0, len(work), VIDEOS_PER_TASK):
            jobs.append((store, scorer, weights_C, work[start : start + VIDEOS_PER_TASK]))
    total = len(annotations) * len(run.config.scorers)
    if not jobs:
        stage.say(f"scores: all {total} videos are reduced")
        return
    run.scores.retire(unit for *_, work in jobs for _, unit in work)
    connect(verbose=stage.verbose)
    num_pending = sum(len(work) for *_, work in jobs)
    title = "reduce: videos"
    with progress_bar(stage.console, title, total=total, done=total - num_pending) as bar:
        futures = {
            _reduce_videos.remote(*job, run.scores, run.config.reduce.window): len(job[-1])
            for job in jobs
        }
        while futures:
            ready, _ = ray.wait(list(futures))
            get_all(ready)
            bar.advance(sum(futures.pop(future) for future in ready))


def scorer_weights(stage: Stage, scorer: str) -> FloatArray:
    """Loss weights (C,) of a scorer's classes, as its training used them."""
    checkpoints = stage.run.checkpoints(scorer).infos()
    require_checkpoints(checkpoints, scorer)
    weights_C = np.array(checkpoints[0].class_weights)
    return weights_C if stage.run.config.reduce.weighted else np.ones_like(weights_C)


def _unit(
    stage: Stage, store: TrajectoryStore, scorer: str, annotation: Annotation, weights: Any
) -> Unit:
    parts = fingerprint(
        store.trajectory(annotation.video).fingerprint,
        array_fingerprint(annotation.labels_T),
        weights.tolist(),
        stage.run.config.reduce,
    )
    return ScoreStore.unit(annotation.video, scorer, parts)


@ray.remote
def _reduce_videos(
    store: TrajectoryStore,
    scorer: str,
    weights_C: FloatArray,
    work: list[tuple[Annotation, Unit]],
    scores: ScoreStore,
    window: int,
) -> None:
    for annotation, unit in work:
        trajectory = store.trajectory(annotation.video)
        by_name = video_scores(trajectory.read, annotation.labels_T, weights_C, window=window)
        scores.write(annotation.video, scorer, unit, by_name)
