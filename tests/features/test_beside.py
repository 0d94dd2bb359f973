"""Features side by side: files beside the dataset's own ready-made ones."""

from pathlib import Path

import numpy as np
import pytest
from builder import MadeVideo, write_manifest

from csl_dist.config import parse_config
from csl_dist.errors import CslError
from csl_dist.training.inputs import Inputs, open_inputs

NUM_FRAMES = 30


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """Two videos with features 4 wide, and others of 6 numbers in `more`."""
    rng = np.random.default_rng(0)
    names_T = ["a"] * 15 + ["b"] * 15
    videos = [
        MadeVideo(id=i, split=split, names_T=names_T, features_TD=rng.normal(size=(NUM_FRAMES, 4)))
        for i, split in (("v", "train"), ("w", "audit"))
    ]
    write_manifest(tmp_path / "data", videos, fps=10)
    (tmp_path / "more").mkdir()
    for video in videos:
        np.save(tmp_path / "more" / f"{video.id}.npy", rng.normal(size=(NUM_FRAMES, 6)))
    return tmp_path


def opened(folder: Path, beside: dict[str, object]) -> Inputs:
    data = {
        "root": str(folder / "run"),
        "dataset": {"path": str(folder / "data/manifest.csv"), "fps": 5},
        "features": {"beside": [beside]},
    }
    return open_inputs(parse_config(data, where="test"))


def test_files_stand_beside_ready_features(dataset: Path) -> None:
    inputs = opened(dataset, {"files": str(dataset / "more")})
    base = inputs.features.base
    first, second = (np.load(dataset / name / "w.npy")[::2] for name in ("data", "more"))
    np.testing.assert_allclose(base.read("w"), np.hstack([first, second]), rtol=1e-6)
    np.testing.assert_allclose(base.read("w", slice(3, 5))[:, 4:], second[3:5], rtol=1e-6)
    assert inputs.model_spec("framewise").num_features == 10
    before = base.fingerprint("w")
    np.save(dataset / "more/w.npy", np.zeros((NUM_FRAMES, 6)))
    assert (
        opened(dataset, {"files": str(dataset / "more")}).features.base.fingerprint("w") != before
    )


@pytest.mark.parametrize(
    ("beside", "words"),
    [
        ({"encoder": "resnet50"}, "no pixels for resnet50; name a folder of features"),
        ({"files": "nowhere"}, "nowhere has no features of video 'v'; expected v.npy"),
    ],
)
def test_beside_that_can_not_be_is_told_in_a_sentence(
    dataset: Path, beside: dict[str, object], words: str
) -> None:
    with pytest.raises(CslError, match=words):
        opened(dataset, beside)


def test_files_of_another_length_are_refused(dataset: Path) -> None:
    np.save(dataset / "more/w.npy", np.zeros((NUM_FRAMES + 9, 6)))
    with pytest.raises(CslError, match=r"more/w\.npy: features are 39 x 6, but the labels have 30"):
        opened(dataset, {"files": str(dataset / "more")})
