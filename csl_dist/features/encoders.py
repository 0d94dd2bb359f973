"""Encoders: what turns a frame into a feature vector, ResNet-18 by default.

An encoder is named by the fingerprint of all that decides its output (weights, transform, type), so
that features of two encoders never mix in a store.
"""

import copy
import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate
from torch.nn.utils.fusion import fuse_conv_bn_eval

from csl_dist.config import EncoderConfig, FeaturesConfig
from csl_dist.data.media.display import Pixels
from csl_dist.errors import ConfigError
from csl_dist.features.families import family_of
from csl_dist.features.families.family import EncoderSpec
from csl_dist.features.families.resnet import Resnet, boundary_channels, split_network
from csl_dist.types import fingerprint

CPU_BATCH_PIXELS = 8 * 224**2
"""On CPUs, tensors of larger batches are handed back to the system after every layer; smaller ones
read the weights too often."""


def encoder_spec(config: EncoderConfig) -> EncoderSpec:
    """What is known of an encoder without its weights."""
    return _spec(config.encoder, config.size, json.dumps(config.arguments, sort_keys=True))


@lru_cache
def _spec(encoder: str, size: int, arguments: str) -> EncoderSpec:
    config = EncoderConfig(encoder=encoder, size=size, arguments=json.loads(arguments))
    return family_of(config).spec()


def encoder_fingerprint(config: FeaturesConfig) -> str:
    """Names the encoder without building it."""
    weights = family_of(config).weights_name()
    parts: list[Any] = [config.encoder, weights, config.size, config.normalize, config.dtype]
    parts += [config.arguments] if config.arguments else []
    return fingerprint(*parts, *([config.adapt.trainable_stages] if config.adapt else []))


def require_weights(config: FeaturesConfig) -> None:
    """Sees to it that the weights are on this machine, or says in a sentence how to get them."""
    for encoder in config.sets():
        family_of(encoder).require_weights()


def output_width(config: FeaturesConfig) -> int:
    """Numbers of a frame that extraction stores: a feature, or what the frozen stages put out."""
    if config.adapt is None:
        return sum(encoder_spec(one).width for one in config.sets())
    channels = boundary_channels(config.encoder, config.adapt.trainable_stages)
    # The stem and the stages halve the side of 224 to 7 in five steps, the last ones per stage.
    side = math.ceil(config.size / 2 ** (5 - config.adapt.trainable_stages))
    return channels * side**2


class Encoder:
    """A network without its classifier, or only its frozen stages, in inference mode.

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
        self._adapted: list[Callable[[Tensor], Tensor]] = []
        self._batch_frames = config.batch_frames
        if self.device.type == "cpu":
            most_frames = max(1, CPU_BATCH_PIXELS // config.size**2)
            self._batch_frames = min(most_frames, self._batch_frames)
        spec = encoder_spec(config)
        self._width = spec.width
        if spec.clip_frames is not None:
            self._batch_frames = spec.clip_frames
        family = family_of(config)
        network: nn.Module
        if config.adapt is not None and isinstance(family, Resnet):
            stages = config.adapt.trainable_stages
            network, last = split_network(family.whole_network(), stages)
            self._adapted = [self._prepared(with_weights(last, weights)) for weights in adapted]
        else:
            network = family.network()
        self._network = self._prepared(network)
        self._mean = torch.tensor(spec.mean, device=self.device).view(1, 3, 1, 1) * 255
        self._std = torch.tensor(spec.std, device=self.device).view(1, 3, 1, 1) * 255

    def __repr__(self) -> str:
        names = f"{self.config.encoder!r}, weights={self.config.weights!r}"
        return f"Encoder({names}, device={self.device})"

    def _prepared(self, network: nn.Module) -> Callable[[Tensor], Tensor]:
        network.eval()
        if family_of(self.config).is_staged:
            fold_batch_norms(network)
        network.to(self.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        return torch.compile(network) if self.config.compile else network

    @torch.inference_mode()
    def encode(self, pixels_THWC: Pixels) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Outputs (T, D) of RGB frames that `fit_frame` has brought to size."""
        batches = torch.from_numpy(pixels_THWC).split(self._batch_frames)
        outputs = [self.forward(self.normalised(batch)) for batch in batches]
        for batch, output in zip(batches, outputs, strict=True):
            if self.config.adapt is None and output.shape != (len(batch), self._width):
                raise ConfigError(
                    f"features.encoder: {self.config.encoder} gave {tuple(output.shape)} numbers "
                    f"for {len(batch)} frames, but must give {(len(batch), self._width)}"
                )
        return torch.cat(outputs).cpu().numpy()

    @torch.inference_mode()
    def encode_adapted(self, pixels_THWC: Pixels) -> list[np.ndarray[Any, np.dtype[np.float32]]]:
        """Features (T, D) of RGB frames under each of the adapted encoders."""
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


def fit_frame(frame: Pixels, size: int, spec: EncoderSpec | None = None) -> Pixels:
    """A frame (size, size, 3): resized as the encoder's transform does, then cut in the middle.

    Without a spec, as ImageNet's transform does. A frame that already has the size is left alone.
    """
    if frame.shape[:2] == (size, size):
        return frame
    # torchvision's transform for 224 pixels resizes the short side to 256 first. Its own function
    # ends in the same call; a decoder need not import torchvision for it, which takes a second.
    short = round(size * 256 / 224) if spec is None else spec.short_side
    height, width = frame.shape[:2]
    ratio = short / min(height, width)
    resized = (short, int(width * ratio)) if height <= width else (int(height * ratio), short)
    picture = torch.from_numpy(frame).permute(2, 0, 1)[None].contiguous().float()
    mode = "bilinear" if spec is None else spec.resize
    picture = interpolate(picture, size=resized, mode=mode, antialias=True).clamp_(0, 255)
    top, left = (round((side - size) / 2.0) for side in resized)
    cut = picture[0, :, top : top + size, left : left + size].round_().to(torch.uint8)
    fitted: Pixels = cut.permute(1, 2, 0).contiguous().numpy()
    return fitted


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
