"""What is known of any encoder before it is built, and how its weights are read."""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from csl_dist.config import NAMED_WEIGHTS, EncoderConfig
from csl_dist.errors import ConfigError

CONNECT_SECONDS = 10.0
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)
IMAGENET_CROP = 224 / 256
"""Share of the resized short side that is cut out of the middle."""

Colour = tuple[float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderSpec:
    """What extraction has to know of an encoder."""

    title: str
    width: int
    """Numbers of a frame's feature."""
    short_side: int
    """Pixels that a frame's short side is resized to before its middle is cut out."""
    resize: Literal["bilinear", "bicubic"] = "bilinear"
    mean: Colour = IMAGENET_MEAN
    std: Colour = IMAGENET_STD
    clip_frames: int | None = None
    """Frames that it sees together; None: each by itself, in batches of any size."""
    licence: str
    """Of its weights, as far as it is known."""


class EncoderFamily(Protocol):
    """An encoder of some library."""

    is_staged: bool
    """Whether it is made of torchvision's stages: the last ones can be trained (`features.adapt`),
    and convolutions take in the BatchNorms after them."""

    def spec(self) -> EncoderSpec: ...

    def weights_name(self) -> str:
        """Names the weights for a fingerprint, without building the network."""
        ...

    def require_weights(self) -> None:
        """Sees to it that the weights are here, or says in a sentence how to get them."""
        ...

    def network(self) -> nn.Module:
        """Maps pictures (B, 3, H, W) to features (B, D), or what flattens to them."""
        ...


def file_weights(config: EncoderConfig) -> str | None:
    """The path of a weights file, where `features.weights` is one."""
    return None if config.weights in NAMED_WEIGHTS else config.weights


def file_digest(path: str) -> str:
    return hashlib.sha256(_bytes_of(path)).hexdigest()


def require_readable(path: str) -> None:
    _bytes_of(path)


def read_state(path: str, title: str) -> Mapping[str, Tensor]:
    """A state dict, from safetensors or from torch's own format, of which no code is run."""
    require_readable(path)
    try:
        if path.endswith(".safetensors"):
            return load_file(path)
        state: Any = torch.load(path, map_location="cpu", weights_only=True)
        for key in ("state_dict", "model"):  # a whole training was saved
            state = state.get(key, state)
        if not all(isinstance(value, Tensor) for value in state.values()):
            raise ValueError("not all of it is tensors")
    except (Exception, SafetensorError) as error:  # the unpickler raises anything
        raise ConfigError(
            f"features.weights: {path} is not a {title} state dict ({error})"
        ) from error
    return dict(state)


@contextmanager
def seeded(config: EncoderConfig) -> Iterator[None]:
    """Fresh weights follow from the seed, and the global random state is left alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        yield


def _bytes_of(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(
            f"features.weights: can't read {path!r} ({error.strerror}); give a file, `pretrained` "
            "or `random`"
        ) from error
