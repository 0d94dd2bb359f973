"""torchvision's ResNets, the paper's encoder among them; their last stages can be adapted."""

import importlib
import sys
import urllib.request
from collections import OrderedDict
from pathlib import Path
from typing import Any

import torch
from torch import nn

from csl_dist.config import EncoderConfig
from csl_dist.errors import ConfigError
from csl_dist.features.families.family import (
    CONNECT_SECONDS,
    IMAGENET_CROP,
    EncoderSpec,
    file_digest,
    file_weights,
    read_state,
    require_readable,
    seeded,
)

RESNETS = {"resnet18": 512, "resnet34": 512, "resnet50": 2048, "resnet101": 2048, "resnet152": 2048}
"""Width of their features."""
LICENCE = "BSD-3-Clause; trained on ImageNet, whose pictures are for research"

_DECLARED_OPS: list[torch.library.Library] = []
"""Kept alive here: a declaration ends with its library object."""


class Resnet:
    """ResNet of 18 to 152 layers without its classifier."""

    is_staged = True

    def __init__(self, config: EncoderConfig):
        self._config = config
        self._title = config.encoder.replace("resnet", "ResNet-")

    def __repr__(self) -> str:
        return f"Resnet({self._config.encoder!r})"

    def spec(self) -> EncoderSpec:
        return EncoderSpec(
            title=self._title,
            width=RESNETS[self._config.encoder],
            short_side=round(self._config.size / IMAGENET_CROP),
            licence=LICENCE,
        )

    def weights_name(self) -> str:
        if self._config.weights == "random":
            return f"random-{self._config.seed}"
        path = file_weights(self._config)
        return self._published().url.rsplit("/", 1)[-1] if path is None else file_digest(path)

    def require_weights(self) -> None:
        if self._config.weights == "random":
            return
        if (path := file_weights(self._config)) is not None:
            require_readable(path)
            return
        url = self._published().url
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
                f"the ImageNet weights of {self._title} can't be downloaded ({reason}): get {url} "
                f"on a machine with a network and put it into {folder}, or set features.weights to "
                "its path, or to `random` (worse features)"
            ) from error

    def network(self) -> nn.Sequential:
        return split_network(self.whole_network(), 0)[0]

    def whole_network(self) -> nn.Module:
        """torchvision's network with the configured weights and its classifier."""
        build = getattr(torchvision().models, self._config.encoder)
        path = file_weights(self._config)
        if self._config.weights == "random":
            with seeded(self._config):
                network: nn.Module = build(weights=None)
        elif path is None:
            self.require_weights()
            network = build(weights=self._published())
        else:
            network = build(weights=None)
            self._load(network, path)
        return network

    def _published(self) -> Any:
        name = self._config.encoder.replace("resnet", "ResNet") + "_Weights"
        return getattr(torchvision().models, name).IMAGENET1K_V1

    def _load(self, network: nn.Module, path: str) -> None:
        """Loads a state dict that may lack the classifier, which is not used."""
        try:
            missing, unexpected = network.load_state_dict(read_state(path, self._title), False)
        except RuntimeError as error:
            raise ConfigError(
                f"features.weights: {path} is not a {self._title} state dict ({error})"
            ) from error
        # A file with BatchNorm folded away may also lack the counters, which inference ignores.
        missing = [k for k in missing if not k.startswith("fc.") and "num_batches" not in k]
        if missing or unexpected:
            names = ", ".join([*missing, *unexpected][:4])
            raise ConfigError(
                f"features.weights: {path} does not fit {self._title}: {len(missing)} keys "
                f"missing, {len(unexpected)} unknown ({names})"
            )


def boundary_channels(encoder: str, trainable_stages: int) -> int:
    """Channels that the frozen stages put out, by the number of trainable stages after them."""
    return RESNETS[encoder] // 2**trainable_stages


def split_network(network: nn.Module, trainable_stages: int) -> tuple[nn.Sequential, nn.Sequential]:
    """The stages that stay as they are, and the last ones; the classifier belongs to neither."""
    parts = {name: part for name, part in network.named_children() if name != "fc"}
    first = list(parts)[: len(parts) - 1 - trainable_stages] if trainable_stages else list(parts)
    return (
        nn.Sequential(OrderedDict((name, parts[name]) for name in first)),
        nn.Sequential(OrderedDict((name, parts[name]) for name in parts if name not in first)),
    )


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
