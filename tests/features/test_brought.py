"""From a folder of ready features in MS-TCN's layout to flags, with no video at all."""

import json
from pathlib import Path

import numpy as np
import pytest
from commands import run_csl

pytestmark = pytest.mark.xdist_group("ray")

NUM_CLASSES, WIDTH = 4, 12


@pytest.fixture(scope="module")
def gtea_like(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixteen videos whose features tell their class, stored as (D, T)."""
    root = tmp_path_factory.mktemp("gtea like")
    rng = np.random.default_rng(0)
    centres = rng.normal(0, 1.5, size=(NUM_CLASSES, WIDTH))
    for name in ("features", "groundTruth"):
        (root / name).mkdir()
    for i in range(16):
        labels = np.repeat(np.arange(NUM_CLASSES), rng.integers(12, 25, size=NUM_CLASSES))
        features = centres[labels] + rng.normal(size=(len(labels), WIDTH))
        np.save(root / f"features/S{i:02d}.npy", features.T.astype(np.float32))
        names = "\n".join(f"step {label}" for label in labels)
        (root / f"groundTruth/S{i:02d}.txt").write_text(names + "\n")
    lines = [f"{i} step {i}" for i in range(NUM_CLASSES)]
    (root / "mapping.txt").write_text("\n".join(lines) + "\n")
    return root


@pytest.mark.timeout(300)
def test_init_check_and_run_on_features_alone_with_folds_and_planted_errors(
    gtea_like: Path, tmp_path: Path
) -> None:
    config = tmp_path / "csl.yaml"
    made = run_csl("init", "mstcn", gtea_like, "--out", config)
    assert made.returncode == 0, made.stderr
    checked = run_csl("check", config)
    assert checked.returncode == 0, checked.stderr
    assert "16 are (width, frames)" in checked.stdout
    root = tmp_path / "run"
    options = [
        f"root={root}",
        "dataset.folds=2",
        "train={epochs: 4, learning_rate: 3e-3, batch_frames: 512}",
        "scorers={framewise: {}}",
        "corrupt={audit: {mislabel: 0.5, jitter: 0.25}, rate: 0.2, lengths: [6, 12]}",
    ]
    arguments = [part for option in options for part in ("--set", option)]
    result = run_csl("run", config, *arguments)
    assert result.returncode == 0, result.stderr
    assert "ready-made, 12 wide" in result.stdout
    metrics = json.loads((root / "audits/0001/metrics.json").read_text())
    assert metrics["videos"] == 16, "folds audit every video"
    assert metrics["scorers"]["framewise"]["mislabel"]["csl_smoothed"]["auc_micro"][0] > 0.9
    assert "jitter" in metrics["scorers"]["framewise"]
    for fold in (0, 1):
        folder = root / f"framewise/fold-{fold}/checkpoints"
        assert len(list(folder.glob("*/epoch-*/meta.json"))) == 4
    untouched = np.load(gtea_like / "features/S00.npy")
    assert untouched.shape[0] == WIDTH
    trained = []
    for fold in (0, 1):
        [meta] = root.glob(f"framewise/fold-{fold}/checkpoints/*/epoch-0001/meta.json")
        trained.append(set(json.loads(meta.read_text())["train_ids"]))
    assert trained[0] | trained[1] == {f"S{i:02d}" for i in range(16)}
    assert not trained[0] & trained[1]


@pytest.mark.timeout(300)
def test_audit_of_trained_videos_is_refused(gtea_like: Path, tmp_path: Path) -> None:
    """Checkpoints of one split must not audit the videos that they were trained on."""
    names = [f"S{i:02d}" for i in range(16)]
    config = tmp_path / "c.yaml"

    def write(train: list[str], audit: list[str]) -> None:
        config.write_text(
            f"root: {tmp_path}/run\n"
            f"dataset:\n  layout: mstcn\n  path: {gtea_like}\n"
            f"  splits: {{train: {train}, audit: {audit}}}\n"
            "train: {epochs: 1}\nscorers: {framewise: {}}\n"
        )

    write(names[:10], names[10:])
    assert run_csl("train", config).returncode == 0
    assert run_csl("train", config, "--set", "train.seed=1").returncode == 0
    kept = list((tmp_path / "run/framewise/fold-0/checkpoints").iterdir())
    assert len(kept) == 2, "another training lies beside the first, which is not lost"
    write(names[10:], names[:10])
    result = run_csl("audit", config, "--set", "train.seed=1")
    assert result.returncode == 2
    assert "10 of the videos to audit were used to train scorer 'framewise'" in result.stderr
    assert "S00, S01" in result.stderr
