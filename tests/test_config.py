from pathlib import Path

import pytest

from csl_dist.config_file import parse_config
from csl_dist.errors import ConfigError

MINIMAL = {"root": "/r", "dataset": {"path": "/d"}}


def test_config_with_two_keys_has_the_papers_defaults() -> None:
    config = parse_config(MINIMAL, where="c.yaml")
    assert (config.train.epochs, config.train.learning_rate) == (200, 1e-4)
    assert list(config.scorers) == ["transformer", "framewise"]


def test_demo_config_in_the_package_is_the_one_in_configs() -> None:
    repository = Path(__file__).parents[1]
    packaged = (repository / "csl_dist/demo.yaml").read_text()
    assert packaged == (repository / "configs/demo.yaml").read_text()


@pytest.mark.parametrize("value", ["every_3rd", [], [0], 5])
def test_unknown_checkpoint_strategy_is_one_sentence(value: object) -> None:
    data = {**MINIMAL, "reduce": {"checkpoints": value}}
    with pytest.raises(ConfigError) as caught:
        parse_config(data, where="c.yaml")
    assert str(caught.value) == (
        f"c.yaml: reduce.checkpoints: {value!r} is neither one of full, every_2nd, every_5th, "
        "every_10th, hybrid, last nor a list of epochs"
    )


def test_score_that_there_is_not_gets_the_nearest_name() -> None:
    data = {**MINIMAL, "flag": {"score": "margin_smooth"}}
    with pytest.raises(ConfigError, match="did you mean 'margin_smoothed'"):
        parse_config(data, where="c.yaml")


def test_ensemble_may_decide_but_can_not_be_trained() -> None:
    assert parse_config({**MINIMAL, "flag": {"scorer": "ensemble"}}, where="c").flag.scorer
    with pytest.raises(ConfigError, match="name of all of them together"):
        parse_config({**MINIMAL, "scorers": {"ensemble": {"model": "framewise"}}}, where="c")
