"""A dataset that grows: one more video costs one video, and nothing else moves."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from builder import MadeVideo, write_manifest
from rich.console import Console

from csl_dist import pipeline
from csl_dist.config import CheckpointsConfig, RunConfig, TrainConfig, WhenGrown, parse_config
from csl_dist.data.layouts import open_dataset
from csl_dist.predict.plan import plan_scorers
from csl_dist.training.inputs import open_inputs

pytestmark = [
    pytest.mark.usefixtures("ray_session"),
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("ray"),
]

NUM_VIDEOS, NUM_FOLDS, NUM_EPOCHS = 40, 4, 2
SCORERS = ("transformer", "framewise")


def made_video(number: int, split: str = "audit") -> MadeVideo:
    """Three steps whose features tell them apart; lengths differ from video to video."""
    rng = np.random.default_rng(number)
    lengths = rng.integers(8, 14, size=3)
    labels_T = np.repeat([0, 1, 2], lengths)
    features_TD = np.eye(3)[labels_T] + rng.normal(0, 0.3, size=(len(labels_T), 3))
    names_T = [("reach", "grasp", "lift")[label] for label in labels_T]
    return MadeVideo(
        id=f"v{number:02d}", split=split, names_T=names_T, features_TD=features_TD.astype("float32")
    )


def write_videos(folder: Path, numbers: range, *, fixed_split: bool = False) -> None:
    def split(number: int) -> str:
        if not fixed_split:
            return "audit"
        return "train" if number < 10 else "val" if number < 14 else "audit"

    videos = [made_video(number, split(number)) for number in numbers]
    write_manifest(folder, videos, fps=2, classes=("reach", "grasp", "lift"))


def config_of(folder: Path, *, folds: int | None = NUM_FOLDS) -> RunConfig:
    data = {
        "root": str(folder / "run"),
        "dataset": {"path": str(folder / "data"), "folds": folds},
        "scorers": {"transformer": {"arguments": {"preset": "tiny"}}, "framewise": {}},
        "train": {"epochs": NUM_EPOCHS, "learning_rate": 1e-3, "batch_frames": 256},
        "flag": {"min_frames": 2},
    }
    return parse_config(data, where="the test")


def run(config: RunConfig) -> None:
    with pipeline.open_stage(config, "test", console=Console(quiet=True)) as stage:
        pipeline.run(stage)


def contents(root: Path, pattern: str) -> dict[str, bytes]:
    """Files of trajectories, or of checkpoints, of all scorers."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for scorer in SCORERS
        for path in (root / scorer).rglob(pattern)
        if path.is_file()
    }


def trajectories(root: Path) -> dict[str, bytes]:
    return {key: data for key, data in contents(root, "*").items() if "trajectories.zarr" in key}


def checkpoints(root: Path) -> dict[str, bytes]:
    return contents(root, "epoch-*/*")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, ray_session: None) -> Path:
    """A finished run with folds; tests copy it."""
    folder = tmp_path_factory.mktemp("finished")
    write_videos(folder / "data", range(NUM_VIDEOS))
    run(config_of(folder))
    return folder


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Path:
    shutil.copytree(finished, tmp_path / "copy")
    return tmp_path / "copy"


def test_new_video_changes_no_fold_of_another(tmp_path: Path) -> None:
    folds = {}
    for count in (NUM_VIDEOS, NUM_VIDEOS + 10):
        write_videos(tmp_path / "data", range(count))
        folds[count] = open_dataset(config_of(tmp_path).dataset).folds_by_video()
    before, after = folds.values()
    assert before == {video: fold for video, fold in after.items() if video in before}
    assert len(set(before.values())) == NUM_FOLDS


