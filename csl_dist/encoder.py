"""ResNet-18: what turns a frame into a feature vector of 512 numbers.

An encoder is named by the fingerprint of all that decides its output (weights, transform, type), so
that features of two encoders never mix in a store.
"""

import hashlib
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from csl_dist.config import FeaturesConfig
from csl_dist.errors import ConfigError
from csl_dist.records import fingerprint
from csl_dist.video import Pixels

FEATURE_WIDTH = 512
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)

_DECLARED_OPS: list[torch.library.Library] = []
"""Kept alive here: a declaration ends with its library object."""


def encoder_fingerprint(config: FeaturesConfig) -> str:
    """Names the encoder without building it."""
    match config.weights:
        case "random":
            weights = f"random-{config.seed}"
        case "imagenet":
            weights = _torchvision().models.ResNet18_Weights.IMAGENET1K_V1.url.rsplit("/", 1)[-1]
        case path:
            weights = hashlib.sha256(_read_weights(path)).hexdigest()
    return fingerprint("resnet18", weights, config.size, config.normalize, config.dtype)


class Encoder:
    """ResNet-18 without its classifier, on one device, in inference mode."""

    def __init__(self, config: FeaturesConfig, device: str = "cpu"):
        self.config = config
        self.device = torch.device(device)
        network = _build_resnet(config)
        network.fc = nn.Identity()
        self._network = network.eval().to(self.device)
        self._network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._mean = torch.tensor(IMAGENET_MEAN, device=self.device).view(1, 3, 1, 1)
        self._std = torch.tensor(IMAGENET_STD, device=self.device).view(1, 3, 1, 1)

    def __repr__(self) -> str:
        return f"Encoder(weights={self.config.weights!r}, device={self.device})"

    @torch.inference_mode()
    def encode(self, pixels_THWC: Pixels) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Features (T, 512) of RGB frames that `fit_frame` has brought to size."""
        features = [self._encode_batch(batch) for batch in self._batches(pixels_THWC)]
        return torch.cat(features).cpu().numpy()

    def _batches(self, pixels_THWC: Pixels) -> Iterator[Tensor]:
        yield from torch.from_numpy(pixels_THWC).split(self.config.batch_frames)

    def _encode_batch(self, pixels_BHWC: Tensor) -> Tensor:
        if self.device.type == "cuda":
            pixels_BHWC = pixels_BHWC.pin_memory().to(self.device, non_blocking=True)
        # The permuted view of height-width-channel bytes is channels_last already.
        x = pixels_BHWC.permute(0, 3, 1, 2).float().div_(255)
        if self.config.normalize:
            x = x.sub_(self._mean).div_(self._std)
        with torch.autocast(self.device.type, enabled=self.device.type == "cuda"):
            features: Tensor = self._network(x)
        return features.float()


def fit_frame(frame: Pixels, size: int) -> Pixels:
    """A frame (size, size, 3): resized as ImageNet's transform does, then cut in the middle.

    A frame that already has the size is left alone.
    """
    if frame.shape[:2] == (size, size):
        return frame
    functional = _torchvision().transforms.functional
    # torchvision's transform for 224 pixels resizes the short side to 256 first.
    picture = torch.from_numpy(frame).permute(2, 0, 1)
    picture = functional.resize(picture, [round(size * 256 / 224)], antialias=True)
    picture = functional.center_crop(picture, [size, size])
    fitted: Pixels = picture.permute(1, 2, 0).contiguous().numpy()
    return fitted


def _build_resnet(config: FeaturesConfig) -> nn.Module:
    models = _torchvision().models
    match config.weights:
        case "random":
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(config.seed)
                network: nn.Module = models.resnet18(weights=None)
        case "imagenet":
            try:
                network = models.resnet18(weights=models.ResNet18_Weights.IMAGENET1K_V1)
            except OSError as error:
                raise ConfigError(
                    f"the ImageNet weights of ResNet-18 can't be downloaded ({error}); set "
                    "features.weights to a local state dict, or to `random`"
                ) from error
        case path:
            network = models.resnet18(weights=None)
            _load_weights(network, path)
    return network


def _load_weights(network: nn.Module, path: str) -> None:
    """Loads a state dict that may lack the classifier, which is not used."""
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        missing, unexpected = network.load_state_dict(state, strict=False)
    except Exception as error:  # the unpickler raises anything on a file that is not its own
        raise ConfigError(
            f"features.weights: {path} is not a ResNet-18 state dict ({error})"
        ) from error
    # A file with BatchNorm folded away may also lack the counters, which inference ignores.
    missing = [k for k in missing if not k.startswith("fc.") and "num_batches" not in k]
    if missing or unexpected:
        names = ", ".join([*missing, *unexpected][:4])
        raise ConfigError(
            f"features.weights: {path} does not fit ResNet-18: {len(missing)} keys missing, "
            f"{len(unexpected)} unknown ({names})"
        )


def _read_weights(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(
            f"features.weights: can't read {path!r} ({error.strerror}); give a file, `imagenet` "
            "or `random`"
        ) from error


def _torchvision() -> Any:
    """torchvision, also where its compiled ops do not load.

    Its wheel links CUDA libraries. Beside a CPU build of torch they are missing, and the import
    stops at `operator torchvision::nms does not exist`. Models and transforms use none of these
    ops, so declaring their schemas is enough.
    """
    try:
        return importlib.import_module("torchvision")
    except RuntimeError as error:
        if "torchvision::nms" not in str(error):
            raise
    for name in [name for name in sys.modules if name.startswith("torchvision")]:
        del sys.modules[name]
    ops = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        ops.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _DECLARED_OPS.append(ops)
    return importlib.import_module("torchvision")
