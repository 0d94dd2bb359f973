from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from builder import MadeVideo, write_manifest

from csl_dist.config import ManifestConfig, parse_config
from csl_dist.cost.recipes import Machine, RecipeName, chosen_settings, recipe_text
from csl_dist.data.facts import DatasetFacts, dataset_facts
from csl_dist.data.layouts import read_dataset

LAPTOP = Machine(cores=2, memory_gb=16, gpus=0)
GPU = Machine(cores=16, memory_gb=64, gpus=1)
COOKING = DatasetFacts(
    seconds={f"v{n}": 300.0 for n in range(80)},
    step_seconds_S=np.array([2.0, 4.0, 10.0, 30.0, 60.0]),
    classes={},
    num_classes=12,
    num_groups=20,
    has_pixels=True,
    source_fps=30.0,
)


def values(name: RecipeName, facts: DatasetFacts = COOKING, machine: Machine = LAPTOP) -> dict:
    """The choices as a config file has them."""
    made = chosen_settings(name, facts, machine)
    return {s: {key: choice.value for key, choice in own.items()} for s, own in made.items()}


@pytest.mark.parametrize("name", RecipeName)
def test_recipe_is_a_valid_config_with_a_reason_for_every_setting(name: RecipeName) -> None:
    sections = chosen_settings(name, COOKING, LAPTOP)
    text = recipe_text(sections)
    dataset = {key: choice.value for key, choice in sections["dataset"].items()}
    data = {"root": "r", "dataset": {"path": "p"} | dataset, **yaml.safe_load(text)}
    config = parse_config(data, where="the recipe")
    assert config.train.epochs == values(name)["train"]["epochs"]
    settings = [line for line in text.splitlines() if line.startswith("  ")]
    assert all("  # " in line for line in settings)


def test_quick_is_less_than_standard_and_standard_less_than_paper() -> None:
    quick, standard, paper = (values(name) for name in RecipeName)
    assert quick["train"]["epochs"] < standard["train"]["epochs"] < paper["train"]["epochs"]
    assert quick["scorers"].keys() < standard["scorers"].keys()
    assert quick["dataset"]["fps"] <= standard["dataset"]["fps"] <= paper["dataset"]["fps"]
    assert paper["train"]["weighted"]
    assert not standard["train"]["weighted"]


def test_machine_with_a_gpu_gets_a_larger_model() -> None:
    sizes = [
        values(RecipeName.STANDARD, machine=machine)["scorers"]["transformer"]["arguments"][
            "preset"
        ]
        for machine in (LAPTOP, GPU)
    ]
    assert sizes == ["tiny", "small"]


@pytest.mark.parametrize(("seconds", "fps"), [(0.2, 15), (1.0, 10), (4.0, 3), (60.0, 1)])
def test_short_steps_are_sampled_more_often(seconds: float, fps: float) -> None:
    facts = replace(COOKING, step_seconds_S=np.full(9, seconds))
    assert values(RecipeName.STANDARD, facts)["dataset"]["fps"] == fps


def test_frames_are_not_sampled_more_often_than_there_are() -> None:
    facts = replace(COOKING, source_fps=2.0)
    for name in RecipeName:
        assert "fps" not in values(name, facts)["dataset"]


def test_few_videos_get_epochs_of_several_passes() -> None:
    few = replace(COOKING, seconds={"a": 60.0, "b": 60.0, "c": 60.0}, num_groups=3)
    assert values(RecipeName.STANDARD, few)["train"]["steps"] == 32
    assert values(RecipeName.STANDARD, few)["dataset"]["folds"] == 3
    assert "steps" not in values(RecipeName.STANDARD)["train"]


def test_facts_come_from_labels(tmp_path: Path) -> None:
    features = np.zeros((50, 3), dtype=np.float32)
    videos = [
        MadeVideo(id=f"v{n}", split="audit", names_T=names, features_TD=features, group=f"p{n % 2}")
        for n, names in enumerate([["a"] * 20 + ["b"] * 30, ["-"] * 10 + ["a"] * 40, ["b"] * 50])
    ]
    write_manifest(tmp_path, videos, fps=5)
    facts = dataset_facts(read_dataset(ManifestConfig(path=str(tmp_path))))
    assert facts.seconds == {"v0": 10.0, "v1": 10.0, "v2": 10.0}
    assert sorted(facts.step_seconds_S.tolist()) == [4.0, 6.0, 8.0, 10.0]
    assert (facts.num_groups, facts.num_classes, facts.source_fps) == (2, 2, 5.0)
    assert not facts.has_pixels
