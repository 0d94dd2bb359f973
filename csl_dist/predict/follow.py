"""Following: prediction that takes each checkpoint as training publishes it.

Rounds of prediction take what is there on what is free of the cluster, and then leave it again:
actors that stayed would keep a training from restarting after it lost a worker.
"""

import time
from collections.abc import Callable

from csl_dist.cluster.background import Background
from csl_dist.cluster.session import connect
from csl_dist.cluster.stage import Stage
from csl_dist.predict.plan import drop_used_weights, plan_scorers
from csl_dist.predict.stage import prediction_pool, row_prediction
from csl_dist.training.inputs import Inputs
from csl_dist.training.scorers import num_epochs
from csl_dist.training.stage import (
    TITLE,
    fit_trainings,
    planned_trainings,
    tell_kept,
    unfinished,
)

LOOK_SECONDS = 2.0
"""Between two looks for new checkpoints."""


def train_and_follow(stage: Stage) -> None:
    """Trains, and predicts beside it; nothing is published yet."""
    trainings = planned_trainings(stage.inputs)
    tell_kept(stage, trainings)
    if not unfinished(trainings):
        fit_trainings(stage, trainings, title=TITLE)  # says that all is trained
        return
    # Here, because two threads would connect twice, and before predicting actors take all GPUs.
    _ = connect(verbose=stage.verbose).has_cuda
    training = Background(lambda: fit_trainings(stage, trainings, title=TITLE))

    def goes_on() -> bool:
        training.join(LOOK_SECONDS)
        if training.is_alive():
            return True
        training.wait()  # raises what it ended with
        return False

    _follow(stage, goes_on)


def follow_training(stage: Stage) -> None:
    """Predicts with what a training elsewhere publishes, until it has all its epochs."""

    def goes_on() -> bool:
        time.sleep(LOOK_SECONDS)
        return _lacks_epochs(stage.inputs)

    if _lacks_epochs(stage.inputs):
        _follow(stage, goes_on)


def _follow(stage: Stage, goes_on: Callable[[], bool]) -> None:
    """Predicts with what there is, again and again; `goes_on` waits before it answers.

    The last round is that of the finished training, so that no unit is left for another pass. A
    pool starts actors for units that are there; while there are none, nobody claims a GPU. Where
    prediction may stop early, only the first sweep's checkpoints are taken, and sweeps do the rest.
    """
    inputs, is_going = stage.inputs, True
    config = inputs.run.config.predict
    sweep = 0 if config.stop == "settled" else None
    plans = plan_scorers(inputs, so_far=True, sweep=sweep)
    with row_prediction(stage, plans) as rows:
        while is_going:
            is_going = goes_on()
            if config.in_sweeps and not is_going:
                break
            plans = plan_scorers(inputs, so_far=is_going, sweep=sweep)
            with prediction_pool(stage) as pool:
                rows.predict(plans, pool)
            drop_used_weights(inputs, plans)


def _lacks_epochs(inputs: Inputs) -> bool:
    """Whether any checkpoint that is to be trained is not there."""
    config = inputs.run.config
    trained = [(scorer, num_epochs(config, scorer)) for scorer in config.scorers]
    return any(
        not set(range(1, epochs + 1))
        <= set(inputs.checkpoints.store(scorer, fold.index).published_epochs())
        for scorer, epochs in trained
        if epochs is not None
        for fold in inputs.run.dataset.folds
    )
