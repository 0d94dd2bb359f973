"""An encoder adapted to each fold, its features for the other scorers, and its own audit."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from stage_bytes import planned_bytes, stored_bytes

from csl_dist.config import RunConfig, load_config
from csl_dist.predict.checkpoints import refuse_leakage
from csl_dist.predict.plan import store_of
from csl_dist.storage.url import Storage
from csl_dist.training.inputs import Inputs, open_inputs
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
        "  weights: random\n"
        "  size: 32\n"
        "  chunk_frames: 32\n"
        "  adapt: {epochs: 2, fps: 5, max_frames: 12, learning_rate: 1e-3}\n"
        "scorers: {framewise: {}, cnn: {}}\n"
        "train: {epochs: 2, batch_frames: 512}\n"
        "flag: {rule: top}\n"  # one that is calibrated on copies with steps swapped
    )
    run_csl("run", path)
    return path, load_config(path)


@pytest.fixture(scope="module")
def inputs(adapted: tuple[Path, RunConfig]) -> Inputs:
    return open_inputs(adapted[1])


@pytest.mark.timeout(400)
def test_features_of_a_fold_are_those_of_its_own_last_checkpoint(inputs: Inputs) -> None:
    assert inputs.features.adapted is not None
    stores = [inputs.features.adapted(fold) for fold in (0, 1)]
    assert stores[0].encoder != stores[1].encoder
    video = inputs.run.dataset.videos[0].id
    base, decoded = inputs.features.base, inputs.features.decoded
    activations = decoded.read(video)
    timeline = base.timeline(video)
    assert len(activations) == len(timeline.times_T)
    sample = base.stored_frames(video, timeline)
    assert 0 < len(sample) <= 12 < len(activations), "no more is stored"
    assert np.abs(base.read(video) - activations[sample]).max() < 0.02, "stored in half precision"
    for fold, store in enumerate(stores):
        assert store.missing() == []
        training = training_of(inputs, "cnn", inputs.run.dataset.folds[fold])
        info = inputs.checkpoints.adapted_encoder(fold, base)
        assert info.epoch == 2
        scorer = build_scorer(info.model).eval()
        scorer.load_state_dict(training.checkpoints.load(info))
        with torch.inference_mode():
            expected = scorer.model.features(torch.from_numpy(activations)).numpy()
        assert np.abs(store.read(video) - expected).max() < 0.02, "stored in half precision"


def test_every_epoch_of_the_encoder_is_audited_as_scorer_cnn(inputs: Inputs) -> None:
    audited = inputs.run.dataset.in_split(*{video.split for video in inputs.run.dataset.videos})
    for video in audited:
        trajectory = store_of(inputs, "cnn").trajectory(video.id)
        assert trajectory.epochs == [1, 2]
        assert trajectory.shape[2] == len(inputs.run.dataset.classes)


def test_checkpoints_name_the_videos_that_their_encoder_saw(inputs: Inputs) -> None:
    for fold in inputs.run.dataset.folds:
        encoder = inputs.checkpoints.adapted_encoder(fold.index, inputs.features.base)
        features = inputs.features.of("framewise", fold.index)
        assert set(encoder.train_ids) == set(fold.train)
        for info in inputs.checkpoints.infos("framewise", fold.index, features):
            assert set(encoder.train_ids) <= set(info.train_ids)
            refuse_leakage(info, fold.held_out, [])
            assert info.encoder == features.encoder


def test_plan_foresees_what_every_stage_stores(adapted: tuple[Path, RunConfig]) -> None:
    planned, stored = planned_bytes(adapted[1]), stored_bytes(adapted[1])
    assert planned.keys() == stored.keys()
    assert len(open_inputs(adapted[1]).labels.swapped_copies) > 0
    assert {stage: stored[stage] / planned[stage] for stage in planned} == pytest.approx(
        dict.fromkeys(planned, 1.0), rel=0.1
    )


def test_nothing_is_done_again(adapted: tuple[Path, RunConfig]) -> None:
    path, _ = adapted
    said = run_csl("run", path)
    assert "adapt: epochs" not in said
    assert "all 24 videos are encoded by the adapted encoder" in said
    assert "trajectories: all" in said


def test_meta_of_an_encoder_trained_on_other_videos_stops_the_audit(
    adapted: tuple[Path, RunConfig], inputs: Inputs, tmp_path: Path
) -> None:
    """The guard looks at the encoder's videos too, not at the scorer's alone."""
    path, config = adapted
    root = tmp_path / "run"
    subprocess.run(["cp", "-r", config.root, root], check=True)
    leaked = inputs.run.dataset.folds[0].held_out[0]
    for meta in root.glob("framewise/fold-0/checkpoints/*/epoch-*/meta.json"):
        storage = Storage(str(meta.parent))
        content = storage.read_json(meta.name, dict)
        storage.put_json(meta.name, content | {"train_ids": [*content["train_ids"], leaked]})
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
