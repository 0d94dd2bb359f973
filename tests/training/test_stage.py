"""Training that loses a worker and its driver ends with the weights of an undisturbed one."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from builder import MadeVideo, write_manifest
from processes import kill_below
from safetensors.torch import load_file

from csl_dist.config import load_config
from csl_dist.features.source import FeatureReader
from csl_dist.training.batches import padded_batch
from csl_dist.training.inputs import open_inputs
from csl_dist.training.models import build_scorer
from csl_dist.training.stage import training_of
from csl_dist.training.train import (
    class_counts,
    class_weights,
    epoch_batches,
    feature_moments,
    weighted_loss,
)

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
@pytest.mark.timeout(600)
def test_two_workers_end_with_the_weights_of_averaged_gradients(
    features: Path, tmp_path: Path
) -> None:
    path = write_config(tmp_path / "two", features, workers=2, epochs=2, weighted=True)
    subprocess.run([*COMMAND, "train", path], check=True, stdout=subprocess.DEVNULL)
    trained = sorted((tmp_path / "two/run/transformer/fold-0/checkpoints").glob("*/epoch-*"))
    expected = weights_of_averaged_gradients(path)
    assert len(trained) == len(expected) == 2
    for folder, weights in zip(trained, expected, strict=True):
        stored = load_file(folder / "model.safetensors")
        assert stored.keys() == weights.keys()
        for name, tensor in weights.items():
            assert torch.allclose(stored[name], tensor, atol=1e-7, rtol=1e-6), name


def weights_of_averaged_gradients(path: Path) -> list[dict[str, torch.Tensor]]:
    """What data-parallel training means, in one process: the mean of two workers' gradients."""
    torch.set_num_threads(1)
    inputs = open_inputs(load_config(path))
    training = training_of(inputs, "transformer", inputs.run.dataset.folds[0])
    task, read = training.task, FeatureReader(training.features).read
    counts_C = class_counts(task.annotations, len(task.classes))
    weights_C = torch.from_numpy(class_weights(counts_C)).float()
    labels = {a.video: torch.from_numpy(a.labels_T).long() for a in task.annotations}
    torch.manual_seed(task.config.seed)
    scorer = build_scorer(task.model)
    scorer.set_normalisation(
        *feature_moments(training.features.read(a.video) for a in task.annotations)
    )
    optimizer = torch.optim.AdamW(
        scorer.parameters(), lr=task.config.learning_rate, weight_decay=task.config.weight_decay
    )
    scorer.train()
    states = []
    for epoch in (1, 2):
        seeds = [
            np.random.SeedSequence([task.config.seed, epoch, rank]).generate_state(1)[0]
            for rank in (0, 1)
        ]
        generators = [torch.manual_seed(int(seed)).get_state() for seed in seeds]
        batches = epoch_batches(task, epoch)
        batches += batches[: len(batches) % 2]
        for pair in zip(batches[::2], batches[1::2], strict=True):
            gradients = []
            for rank, windows in enumerate(pair):
                torch.set_rng_state(generators[rank])
                x, padding, place = padded_batch(windows, read, torch.device("cpu"))
                targets = torch.full(padding.shape, -1)
                for row, window in zip(targets, windows, strict=True):
                    own = labels[window.video][window.span.start : window.span.stop]
                    row[: len(own)] = own
                loss = weighted_loss(scorer(x, padding, place), targets, weights_C)
                gradients.append(torch.autograd.grad(loss, list(scorer.parameters())))
                generators[rank] = torch.get_rng_state()
            for parameter, one, other in zip(scorer.parameters(), *gradients, strict=True):
                parameter.grad = (one + other) / 2
            torch.nn.utils.clip_grad_norm_(scorer.parameters(), task.config.clip_norm)
            optimizer.step()
        states.append({name: tensor.clone() for name, tensor in scorer.state_dict().items()})
    return states
