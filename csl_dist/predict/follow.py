"""Following: scoring that takes each checkpoint as training publishes it.

Rounds of scoring take what is there on what is free of the cluster, and then leave it again: actors
that stayed would keep a training from restarting after it lost a worker.
"""

import time
from collections.abc import Callable

from csl_dist.cluster.background import Background
from csl_dist.cluster.session import connect
from csl_dist.cluster.stage import Stage
from csl_dist.predict.plan import drop_scored_weights, plan_scorers, scored_annotations
from csl_dist.predict.stage import score, scoring_pool, scoring_rows
from csl_dist.run import Run
from csl_dist.training.stage import TITLE, fit_trainings, planned_trainings, unfinished

LOOK_SECONDS = 2.0
"""Between two looks for new checkpoints."""


def train_and_score(stage: Stage) -> None:
    """Trains, and scores beside it."""
    trainings = planned_trainings(stage.run)
    if not unfinished(trainings):
        fit_trainings(stage, trainings, title=TITLE)  # says that all is trained
        score(stage)
        return
    connect(verbose=stage.verbose)  # here, because two threads would do it twice
    training = Background(lambda: fit_trainings(stage, trainings, title=TITLE))

    def goes_on() -> bool:
        training.join(LOOK_SECONDS)
        return training.is_alive()

    _follow(stage, goes_on)
    training.wait()
    score(stage)


def score_and_follow(stage: Stage) -> None:
    """Scores what a training elsewhere publishes, until it has all its epochs."""

    def goes_on() -> bool:
        time.sleep(LOOK_SECONDS)
        return _lacks_epochs(stage.run)

    if _lacks_epochs(stage.run):
        _follow(stage, goes_on)
    score(stage)


def _follow(stage: Stage, goes_on: Callable[[], bool]) -> None:
    """Scores what there is, again and again; `goes_on` waits before it answers."""
    run = stage.run
    annotations = scored_annotations(run)
    plans = plan_scorers(run, annotations, so_far=True)
    with scoring_rows(stage, plans) as rows:
        while goes_on():
            plans = plan_scorers(run, annotations, so_far=True)
            with scoring_pool(stage, annotations) as pool:
                rows.score(plans, pool)
            drop_scored_weights(run, plans)


def _lacks_epochs(run: Run) -> bool:
    """Whether any checkpoint that is to be trained is not there."""
    trained = [(scorer, run.num_epochs(scorer)) for scorer in run.config.scorers]
    return any(
        not set(range(1, num_epochs + 1))
        <= set(run.checkpoint_store(scorer, fold.index).published_epochs())
        for scorer, num_epochs in trained
        if num_epochs is not None
        for fold in run.dataset.folds
    )