@pytest.mark.parametrize("num_new", [1, 10])
def test_new_videos_alone_are_predicted_and_nothing_is_trained(folder: Path, num_new: int) -> None:
    root = folder / "run"
    before, weights = trajectories(root), checkpoints(root)
    write_videos(folder / "data", range(NUM_VIDEOS + num_new))
    new = {f"v{number:02d}" for number in range(NUM_VIDEOS, NUM_VIDEOS + num_new)}
    config = config_of(folder)
    for plan in plan_scorers(open_inputs(config)):
        assert {video.removesuffix("~swapped") for video in plan.rows} == new
    run(config)
    after = trajectories(root)
    assert checkpoints(root) == weights
    assert {key: after.get(key) for key in before} == before
    added = {key.split("/")[2].split("=7E")[0] for key in after.keys() - before.keys()}
    assert added == new
    assert not any(plan.units for plan in plan_scorers(open_inputs(config))), "all is done"


def test_removed_video_leaves_the_audit_and_nothing_is_done_again(folder: Path) -> None:
    root = folder / "run"
    before, weights = trajectories(root), checkpoints(root)
    write_videos(folder / "data", range(1, NUM_VIDEOS))
    run(config_of(folder))
    assert checkpoints(root) == weights
    assert {key: data for key, data in trajectories(root).items() if key in before} == before
    assert "v00" not in {video.id for video in pipeline.open_audit(str(root)).held_out_videos()}


def test_new_video_of_a_fixed_split_is_audited_by_the_checkpoints_that_are_there(
    tmp_path: Path,
) -> None:
    write_videos(tmp_path / "data", range(20), fixed_split=True)
    config = config_of(tmp_path, folds=None)
    run(config)
    before, weights = trajectories(tmp_path / "run"), checkpoints(tmp_path / "run")
    write_videos(tmp_path / "data", range(21), fixed_split=True)
    run(config)
    after = trajectories(tmp_path / "run")
    assert checkpoints(tmp_path / "run") == weights
    assert {key.split("/")[2] for key in after.keys() - before.keys()} == {"v20"}
    assert {key: after[key] for key in before} == before


def test_new_video_where_weights_were_deleted_gets_the_last_checkpoint(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = replace(config_of(folder), checkpoints=CheckpointsConfig(keep="last"))
    run(config)
    before = trajectories(folder / "run")
    write_videos(folder / "data", range(NUM_VIDEOS + 1))
    with pipeline.open_stage(config, "test", console=Console(width=500)) as stage:
        pipeline.run(stage)
    assert "because checkpoints.keep deleted weights" in capsys.readouterr().out
    after = trajectories(folder / "run")
    assert {key: after[key] for key in before} == before
    audit = pipeline.open_audit(config.root)
    assert audit.log_probabilities("v40").epochs == [NUM_EPOCHS]
    assert audit.log_probabilities("v01").epochs == [1, NUM_EPOCHS]


@pytest.mark.parametrize(
    ("refresh", "trains"),
    [("never", False), (WhenGrown(when_grown=0.2), False), (WhenGrown(when_grown=0.02), True)],
)
def test_models_are_trained_anew_when_the_config_asks_for_it(
    folder: Path, refresh: object, trains: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    weights = checkpoints(folder / "run")
    write_videos(folder / "data", range(NUM_VIDEOS + 1))
    config = config_of(folder)
    train = replace(config.train, refresh=refresh)  # type: ignore[arg-type]
    config = replace(config, train=train)
    with pipeline.open_stage(config, "test", console=Console(width=500)) as stage:
        pipeline.train(stage)
    assert (checkpoints(folder / "run") != weights) is trains
    said = capsys.readouterr().out
    assert ("are kept as they are; of their training videos are 1 new (v40) since" in said) is (
        not trains
    )


def test_changed_label_of_a_training_video_is_told_and_trains_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weights = checkpoints(folder / "run")
    labels = folder / "data" / "v03.txt"
    labels.write_text(labels.read_text().replace("grasp", "lift"))
    with pipeline.open_stage(config_of(folder), "test", console=Console(width=500)) as stage:
        pipeline.train(stage)
    assert checkpoints(folder / "run") == weights
    assert "videos are 1 changed (v03) since" in capsys.readouterr().out


def test_share_may_be_given_in_percent() -> None:
    data = {"root": "r", "dataset": {"path": "p"}, "train": {"refresh": {"when_grown": "20%"}}}
    assert parse_config(data, where="c").train == TrainConfig(refresh=WhenGrown(when_grown=0.2))
