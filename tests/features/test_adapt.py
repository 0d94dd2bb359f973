"""An encoder adapted to each fold, its features for the other scorers, and its own audit."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from csl_dist.config import RunConfig, load_config
from csl_dist.predict.forward import refuse_leakage
from csl_dist.run import Run, open_run
from csl_dist.training.models import build_scorer
from csl_dist.training.stage import training_of

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ray")]

COMMAND = [sys.executable, "-c", "from csl_dist.cli import main; main()"]


def run_csl(*arguments: str | Path) -> str:
    result = subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def adapted(
    tmp_path_factory: pytest.TempPathFactory, small_dataset: Path
) -> tuple[Path, RunConfig]:
    folder = tmp_path_factory.mktemp("adapted")
    path = folder / "c.yaml"
    path.write_text(
        f"root: {folder}/run\n"
        f"dataset: {{path: {small_dataset}, folds: 2}}\n"
        "features:\n"
        "  {weights: random, size: 32, chunk_frames: 32, adapt: {epochs: 2, learning_rate: 1e-3}}\n"
        "scorers: {framewise: {}, cnn: {}}\n"
        "train: {epochs: 2, batch_frames: 512}\n"
    )
    run_csl("run", path)
    return path, load_config(path)


@pytest.fixture(scope="module")
def run(adapted: tuple[Path, RunConfig]) -> Run:
    return open_run(adapted[1])


@pytest.mark.timeout(400)
def test_features_of_a_fold_are_those_of_its_own_last_checkpoint(run: Run) -> None:
    stores = [run.adapted_features(fold) for fold in (0, 1)]
    assert stores[0].encoder != stores[1].encoder
    video = run.dataset.videos[0].id
    activations = run.features.read(video)
    for fold, store in enumerate(stores):
        assert store.missing() == []
        training = training_of(run, "cnn", run.dataset.folds[fold])
        info = run.adapted_encoder(fold)
        assert info.epoch == 2
        scorer = build_scorer(info.model).eval()
        scorer.load_state_dict(training.checkpoints.load(info))
        with torch.inference_mode():
            expected = scorer.model.features(torch.from_numpy(activations)).numpy()
        assert np.abs(store.read(video) - expected).max() < 0.02, "stored in half precision"


def test_every_epoch_of_the_encoder_is_audited_as_scorer_cnn(run: Run) -> None:
    audited = run.dataset.in_split(*{video.split for video in run.dataset.videos})
    for video in audited:
        trajectory = run.trajectories("cnn").trajectory(video.id)
        assert trajectory.epochs == [1, 2]
        assert trajectory.shape[2] == len(run.dataset.classes)


def test_checkpoints_name_the_videos_that_their_encoder_saw(run: Run) -> None:
    for fold in run.dataset.folds:
        encoder = run.adapted_encoder(fold.index)
        assert set(encoder.train_ids) == set(fold.train)
        for info in run.checkpoints("framewise", fold.index):
            assert set(encoder.train_ids) <= set(info.train_ids)
            refuse_leakage(info, fold.scored, [])
            assert info.encoder == run.adapted_features(fold.index).encoder


def test_nothing_is_done_again(adapted: tuple[Path, RunConfig]) -> None:
    path, _ = adapted
    said = run_csl("run", path)
    assert "adapt: epochs" not in said
    assert "all 24 videos are encoded by the adapted encoder" in said
    assert "units are scored" in said


def test_meta_of_an_encoder_trained_on_other_videos_stops_the_audit(
    adapted: tuple[Path, RunConfig], run: Run, tmp_path: Path
) -> None:
    """The guard looks at the encoder's videos too, not at the scorer's alone."""
    path, config = adapted
    root = tmp_path / "run"
    subprocess.run(["cp", "-r", config.root, root], check=True)
    leaked = run.dataset.folds[0].scored[0]
    for meta in root.glob("framewise/fold-0/checkpoints/*/epoch-*/meta.json"):
        content = json.loads(meta.read_text())
        content["train_ids"] = [*content["train_ids"], leaked]
        meta.write_text(json.dumps(content))
    result = subprocess.run(
        [*COMMAND, "audit", str(path), "--set", f"root={root}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 2
    assert f"1 of the videos to audit were used to train scorer 'framewise': {leaked}" in (
        result.stderr
    )
