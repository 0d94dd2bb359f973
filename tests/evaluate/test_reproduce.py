"""Which runs the protocol takes, without any of them."""

from pathlib import Path

import pytest

from csl_dist.config import FeaturesConfig, ManifestConfig, RunConfig
from csl_dist.evaluate.reproduce import (
    frozen_variant,
    main_variant,
    noise_variant,
    with_planted_errors,
)
from csl_dist.types import ErrorKind


@pytest.fixture
def config(tmp_path: Path) -> RunConfig:
    return RunConfig(root=str(tmp_path / "run"), dataset=ManifestConfig(path="data"))


def test_seeds_have_their_own_roots_and_share_features(config: RunConfig) -> None:
    first, second = main_variant(config, 0), main_variant(config, 1)
    assert first.config == config, "what a plain run has made is used"
    assert second.config.root == f"{config.root}/reproduce/seed-1"
    assert second.config.features.store == f"{config.root}/features.zarr"
    assert (second.config.train.seed, second.config.corrupt.seed) == (1, 1)


def test_noise_is_planted_in_training_for_the_temporal_scorer_alone(config: RunConfig) -> None:
    noisy = noise_variant(main_variant(config, 1), ErrorKind.DISORDER, 20, "transformer").config
    assert noisy.corrupt.train == {"disorder": 0.2}
    assert list(noisy.scorers) == ["transformer"]
    assert noisy.root.endswith("seed-1/reproduce/noise-disorder-20")
    assert noisy.features.store == f"{config.root}/features.zarr"


def test_frozen_variant_adapts_nothing(config: RunConfig) -> None:
    main = main_variant(config, 0)
    assert frozen_variant(main, "transformer").config.features.adapt is None
    assert isinstance(main.config.features, FeaturesConfig)


def test_errors_are_planted_only_where_none_are_known(config: RunConfig) -> None:
    assert with_planted_errors(config, has_known_errors=True) == config
    planted = with_planted_errors(config, has_known_errors=False)
    assert planted.corrupt.audit == {"mislabel": 0.5, "disorder": 0.5}
