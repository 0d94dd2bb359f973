"""The configs that carry the paper's protocol, on folders of the right shape with tiny videos."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builder import grey_pictures, write_video

from csl_dist.config import (
    AuditConfig,
    FeaturesConfig,
    FlagConfig,
    RunConfig,
    ScoreConfig,
    TrainConfig,
    config_as_dict,
    load_config,
)
from csl_dist.data.check import all_problems, look_at_videos
from csl_dist.data.layouts import open_dataset
from csl_dist.data.layouts.cholec80 import PHASES
from csl_dist.data.planted import chosen_kinds
from csl_dist.run import open_run
from csl_dist.training.inputs import open_inputs
from csl_dist.training.train import learning_rate
from csl_dist.types import ErrorKind, Media, Split

CONFIGS = Path(__file__).parents[1] / "configs"
SECONDS, FPS = 14, 25


def write_clip(path: Path) -> None:
    write_video(path, grey_pictures(n % 256 for n in range(SECONDS * FPS)), fps=FPS)


@pytest.fixture(scope="module")
def cholec80(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("cholec80")
    write_clip(root / "clip.mp4")
    rows = [f"{i}\t{PHASES[i // FPS * 7 // SECONDS]}" for i in range(SECONDS * FPS)]
    for folder in ("phase_annotations", "videos"):
        (root / folder).mkdir()
    for n in range(1, 81):
        (root / f"phase_annotations/video{n:02d}-phase.txt").write_text(
            "\n".join(["Frame\tPhase", *rows, ""])
        )
        shutil.copy(root / "clip.mp4", root / f"videos/video{n:02d}.mp4")
    return root


@pytest.fixture(scope="module")
def egoper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("egoper")
    videos = [f"coffee_u{n}_a1" for n in range(1, 6)]
    segments = [
        {
            "video_id": video,
            "labels": {
                "time_stamp": [[0.0, 6.0], [6.0, float(SECONDS)]],
                "action": [1, 2],
                "action_type": [0, 2 if video == videos[-1] else 0],
                "error_description": ["", ""],
            },
        }
        for video in videos
    ]
    task = {
        "segments": segments,
        "action2idx": {"background": 0, "pour water": 1, "stir": 2},
        "actiontype2idx": {"Normal": 0, "Error_Slip": 2},
    }
    (root / "annotation.json").write_text(json.dumps({"coffee": task}))
    splits = {"training": videos[:3], "validation": videos[3:4], "test": videos[4:]}
    for name, ids in splits.items():
        path = root / f"coffee/{name}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(ids) + "\n")
    for video in videos:
        write_clip(root / f"coffee/trim_videos/{video}.mp4")
    return root


def problems(config: RunConfig) -> list[str]:
    dataset = open_dataset(config.dataset)
    return all_problems(dataset, list(look_at_videos(dataset, config.dataset)), config)


def test_cholec80_follows_the_papers_protocol(cholec80: Path, tmp_path: Path) -> None:
    # Spans of 10 to 100 seconds do not fit a video of 14.
    options = [f"dataset.path={cholec80}", f"root={tmp_path}", "corrupt.lengths=[15, 45]"]
    config = load_config(CONFIGS / "cholec80.yaml", options)
    assert problems(config) == []
    run = open_run(config)
    assert {video.media for video in run.dataset.videos} == {Media.VIDEO}
    counts = [len(run.dataset.in_split(split)) for split in Split]
    assert counts == [50, 10, 20]
    assert (config.dataset.fps, config.features.size) == (15, 224)
    audit = run.dataset.audited_ids()
    kinds = list(chosen_kinds(audit, config.corrupt.audit, seed=config.corrupt.seed).values())
    assert (kinds.count(ErrorKind.MISLABEL), kinds.count(ErrorKind.DISORDER)) == (10, 10)


def test_egoper_follows_the_papers_protocol(egoper: Path, tmp_path: Path) -> None:
    options = [f"dataset.path={egoper}", f"root={tmp_path}"]
    config = load_config(CONFIGS / "egoper.yaml", options)
    found = problems(config)
    assert found == ["class 'background' never occurs in training; no checkpoint can know it"]
    run = open_run(config)
    assert [len(run.dataset.in_split(split)) for split in Split] == [3, 1, 1]
    assert config.dataset.fps == 10
    random = replace(config, features=replace(config.features, weights="random"))
    assert open_inputs(random).labels.has_known_errors()


PAPER = {
    # 4.1: 15 fps, 224 x 224. EgoPER's own rate of frames, of which the paper says nothing.
    "dataset.fps": {"cholec80": 15, "egoper": 10},
    "features.size": 224,
    # 3.1: ResNet-18 pretrained on ImageNet; A.2: the final two layers are trainable.
    "features.weights": "imagenet",
    "features.adapt.trainable_stages": 2,
    # 4.4: a ViT-B/16 Transformer, 200 epochs of AdamW at 1e-4, class-weighted cross-entropy.
    "scorers.transformer.arguments": {"preset": "vit_b"},
    "train.epochs": 200,
    "train.steps": None,
    "train.learning_rate": 1e-4,
    "train.schedule": "constant",
    "train.warmup_epochs": 0.0,
    "train.weighted": True,
    # 3.3: the mean over all checkpoints of the class-weighted loss.
    "predict.checkpoints": "full",
    "score.checkpoints": "full",
    "score.weighted": True,
    # 3.4 and 4.4: smoothed CSL of the Transformer, ranked, a fixed percentile flagged.
    "flag.scorer": "transformer",
    "flag.score": "csl_smoothed",
    "flag.rule": "top",
    # Nothing beyond the paper is predicted.
    "audit.swapped_copies": 0,
    "checkpoints.keep": "all",
}
"""Every value that the paper states, by the config's key."""


@pytest.mark.parametrize("name", ["cholec80", "egoper"])
@pytest.mark.parametrize("key", PAPER)
def test_value_is_the_papers(name: str, key: str) -> None:
    value: Any = config_as_dict(load_config(CONFIGS / f"{name}.yaml"))
    for part in key.split("."):
        value = value[part]
    expected = PAPER[key]
    assert value == (expected[name] if key == "dataset.fps" else expected)  # type: ignore[index]


@pytest.mark.parametrize("name", ["cholec80", "egoper"])
def test_paper_configs_have_its_two_models_and_whole_videos(name: str) -> None:
    config = load_config(CONFIGS / f"{name}.yaml")
    assert list(config.scorers) == ["transformer", "cnn"]
    assert config.scorers["transformer"].max_frames is None, "whole videos, if memory allows"
    seconds = config.score.window / (config.dataset.fps or 1)
    assert 4.9 < seconds < 5.2, "a small window, as the paper has it"
    assert {learning_rate(config.train, e) for e in (0.0, 100.0, 199.9)} == {1e-4}


def test_recommended_config_has_our_defaults() -> None:
    config = load_config(CONFIGS / "recommended.yaml")
    assert config.features == FeaturesConfig(), "the encoder stays as it is"
    assert config.train == TrainConfig(epochs=30, learning_rate=1e-3)
    assert (config.score, config.flag, config.audit) == (
        ScoreConfig(),
        FlagConfig(),
        AuditConfig(),
    )
    assert list(config.scorers) == ["transformer", "framewise", "mstcn"]
