"""ResNet-18: what turns a frame into a feature vector of 512 numbers.

An encoder is named by the fingerprint of all that decides its output (weights, transform, type), so
that features of two encoders never mix in a store.
"""

import copy
import hashlib
import importlib
import math
import sys
import urllib.request
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate
from torch.nn.utils.fusion import fuse_conv_bn_eval

from csl_dist.config import FeaturesConfig
from csl_dist.data.media.video import Pixels
from csl_dist.errors import ConfigError
from csl_dist.types import fingerprint

FEATURE_WIDTH = 512
CPU_BATCH_PIXELS = 8 * 224**2
"""On CPUs, tensors of larger batches are handed back to the system after every layer; smaller ones
read the weights too often."""
CONNECT_SECONDS = 10.0
BOUNDARY_CHANNELS = {1: 256, 2: 128}
"""Channels that the frozen stages put out, by the number of trainable stages after them."""
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
            weights = torchvision().models.ResNet18_Weights.IMAGENET1K_V1.url.rsplit("/", 1)[-1]
        case path:
            weights = hashlib.sha256(_read_weights(path)).hexdigest()
    parts = ["resnet18", weights, config.size, config.normalize, config.dtype]
    return fingerprint(*parts, *([config.adapt.trainable_stages] if config.adapt else []))


def output_width(config: FeaturesConfig) -> int:
    """Numbers of a frame that extraction stores: a feature, or what the frozen stages put out."""
    if config.adapt is None:
        return FEATURE_WIDTH
    channels = BOUNDARY_CHANNELS[config.adapt.trainable_stages]
    # The stem and the stages halve the side of 224 to 7 in five steps, the last ones per stage.
    side = math.ceil(config.size / 2 ** (5 - config.adapt.trainable_stages))
    return channels * side**2


