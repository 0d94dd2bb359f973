"""Any model of timm (DINO, CLIP, ConvNeXt, …), pooled as timm pools it and without its classifier.

timm keeps its weights on the Hugging Face hub; what is in the hub's cache of this machine needs no
network.
"""

import importlib
import logging
import math
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from csl_dist.config import EncoderConfig
from csl_dist.errors import ConfigError
from csl_dist.features.families.family import (
    CONNECT_SECONDS,
    EncoderSpec,
    file_digest,
    file_weights,
    read_state,
    require_readable,
    seeded,
)
from csl_dist.features.families.resnet import torchvision

HUB_FILES = ("model.safetensors", "pytorch_model.bin")


class TimmModel:
    """A model by its name in timm; the transform is that of its pretraining, but for the size."""

    is_staged = False

    def __init__(self, config: EncoderConfig, name: str):
        self._config = config
        self._name = name

    def __repr__(self) -> str:
        return f"TimmModel({self._name!r})"

    def spec(self) -> EncoderSpec:
        size = self._config.size
        with torch.device("meta"):
            network = self._built().eval()
            try:
                output = network(torch.zeros(1, 3, size, size))
            except (AssertionError, RuntimeError, ValueError) as error:
                raise ConfigError(
                    f"{self._config.encoder} can't take pictures of {size} pixels ({error}); set "
                    "features.size"
                ) from error
        published: Any = network.pretrained_cfg
        crop = float(published.get("crop_pct") or 1.0)
        bicubic = published.get("interpolation") == "bicubic"
        card = published.get("hf_hub_id") or self._name
        return EncoderSpec(
            title=self._config.encoder,
            width=output.flatten(1).shape[1],
            short_side=math.floor(size / crop),
            resize="bicubic" if bicubic else "bilinear",
            mean=tuple(published["mean"]),
            std=tuple(published["std"]),
            licence=published.get("license") or f"see the model card of {card}",
        )

    def weights_name(self) -> str:
        if self._config.weights == "random":
            return f"random-{self._config.seed}"
        path = file_weights(self._config)
        return f"hub-{self._repository()}" if path is None else file_digest(path)

    def require_weights(self) -> None:
        if self._config.weights == "random":
            return
        path = file_weights(self._config)
        if path is not None:
            require_readable(path)
        else:
            self._hub_file()

    def network(self) -> nn.Module:
        if self._config.weights == "random":
            with seeded(self._config):
                return self._built()
        path = file_weights(self._config)
        path = self._hub_file() if path is None else path
        state = read_state(path, self._config.encoder)
        try:
            with _missing_keys() as missing:
                network = self._built(pretrained=True, pretrained_cfg_overlay={"state_dict": state})
        except RuntimeError as error:
            missing = [" ".join(str(error).split())]
        if missing:
            raise ConfigError(
                f"features.weights: {path} does not fit {self._config.encoder}: {missing[0][:200]}"
            )
        return network

    def _built(self, **how: Any) -> nn.Module:
        arguments = {"num_classes": 0, **how, **self._config.arguments}
        create = _timm(self._config.encoder).create_model
        try:
            try:
                # Transformers have places for pictures of one size; convolutions take any.
                network: nn.Module = create(self._name, img_size=self._config.size, **arguments)
            except TypeError:
                network = create(self._name, **arguments)
        except TypeError as error:
            raise ConfigError(f"features.arguments of {self._config.encoder}: {error}") from error
        except RuntimeError as error:
            if "Unknown model" not in str(error):
                raise
            near = _timm(self._config.encoder).list_models(f"*{self._name.split('_')[0]}*")[:4]
            some = f"; there are {', '.join(near)} and others" if near else ""
            raise ConfigError(
                f"features.encoder: timm has no model {self._name!r}{some}"
            ) from error
        return network

    def _repository(self) -> str:
        """Where the hub keeps the weights, by the published config."""
        found = _timm(self._config.encoder).get_pretrained_cfg(self._name)
        if found is None or not found.hf_hub_id:
            raise ConfigError(
                f"timm has no weights of {self._name}; name a version that has "
                "(timm.list_pretrained()), or set features.weights to a file"
            )
        return str(found.hf_hub_id)

    def _hub_file(self) -> str:
        """The weights in the hub's cache, after a download where they are not there yet."""
        hub = importlib.import_module("huggingface_hub")
        repository = self._repository()
        for name in HUB_FILES:
            if isinstance(cached := hub.try_to_load_from_cache(repository, name), str):
                return cached
        endpoint = hub.constants.ENDPOINT
        try:
            # The hub's own client tries for minutes where there is no network.
            urllib.request.urlopen(endpoint, timeout=CONNECT_SECONDS).close()
            files = [name for name in HUB_FILES if hub.file_exists(repository, name)]
            return str(hub.hf_hub_download(repository, files[0]))
        except (OSError, IndexError) as error:
            reason = getattr(error, "reason", error)
            raise ConfigError(
                f"the weights of {self._config.encoder} can't be downloaded ({reason}): get "
                f"{endpoint}/{repository}/resolve/main/{HUB_FILES[0]} on a machine with a network "
                "and set features.weights to its path, or to `random` (worse features)"
            ) from error


@contextmanager
def _missing_keys() -> Iterator[list[str]]:
    """What timm has to say of weights that it did not find in a file; it only logs them."""
    found: list[str] = []
    log = logging.getLogger("timm.models._builder")
    level = log.level

    def keep(record: logging.LogRecord) -> bool:
        if record.getMessage().startswith("Missing keys"):
            found.append(record.getMessage())
        return False  # nor is a classifier that is not used worth a line in every worker

    log.addFilter(keep)
    log.setLevel(logging.INFO)
    try:
        yield found
    finally:
        log.removeFilter(keep)
        log.setLevel(level)


def _timm(encoder: str) -> Any:
    torchvision()  # timm imports it, which needs help beside a CPU build of torch
    try:
        return importlib.import_module("timm")
    except ImportError as error:
        raise ConfigError(
            f"features.encoder {encoder} needs timm, which is not installed: "
            "pip install 'csl_dist[timm]'"
        ) from error
