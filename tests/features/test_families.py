"""Encoders behind one spec: torchvision's, timm's, and one's own of frames or clips."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from csl_dist.config import AdaptConfig, BesideConfig, FeaturesConfig, parse_config
from csl_dist.errors import ConfigError
from csl_dist.features.encoders import (
    Encoder,
    encoder_fingerprint,
    encoder_spec,
    fit_frame,
    output_width,
    require_weights,
)
from csl_dist.features.families.resnet import Resnet, split_network, torchvision
from csl_dist.training.refusals import refusals

TIMM_TINY = FeaturesConfig(encoder="timm/test_vit", weights="random", size=64)


def timm_here() -> Any:
    """timm, whose import of torchvision needs help beside a CPU build of torch."""
    torchvision()
    return pytest.importorskip("timm")


def frames(num: int, height: int, width: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.integers(0, 256, size=(num, height, width, 3), dtype=np.uint8)


class ClipMean(nn.Module):
    """Brightness of a frame, and the mean over the clip that it is in."""

    width = 2
    clip_frames = 4
    mean = (0.0, 0.0, 0.0)
    std = (1.0, 1.0, 1.0)

    def __init__(self, scale: float = 1.0):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(scale))

    def forward(self, x_TCHW: Tensor) -> Tensor:
        own = x_TCHW.mean(dim=(1, 2, 3)) * self.scale
        return torch.stack([own, own.mean().expand_as(own)], dim=1)


class OneVector(nn.Module):
    """One vector for a whole clip, which is one too few."""

    width = 3

    def forward(self, x_TCHW: Tensor) -> Tensor:
        return x_TCHW.mean(dim=(0, 2, 3))[None]


OWN = f"{__name__}:ClipMean"


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """This file can be imported by the name that it has in the test run."""
    import sys

    monkeypatch.setitem(sys.modules, __name__, sys.modules.get(__name__) or _this_module())


def _this_module() -> object:
    import types

    module = types.ModuleType(__name__)
    module.__dict__.update(globals())
    return module


def test_deeper_resnets_have_their_own_width_and_fingerprint() -> None:
    configs = [
        FeaturesConfig(encoder=name, weights="random", size=32)
        for name in ("resnet18", "resnet34", "resnet50")
    ]
    assert [encoder_spec(config).width for config in configs] == [512, 512, 2048]
    assert len({encoder_fingerprint(config) for config in configs}) == 3


def test_default_encoder_is_named_as_before() -> None:
    """Features that were extracted when ResNet-18 was the only encoder stay what they are."""
    assert encoder_fingerprint(FeaturesConfig(weights="random")) == encoder_fingerprint(
        FeaturesConfig(weights="random", encoder="resnet18")
    )
    names = [encoder_fingerprint(FeaturesConfig(weights=w)) for w in ("imagenet", "pretrained")]
    assert names[0] == names[1]


def test_deeper_resnet_can_be_adapted() -> None:
    whole = FeaturesConfig(encoder="resnet50", weights="random", size=32)
    frozen = dataclasses.replace(whole, adapt=AdaptConfig(trainable_stages=1))
    pixels = frames(2, 32, 32)
    activations = torch.from_numpy(Encoder(frozen).encode(pixels))
    assert activations.shape == (2, output_width(frozen)) == (2, 1024 * 2 * 2)
    _, tail = split_network(Resnet(whole).whole_network().eval(), 1)
    with torch.inference_mode():
        features = tail(activations.view(2, 1024, 2, 2)).flatten(1).numpy()
    assert np.abs(features - Encoder(whole).encode(pixels)).max() < 1e-3


def test_timm_model_equals_its_own_model_and_transform() -> None:
    timm = timm_here()
    from PIL import Image

    pixels = frames(2, 100, 140)
    spec = encoder_spec(TIMM_TINY)
    ours = Encoder(TIMM_TINY).encode(np.stack([fit_frame(p, 64, spec) for p in pixels]))
    torch.manual_seed(0)
    network = timm.create_model("test_vit", num_classes=0, img_size=64).eval()
    settings = timm.data.resolve_model_data_config(network) | {"input_size": (3, 64, 64)}
    transform = timm.data.create_transform(**settings, is_training=False)
    batch = torch.stack([transform(Image.fromarray(p)) for p in pixels])
    with torch.inference_mode():
        theirs = network(batch).numpy()
    assert ours.shape == theirs.shape == (2, spec.width)
    assert np.abs(ours - theirs).max() < 0.05, "Pillow's bicubic filter rounds otherwise"


def test_timm_weights_load_from_a_local_file(tmp_path: Path) -> None:
    timm_here()
    from safetensors.torch import save_file

    from csl_dist.features.families import family_of

    other = dataclasses.replace(TIMM_TINY, seed=5)
    path = tmp_path / "w.safetensors"
    save_file(family_of(other).network().state_dict(), str(path))
    loaded = dataclasses.replace(TIMM_TINY, weights=str(path))
    pixels = frames(2, 64, 64)
    assert np.array_equal(Encoder(other).encode(pixels), Encoder(loaded).encode(pixels))
    assert encoder_fingerprint(loaded) != encoder_fingerprint(other)
    convolutions = dataclasses.replace(loaded, encoder="timm/test_resnet")
    with pytest.raises(ConfigError, match=r"w\.safetensors does not fit timm/test_resnet: "):
        Encoder(convolutions)


def test_timm_weights_that_are_not_here_are_told_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timm_here()
    hub = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(hub.constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    config = dataclasses.replace(TIMM_TINY, weights="pretrained")
    with pytest.raises(
        ConfigError, match="of timm/test_vit can't be downloaded .* set features.wei"
    ):
        require_weights(config)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (FeaturesConfig(encoder="timm/no_such_model"), "timm has no model 'no_such_model'"),
        (FeaturesConfig(encoder="resnet19"), "features.encoder is 'resnet19', but must be one of"),
        (FeaturesConfig(encoder="timm/test_vit", size=50), "can't take pictures of 50 pixels"),
        (FeaturesConfig(encoder="no_package:Class"), "'no_package:Class' can't be imported"),
    ],
)
def test_encoder_that_does_not_exist_is_refused(config: FeaturesConfig, words: str) -> None:
    timm_here()
    with pytest.raises(ConfigError, match=words):
        encoder_spec(config)


def test_clip_encoder_sees_consecutive_frames_together(tmp_path: Path) -> None:
    config = FeaturesConfig(encoder=OWN, size=8, arguments={"scale": 2.0})
    pixels = np.zeros((6, 8, 8, 3), dtype=np.uint8)
    pixels += np.arange(6, dtype=np.uint8)[:, None, None, None] * 51
    own = np.arange(6) * 0.2 * 2
    means = [own[:4].mean()] * 4 + [own[4:].mean()] * 2
    np.testing.assert_allclose(Encoder(config).encode(pixels), np.stack([own, means], 1), atol=1e-5)
    path = tmp_path / "w.pt"
    torch.save({"scale": torch.tensor(0.0)}, path)
    loaded = dataclasses.replace(config, weights=str(path))
    assert Encoder(loaded).encode(pixels).max() == 0


def test_encoder_that_gives_too_few_vectors_is_told_so() -> None:
    encoder = Encoder(FeaturesConfig(encoder=f"{__name__}:OneVector", size=8))
    with pytest.raises(ConfigError, match=r"gave \(1, 3\) numbers for 2 frames"):
        encoder.encode(frames(2, 8, 8))


@pytest.mark.parametrize(
    ("features", "words"),
    [
        ({"encoder": "timm/test_vit", "adapt": {}}, "timm/test_vit can't be adapted, only"),
        ({"beside": [{"encoder": "resnet34"}], "adapt": {}}, "exclude each other"),
    ],
)
def test_adapting_is_refused_where_the_family_does_not_allow_it(
    features: dict[str, object], words: str
) -> None:
    data = {"root": "runs/x", "dataset": {"path": "m.csv"}, "features": features}
    with pytest.raises(ConfigError, match=words):
        parse_config(data, where="test")


def test_width_of_encoders_side_by_side_is_their_sum() -> None:
    config = FeaturesConfig(
        weights="random",
        beside=(BesideConfig(encoder="resnet50", weights="random", size=112),),
    )
    assert output_width(config) == 512 + 2048
    first, second = config.sets()
    assert (first.encoder, first.size, first.beside) == ("resnet18", 224, ())
    assert (second.encoder, second.size, second.chunk_frames) == ("resnet50", 112, 256)


def test_check_tells_of_an_encoder_that_does_not_exist() -> None:
    data = {
        "root": "runs/x",
        "dataset": {"path": "m.csv"},
        "features": {"beside": [{"encoder": "resnet5"}]},
    }
    config = parse_config(data, where="test")
    [told] = refusals(config, num_classes=3, brought_width=None, cores=None)
    assert told.startswith("features.encoder is 'resnet5', but must be one of resnet18")
