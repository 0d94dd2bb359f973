"""Training that loses a worker and its driver ends with the weights of an undisturbed one."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from builder import MadeVideo, write_manifest
from processes import kill_below

pytestmark = pytest.mark.xdist_group("ray")

COMMAND = [sys.executable, "-c", "from csl_dist.cli import main; main()"]
EPOCHS = 12
WORKER = "ray::RayTrainWorker"


@pytest.fixture(scope="module")
def features(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A manifest of eight videos with ready features."""
    folder = tmp_path_factory.mktemp("features")
    rng = np.random.default_rng(0)
    videos = []
    for n in range(8):
        labels = rng.integers(3, size=200)
        videos.append(
            MadeVideo(
                id=str(n),
                split="train" if n < 6 else "audit",
                names_T=[f"step {label}" for label in labels],
                features_TD=(np.eye(8)[labels] + rng.normal(size=(200, 8))).astype(np.float32),
            )
        )
    write_manifest(folder, videos, fps=5)
    return folder


def write_config(folder: Path, features: Path, **train: object) -> Path:
    folder.mkdir(exist_ok=True)
    settings = {"epochs": EPOCHS, "batch_frames": 400} | train
    path = folder / "c.yaml"
    path.write_text(
        f"root: {folder}/run\ndataset: {{path: {features}/manifest.csv}}\n"
        "scorers: {transformer: {arguments: {preset: tiny}, max_frames: 120}}\n"
        f"train: {settings}\n"
    )
    return path


def weights_of(folder: Path) -> dict[str, bytes]:
    found = sorted((folder / "run/transformer/fold-0/checkpoints").glob("*/epoch-*"))
    return {epoch.name: (epoch / "model.safetensors").read_bytes() for epoch in found}


def wait_for_epoch(process: subprocess.Popen[bytes], folder: Path, epoch: int) -> None:
    pattern = f"run/transformer/fold-0/checkpoints/*/epoch-{epoch:04d}/meta.json"
    while process.poll() is None and not any(folder.glob(pattern)):
        time.sleep(0.01)
    assert process.poll() is None, "training ended before it could be disturbed"


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_killed_worker_and_driver_leave_the_same_weights(features: Path, tmp_path: Path) -> None:
    undisturbed = write_config(tmp_path / "undisturbed", features)
    subprocess.run([*COMMAND, "train", undisturbed], check=True, stdout=subprocess.DEVNULL)
    expected = weights_of(tmp_path / "undisturbed")
    assert len(expected) == EPOCHS

    folder = tmp_path / "killed"
    path = write_config(folder, features)
    process = subprocess.Popen([*COMMAND, "train", str(path)], stdout=subprocess.DEVNULL)
    wait_for_epoch(process, folder, 2)
    assert kill_below(process.pid, WORKER) == 1
    wait_for_epoch(process, folder, 6)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert 6 <= len(weights_of(folder)) < EPOCHS
    subprocess.run([*COMMAND, "train", path], check=True, stdout=subprocess.DEVNULL)
    assert weights_of(folder) == expected


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_two_workers_share_the_batches_and_agree_on_weights(features: Path, tmp_path: Path) -> None:
    path = write_config(tmp_path / "two", features, workers=2, epochs=2)
    subprocess.run([*COMMAND, "train", path], check=True, stdout=subprocess.DEVNULL)
    assert len(weights_of(tmp_path / "two")) == 2
