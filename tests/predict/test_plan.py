"""Which checkpoints an audit takes: those of the config's own training, all of them."""

from dataclasses import replace
from pathlib import Path

import made_run
import pytest

from csl_dist.config import RunConfig, ScorerConfig, TrainConfig
from csl_dist.errors import CheckpointError, CslError, NotReadyError
from csl_dist.predict.plan import plan_scorers
from csl_dist.training.inputs import open_inputs
from csl_dist.training.scorers import train_config
from csl_dist.training.train import settings_fingerprint

NUM_TRAINED = 6
"""Checkpoints that the made run has."""


@pytest.fixture
def trained(made_root: str, made_folder: Path) -> RunConfig:
    """The config by which the made run's checkpoints were trained."""
    config = replace(
        made_run.config_of(made_folder), root=made_root, train=TrainConfig(epochs=NUM_TRAINED)
    )
    inputs = open_inputs(config)
    for scorer in config.scorers:
        settings = settings_fingerprint(
            inputs.model_spec(scorer), train_config(config, scorer), inputs.run.dataset.classes
        )
        training = inputs.checkpoints.current(scorer, 0)
        assert training is not None
        inputs.checkpoints.use(scorer, 0, training.training, settings=settings)
    return config


def test_checkpoints_of_the_same_settings_are_taken(trained: RunConfig) -> None:
    plans = plan_scorers(open_inputs(trained))
    assert [plan.epochs_of(0) for plan in plans] == [set(range(1, NUM_TRAINED + 1))] * 2


@pytest.mark.parametrize(
    ("changes", "kind", "words"),
    [
        ({"train": TrainConfig(epochs=6, learning_rate=0.5)}, CheckpointError, "other settings"),
        ({"train": TrainConfig(epochs=6, seed=8)}, CheckpointError, "other settings"),
        (
            {"scorers": {"transformer": ScorerConfig(arguments={"preset": "small"})}},
            CheckpointError,
            "other settings",
        ),
        (
            {"train": TrainConfig(epochs=50)},
            NotReadyError,
            "has 6 of 50 epochs; run `csl train` .* or set train.epochs=6",
        ),
    ],
)
def test_checkpoints_of_another_config_are_refused(
    trained: RunConfig, changes: dict[str, object], kind: type[CslError], words: str
) -> None:
    with pytest.raises(kind, match=words):
        plan_scorers(open_inputs(replace(trained, **changes)))  # type: ignore[arg-type]


def test_fewer_epochs_than_were_trained_are_taken(trained: RunConfig) -> None:
    fewer = replace(trained, train=TrainConfig(epochs=4))
    assert plan_scorers(open_inputs(fewer))[0].epochs_of(0) == {1, 2, 3, 4}


def test_sweeps_take_coarse_checkpoints_first_also_while_training_goes_on(
    trained: RunConfig,
) -> None:
    inputs = open_inputs(trained)
    for sweep, epochs in enumerate([{6}, {5, 6}, {2, 4, 5, 6}, set(range(1, 7))]):
        assert plan_scorers(inputs, sweep=sweep)[0].epochs_of(0) == epochs
    longer = replace(trained, train=TrainConfig(epochs=20))
    so_far = plan_scorers(open_inputs(longer), so_far=True, sweep=1)[0]
    assert so_far.epochs_of(0) == {5}, "of 5, 10, 15 and 20"
    assert so_far.num_expected == 4 * len(so_far.units)
