"""Which runs the protocol takes, without any of them."""

from dataclasses import replace
from pathlib import Path

import made_run
import pytest

from csl_dist.audit.revision import AuditStore
from csl_dist.config import AdaptConfig, FeaturesConfig, ManifestConfig, RunConfig
from csl_dist.evaluate.reproduce import (
    COMPARED,
    OTHER_KINDS,
    dataset_statistics,
    main_variant,
    noise_variant,
    other_encoder,
    other_noise,
    sampling_aucs,
    with_planted_errors,
)
from csl_dist.evaluate.stage import make_metrics
from csl_dist.training.inputs import Inputs, open_inputs
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


def test_other_encoder_is_the_frozen_one_of_a_run_that_adapts(config: RunConfig) -> None:
    adapting = replace(config, features=FeaturesConfig(adapt=AdaptConfig()))
    frozen = other_encoder(main_variant(adapting, 0), "transformer")
    assert frozen.name == "frozen"
    assert frozen.config.features.adapt is None
    assert list(frozen.config.scorers) == ["transformer"]


def test_other_encoder_is_adapted_and_audited_itself_where_the_run_adapts_none(
    config: RunConfig,
) -> None:
    adapted = other_encoder(main_variant(config, 0), "transformer")
    assert adapted.name == "adapted"
    assert adapted.config.features.adapt is not None
    assert list(adapted.config.scorers) == ["transformer", "cnn"]
    assert adapted.config.root.endswith("reproduce/adapted")


@pytest.fixture(scope="module")
def inputs(made_folder: Path) -> Inputs:
    return open_inputs(made_run.config_of(made_folder))


def test_last_epoch_of_the_sampling_table_is_the_final_loss(
    inputs: Inputs, made_folder: Path
) -> None:
    audit = AuditStore(inputs.run.paths)
    metrics = make_metrics(inputs, audit, 1)["scorers"]["transformer"]
    sampling = sampling_aucs(inputs, "transformer")
    for smoothing in ("", "_smoothed"):
        own = sampling["mislabel"][smoothing]
        assert own["last"] == pytest.approx(
            metrics["mislabel"][f"final{smoothing}"]["auc_micro"][0], abs=1e-6
        )
        assert own["full"] == pytest.approx(
            metrics["mislabel"][f"csl{smoothing}"]["auc_micro"][0], abs=1e-6
        )


def test_other_noise_is_planted_in_videos_without_errors_and_found(inputs: Inputs) -> None:
    found = other_noise(inputs, "transformer")
    assert list(found) == list(OTHER_KINDS)
    for kind, by_name in found.items():
        assert list(by_name) == list(COMPARED)
        # v2 has a known error; v1 and v3 have none.
        assert by_name["csl"]["videos"] == 2
        if kind != ErrorKind.REORDER:  # of three steps, no frame is left that is right
            assert by_name["csl_smoothed"]["auc_micro"] > 0.9


def test_statistics_are_those_of_the_dataset(inputs: Inputs) -> None:
    facts = dataset_statistics(inputs)
    assert [facts[split] for split in ("train", "validation", "audit")] == [1, 1, 2]
    assert facts["classes"] == 3
    assert facts["held-out minutes"] == pytest.approx(0.5)


def test_errors_are_planted_only_where_none_are_known(config: RunConfig) -> None:
    assert with_planted_errors(config, has_known_errors=True) == config
    planted = with_planted_errors(config, has_known_errors=False)
    assert planted.corrupt.audit == {"mislabel": 0.5, "disorder": 0.5}