class Encoder:
    """ResNet-18 without its classifier, or only its frozen stages, in inference mode.

    `adapted` are weights of the last stages, each of which makes an encoder of its own behind the
    same frozen ones.
    """

    def __init__(
        self,
        config: FeaturesConfig,
        device: str = "cpu",
        *,
        adapted: Sequence[Mapping[str, Tensor]] = (),
    ):
        self.config = config
        self.device = torch.device(device)
        self._batch_frames = config.batch_frames
        if self.device.type == "cpu":
            most_frames = max(1, CPU_BATCH_PIXELS // config.size**2)
            self._batch_frames = min(most_frames, self._batch_frames)
        trainable_stages = config.adapt.trainable_stages if config.adapt else 0
        network, last = split_network(build_resnet(config), trainable_stages)
        self._network = self._prepared(network)
        self._adapted = [self._prepared(with_weights(last, weights)) for weights in adapted]
        self._mean = torch.tensor(IMAGENET_MEAN, device=self.device).view(1, 3, 1, 1) * 255
        self._std = torch.tensor(IMAGENET_STD, device=self.device).view(1, 3, 1, 1) * 255

    def __repr__(self) -> str:
        return f"Encoder(weights={self.config.weights!r}, device={self.device})"

    def _prepared(self, network: nn.Sequential) -> Callable[[Tensor], Tensor]:
        fold_batch_norms(network.eval())
        network.to(self.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        return torch.compile(network) if self.config.compile else network

    @torch.inference_mode()
    def encode(self, pixels_THWC: Pixels) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Outputs (T, D) of RGB frames that `fit_frame` has brought to size."""
        batches = torch.from_numpy(pixels_THWC).split(self._batch_frames)
        return torch.cat([self.forward(self.normalised(batch)) for batch in batches]).cpu().numpy()

    @torch.inference_mode()
    def encode_adapted(self, pixels_THWC: Pixels) -> list[np.ndarray[Any, np.dtype[np.float32]]]:
        """Features (T, 512) of RGB frames under each of the adapted encoders."""
        parts: list[list[Tensor]] = [[] for _ in self._adapted]
        for batch in torch.from_numpy(pixels_THWC).split(self._batch_frames):
            with torch.autocast(self.device.type, enabled=self.device.type == "cuda"):
                x = self._network(self.normalised(batch))
                for own, stages in zip(parts, self._adapted, strict=True):
                    own.append(stages(x).flatten(1).float().cpu())
        return [torch.cat(own).numpy() for own in parts]

    def normalised(self, pixels_BHWC: Tensor) -> Tensor:
        """Frames (B, 3, H, W) as the network wants them, on its device."""
        if self.device.type == "cuda":
            pixels_BHWC = pixels_BHWC.pin_memory().to(self.device, non_blocking=True)
        # The permuted view of height-width-channel bytes is channels_last already.
        x = pixels_BHWC.permute(0, 3, 1, 2).float()
        return x.sub_(self._mean).div_(self._std) if self.config.normalize else x.div_(255)

    def forward(self, x_BCHW: Tensor) -> Tensor:
        """Outputs (B, D) in float32: the bare network."""
        with torch.autocast(self.device.type, enabled=self.device.type == "cuda"):
            outputs = self._network(x_BCHW)
        return outputs.flatten(1).float()


def fit_frame(frame: Pixels, size: int) -> Pixels:
    """A frame (size, size, 3): resized as ImageNet's transform does, then cut in the middle.

    A frame that already has the size is left alone.
    """
    if frame.shape[:2] == (size, size):
        return frame
    # torchvision's transform for 224 pixels resizes the short side to 256 first. Its own function
    # ends in the same call; a decoder need not import torchvision for it, which takes a second.
    short = round(size * 256 / 224)
    height, width = frame.shape[:2]
    ratio = short / min(height, width)
    resized = (short, int(width * ratio)) if height <= width else (int(height * ratio), short)
    picture = torch.from_numpy(frame).permute(2, 0, 1)[None].contiguous().float()
    picture = interpolate(picture, size=resized, mode="bilinear", antialias=True)
    top, left = (round((side - size) / 2.0) for side in resized)
    cut = picture[0, :, top : top + size, left : left + size].round_().to(torch.uint8)
    fitted: Pixels = cut.permute(1, 2, 0).contiguous().numpy()
    return fitted


def build_resnet(config: FeaturesConfig) -> nn.Module:
    """torchvision's network with the configured weights."""
    models = torchvision().models
    match config.weights:
        case "random":
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(config.seed)
                network: nn.Module = models.resnet18(weights=None)
        case "imagenet":
            require_weights(config)
            network = models.resnet18(weights=models.ResNet18_Weights.IMAGENET1K_V1)
        case path:
            network = models.resnet18(weights=None)
            _load_weights(network, path)
    return network


def require_weights(config: FeaturesConfig) -> None:
    """Sees to it that the weights are on this machine, or says in a sentence how to get them."""
    if config.weights == "random":
        return
    if config.weights != "imagenet":
        _read_weights(config.weights)
        return
    url = torchvision().models.ResNet18_Weights.IMAGENET1K_V1.url
    folder = Path(torch.hub.get_dir()) / "checkpoints"
    file = folder / url.rsplit("/", 1)[-1]
    if file.exists():
        return
    try:
        # torch waits without end where a firewall swallows what is sent.
        urllib.request.urlopen(url, timeout=CONNECT_SECONDS).close()
        folder.mkdir(parents=True, exist_ok=True)
        torch.hub.download_url_to_file(url, str(file), progress=False)
    except OSError as error:
        reason = getattr(error, "reason", error)
        raise ConfigError(
            f"the ImageNet weights of ResNet-18 can't be downloaded ({reason}): get {url} on a "
            f"machine with a network and put it into {folder}, or set features.weights to its "
            "path, or to `random` (worse features)"
        ) from error


def split_network(network: nn.Module, trainable_stages: int) -> tuple[nn.Sequential, nn.Sequential]:
    """The stages that stay as they are, and the last ones; the classifier belongs to neither."""
    parts = {name: part for name, part in network.named_children() if name != "fc"}
    first = list(parts)[: len(parts) - 1 - trainable_stages] if trainable_stages else list(parts)
    return (
        nn.Sequential(OrderedDict((name, parts[name]) for name in first)),
        nn.Sequential(OrderedDict((name, parts[name]) for name in parts if name not in first)),
    )


def with_weights(stages: nn.Sequential, weights: Mapping[str, Tensor]) -> nn.Sequential:
    """A copy of the last stages that has other weights."""
    copied = copy.deepcopy(stages)
    copied.load_state_dict(weights)
    return copied


def fold_batch_norms(network: nn.Module) -> None:
    """Moves every BatchNorm into the convolution before it: the same function, fewer passes."""
    for module in network.modules():
        for (name, conv), (next_name, norm) in pairwise(list(module.named_children())):
            if isinstance(conv, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d):
                setattr(module, name, fuse_conv_bn_eval(conv, norm))
                setattr(module, next_name, nn.Identity())


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


def torchvision() -> Any:
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
