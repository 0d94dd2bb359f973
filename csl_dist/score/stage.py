"""Scores of every held-out video under the run's labels, on Ray, in parallel over videos."""

import ray

from csl_dist.cluster.progress import progress_bar
from csl_dist.cluster.session import connect, get_all
from csl_dist.cluster.stage import Stage
from csl_dist.predict.trajectories import TrajectoryStore
from csl_dist.score.store import ScoreStore, Versions
from csl_dist.score.task import Scoring, Work, score_videos
from csl_dist.storage.url import key_part
from csl_dist.training.inputs import Inputs

VIDEOS_PER_TASK = 16

Plan = tuple[Scoring, TrajectoryStore, Work]
"""Videos of one scorer and fold, and what they are scored from."""


def score(stage: Stage) -> Versions:
    """Computes CSL and its companions under the run's labels; says which version each video has."""
    store = ScoreStore(stage.run.paths.scores)
    done, plans = store.done(), _plans(stage.inputs)
    jobs: list[Plan] = []
    for scoring, trajectories, work in plans:
        left = [(a, m) for a, m in work if store.unit(a.video, scoring.scorer, m) not in done]
        for start in range(0, len(left), VIDEOS_PER_TASK):
            jobs.append((scoring, trajectories, left[start : start + VIDEOS_PER_TASK]))
    _run(stage, jobs, total=sum(len(work) for *_, work in plans))
    return _versions(plans)


def score_versions(inputs: Inputs, *, unpredicted: bool = False) -> Versions:
    """Which version of its scores each video should have, whether it is there or not.

    `unpredicted`: as if no trajectory were there, which tells labels and settings alone.
    """
    return _versions(_plans(inputs, unpredicted=unpredicted))


def _versions(plans: list[Plan]) -> Versions:
    versions: Versions = {}
    for scoring, _, work in plans:
        versions.setdefault(scoring.scorer, {}).update({a.video: made for a, made in work})
    return versions


def _plans(inputs: Inputs, *, unpredicted: bool = False) -> list[Plan]:
    """All videos of every scorer and fold, with the version of the scores that each is to have."""
    run = inputs.run
    annotations = inputs.labels.held_out()
    fold_of = run.dataset.folds_by_video()
    plans = []
    for scorer in run.config.scorers:
        trajectories = TrajectoryStore(run.paths.scorer(scorer))
        published = {} if unpredicted else trajectories.published_fingerprints()
        for fold in run.dataset.folds:
            scoring = Scoring(
                store=ScoreStore(run.paths.scores),
                scorer=scorer,
                class_weights_C=inputs.checkpoints.class_weights(scorer, fold.index),
                config=run.config.score,
            )
            own = [a for a in annotations if fold_of[a.original] == fold.index]
            work = [(a, scoring.version(a, published.get(key_part(a.video), ""))) for a in own]
            plans.append((scoring, trajectories, work))
    return plans


def _run(stage: Stage, jobs: list[Plan], *, total: int) -> None:
    if not jobs:
        stage.say(f"scores: all {total} videos are scored")
        return
    connect(verbose=stage.verbose)
    num_pending = sum(len(work) for *_, work in jobs)
    title = "score: videos"
    with progress_bar(stage.console, title, total=total, done=total - num_pending) as bar:
        task = ray.remote(score_videos)
        futures = {task.remote(*job): len(job[-1]) for job in jobs}
        while futures:
            ready, _ = ray.wait(list(futures))
            get_all(ready)
            bar.advance(sum(futures.pop(future) for future in ready))
