import dataclasses
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from csl_dist import pipeline
from csl_dist.config import AdaptConfig, FeaturesConfig, RunConfig
from csl_dist.errors import ConfigError
from csl_dist.features.encoders import (
    Encoder,
    encoder_fingerprint,
    fit_frame,
    output_width,
    require_weights,
)
from csl_dist.features.families.resnet import Resnet, split_network, torchvision


def frames(num: int, height: int, width: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.integers(0, 256, size=(num, height, width, 3), dtype=np.uint8)


@pytest.mark.parametrize(
    ("height", "width"), [(300, 400), (400, 300), (480, 640), (1080, 1920), (224, 300), (257, 257)]
)
def test_fitted_frame_equals_torchvisions_resize_and_crop(height: int, width: int) -> None:
    [pixels] = frames(1, height, width)
    functional = torchvision().transforms.functional
    picture = functional.resize(torch.from_numpy(pixels).permute(2, 0, 1), [256], antialias=True)
    picture = functional.center_crop(picture, [224, 224])
    assert np.array_equal(fit_frame(pixels, 224), picture.permute(1, 2, 0).numpy())


def test_features_equal_torchvisions_own_model_and_transform() -> None:
    pixels = frames(3, 300, 400)
    config = FeaturesConfig(weights="random", seed=3)
    ours = Encoder(config).encode(np.stack([fit_frame(p, config.size) for p in pixels]))

    models = torchvision().models
    torch.manual_seed(3)
    network = models.resnet18(weights=None).eval()
    network.fc = torch.nn.Identity()
    transform = models.ResNet18_Weights.IMAGENET1K_V1.transforms()
    batch = torch.stack([transform(torch.from_numpy(p).permute(2, 0, 1)) for p in pixels])
    with torch.inference_mode():
        theirs = network(batch).numpy()
    assert ours.shape == (3, 512)
    assert np.abs(ours - theirs).max() < 1e-4


def test_batches_do_not_change_features() -> None:
    pixels = frames(5, 32, 32)
    one = Encoder(FeaturesConfig(weights="random", size=32, batch_frames=2)).encode(pixels)
    two = Encoder(FeaturesConfig(weights="random", size=32, batch_frames=64)).encode(pixels)
    assert np.abs(one - two).max() < 1e-4


def test_random_weights_leave_the_global_random_state_alone() -> None:
    torch.manual_seed(0)
    Encoder(FeaturesConfig(weights="random", seed=9))
    after = torch.rand(1)
    torch.manual_seed(0)
    assert torch.equal(after, torch.rand(1))


def test_weights_without_classifier_load_from_a_file(tmp_path: Path) -> None:
    source = Encoder(FeaturesConfig(weights="random", seed=4, size=32))
    path = tmp_path / "w.pt"
    network = Resnet(source.config).whole_network()
    torch.save({k: v for k, v in network.state_dict().items() if "fc." not in k}, path)
    loaded = Encoder(FeaturesConfig(weights=str(path), size=32))
    pixels = frames(2, 32, 32)
    assert np.array_equal(source.encode(pixels), loaded.encode(pixels))


def test_weights_file_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "w.pt"
    torch.save({"conv1.weight": torch.zeros(64, 3, 7, 7)}, path)
    with pytest.raises(ConfigError, match="does not fit ResNet-18: .* keys missing"):
        Encoder(FeaturesConfig(weights=str(path)))
    path.write_bytes(b"junk")
    with pytest.raises(ConfigError, match="is not a ResNet-18 state dict"):
        Encoder(FeaturesConfig(weights=str(path)))
    with pytest.raises(ConfigError, match=r"features\.weights: can't read 'nowhere'"):
        encoder_fingerprint(FeaturesConfig(weights="nowhere"))


def test_fingerprint_changes_with_all_that_changes_features(tmp_path: Path) -> None:
    path = tmp_path / "w.pt"
    path.write_bytes(b"1")
    configs = [
        FeaturesConfig(weights="random"),
        FeaturesConfig(weights="random", seed=1),
        FeaturesConfig(weights="random", size=112),
        FeaturesConfig(weights="random", normalize=False),
        FeaturesConfig(weights="random", dtype="float32"),
        FeaturesConfig(weights="random", adapt=AdaptConfig(trainable_stages=1)),
        FeaturesConfig(weights="random", adapt=AdaptConfig(trainable_stages=2)),
        FeaturesConfig(weights="imagenet"),
        FeaturesConfig(weights=str(path)),
    ]
    assert len({encoder_fingerprint(config) for config in configs}) == len(configs)


@pytest.mark.parametrize("trainable_stages", [1, 2])
@pytest.mark.parametrize("size", [32, 50])
def test_last_stages_on_stored_activations_equal_the_whole_network(
    trainable_stages: int, size: int
) -> None:
    whole = FeaturesConfig(weights="random", size=size)
    frozen = dataclasses.replace(whole, adapt=AdaptConfig(trainable_stages=trainable_stages))
    pixels = frames(3, size, size)
    activations = torch.from_numpy(Encoder(frozen).encode(pixels))
    assert activations.shape == (3, output_width(frozen))
    channels = {1: 256, 2: 128}[trainable_stages]
    side = round((activations.shape[1] / channels) ** 0.5)
    _, tail = split_network(Resnet(whole).whole_network().eval(), trainable_stages)
    with torch.inference_mode():
        features = tail(activations.view(3, channels, side, side)).flatten(1).numpy()
    assert np.abs(features - Encoder(whole).encode(pixels)).max() < 1e-4


@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
def test_compiled_encoder_gives_the_same_output() -> None:
    config = FeaturesConfig(weights="random", size=32, adapt=AdaptConfig(trainable_stages=2))
    compiled = Encoder(dataclasses.replace(config, compile=True))
    pixels = frames(4, 32, 32)
    assert np.abs(compiled.encode(pixels) - Encoder(config).encode(pixels)).max() < 1e-4


@pytest.fixture
def no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No way out, and an empty cache, whose folder is given."""
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path / "hub"))
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    return tmp_path / "hub/checkpoints"


def test_weights_that_are_not_here_are_told_before_ray_starts(
    small_config: RunConfig, no_network: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = dataclasses.replace(small_config.features, weights="imagenet")
    config = dataclasses.replace(small_config, features=features)
    monkeypatch.setattr("csl_dist.features.stage.connect", lambda **_: pytest.fail("Ray started"))
    with (
        pipeline.open_stage(config, "test") as stage,
        pytest.raises(ConfigError, match=f"can't be downloaded .*: get https://.*{no_network}"),
    ):
        pipeline.extract(stage)


def test_weights_in_the_cache_need_no_network(no_network: Path) -> None:
    no_network.mkdir(parents=True)
    (no_network / "resnet18-f37072fd.pth").touch()
    require_weights(FeaturesConfig())
