from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from builder import MadeVideo, write_manifest
from torch import Tensor, nn

from csl_dist.config import parse_config
from csl_dist.errors import CheckpointError, ConfigError
from csl_dist.pipeline import put_run
from csl_dist.training.catalog import stored_trainings
from csl_dist.training.imported import (
    epoch_files,
    fitted_scorer,
    import_training,
    read_state,
)
from csl_dist.training.inputs import Inputs, open_inputs
from csl_dist.training.models import ModelSpec


class Linear(nn.Module):
    """A model as a user brings it."""

    def __init__(self, *, num_features: int, num_classes: int):
        super().__init__()
        self.out = nn.Linear(num_features, num_classes)

    def forward(self, x_BTD: Tensor, padding_BT: Tensor) -> Tensor:
        return self.out(x_BTD)


SPEC = ModelSpec(name=f"{__name__}:Linear", arguments={}, num_features=4, num_classes=3)


def state(seed: int, num_features: int = 4) -> dict[str, Tensor]:
    torch.manual_seed(seed)
    return Linear(num_features=num_features, num_classes=3).state_dict()


def test_epochs_are_the_last_numbers_of_the_names(tmp_path: Path) -> None:
    for name in ("run2_epoch10.pt", "run2_epoch9.pt", "notes.txt"):
        (tmp_path / name).touch()
    files = epoch_files(str(tmp_path))
    assert [(epoch, path.name) for epoch, path in files.items()] == [
        (9, "run2_epoch9.pt"),
        (10, "run2_epoch10.pt"),
    ]
    assert list(epoch_files(str(tmp_path / "run2_epoch1*.pt"))) == [10]


def test_epochs_that_start_at_zero_are_moved_by_one(tmp_path: Path) -> None:
    for n in range(3):
        (tmp_path / f"e{n}.safetensors").touch()
    assert list(epoch_files(str(tmp_path))) == [1, 2, 3]


def test_names_without_an_epoch_or_with_the_same_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="names no checkpoint; expected files"):
        epoch_files(str(tmp_path))
    (tmp_path / "best.pt").touch()
    with pytest.raises(CheckpointError, match=r"best\.pt has no epoch in its name"):
        epoch_files(str(tmp_path))
    (tmp_path / "best.pt").unlink()
    (tmp_path / "a1.pt").touch()
    (tmp_path / "b1.pt").touch()
    with pytest.raises(CheckpointError, match="are both of epoch 1"):
        epoch_files(str(tmp_path))


@pytest.mark.parametrize("how", ["plain", "wrapped", "prefixed", "safetensors"])
def test_state_dicts_are_found_however_they_were_saved(tmp_path: Path, how: str) -> None:
    path = tmp_path / ("w.safetensors" if how == "safetensors" else "w.pt")
    match how:
        case "plain":
            torch.save(state(1), path)
        case "wrapped":
            torch.save({"state_dict": state(1), "epoch": 3, "optimizer": {"lr": 0.1}}, path)
        case "prefixed":
            torch.save({f"module.{k}": v for k, v in state(1).items()}, path)
        case "safetensors":
            path.write_bytes(safetensors.torch.save(state(1)))
    assert {k: v.tolist() for k, v in read_state(path).items()} == {
        k: v.tolist() for k, v in state(1).items()
    }
    scorer = fitted_scorer(SPEC, path)
    assert torch.equal(scorer.model.out.weight, state(1)["out.weight"])
    assert scorer.feature_std.tolist() == [1.0] * 4


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (print, ("executed",))


def test_pickled_code_is_not_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "e1.pt"
    torch.save({"out.weight": Evil()}, path)
    with pytest.raises(CheckpointError, match="can't be read as plain weights"):
        read_state(path)
    assert "executed" not in capsys.readouterr().out


def test_weights_of_another_shape_are_named(tmp_path: Path) -> None:
    path = tmp_path / "e1.pt"
    torch.save(state(0, num_features=5), path)
    with pytest.raises(CheckpointError, match=r"out\.weight is \(3, 5\), not \(3, 4\)"):
        fitted_scorer(SPEC, path)
    torch.save({"gru.weight": torch.zeros(1)}, path)
    with pytest.raises(
        CheckpointError, match=r"out\.bias missing; out\.weight missing; gru\.weight unknown"
    ):
        fitted_scorer(SPEC, path)


@pytest.fixture
def inputs(tmp_path: Path) -> Inputs:
    """A run on three videos with ready features, whose only scorer is trained elsewhere."""
    folder = tmp_path / "dataset"
    videos = [
        MadeVideo(
            id=name,
            split=split,
            names_T=["a", "b", "c"] * 3,
            features_TD=np.random.default_rng(0).normal(size=(9, 4)).astype(np.float32),
        )
        for name, split in (("v1", "train"), ("v2", "train"), ("v3", "audit"))
    ]
    write_manifest(folder, videos, fps=5, classes=("a", "b", "c"))
    config = {
        "root": str(tmp_path / "run"),
        "dataset": {"path": str(folder / "manifest.csv")},
        "scorers": {"mine": {"model": SPEC.name, "train": False}},
    }
    return open_inputs(parse_config(config, where="test"))


def test_imported_checkpoints_are_those_that_an_audit_uses(inputs: Inputs, tmp_path: Path) -> None:
    num_features = inputs.features.base.width()
    torch.manual_seed(0)
    model = Linear(num_features=num_features, num_classes=len(inputs.run.dataset.classes))
    for epoch in (2, 4):
        torch.save(model.state_dict(), tmp_path / f"epoch_{epoch}.pt")
    assert not inputs.run.paths.root.exists("run.json")
    trained = [inputs.run.dataset.videos[0].id]
    import_training(inputs, "mine", 0, str(tmp_path / "*.pt"), trained)
    infos = inputs.checkpoints.infos("mine", 0, inputs.features.base)
    assert [info.epoch for info in infos] == [2, 4]
    assert infos[0].train_ids == tuple(trained)
    put_run(inputs)
    [stored] = stored_trainings(inputs.run.config.root)
    assert stored.is_current
    assert stored.infos == infos


def test_import_into_a_scorer_that_is_trained_is_refused(inputs: Inputs, tmp_path: Path) -> None:
    scorers = {"mine": replace(inputs.run.config.scorers["mine"], train=True)}
    trained = open_inputs(replace(inputs.run.config, scorers=scorers))
    with pytest.raises(ConfigError, match=r"set scorers\.mine\.train: false"):
        import_training(trained, "mine", 0, str(tmp_path), [])
    with pytest.raises(ConfigError, match="no scorer 'other'; its scorers are mine"):
        import_training(inputs, "other", 0, str(tmp_path), [])
    with pytest.raises(ConfigError, match="there is no fold 3"):
        import_training(inputs, "mine", 3, str(tmp_path), [])
