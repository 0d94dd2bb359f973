"""The user's own encoder, by import path: a torch.nn.Module, of single frames or of clips."""

from typing import Any

from torch import nn

from csl_dist.config import EncoderConfig
from csl_dist.errors import ConfigError
from csl_dist.features.families.family import (
    IMAGENET_CROP,
    IMAGENET_MEAN,
    IMAGENET_STD,
    EncoderSpec,
    file_digest,
    file_weights,
    read_state,
    seeded,
)
from csl_dist.features.families.imported import imported_class


class OwnEncoder:
    """A class that takes `features.arguments` and has an attribute `width`.

    It maps frames (T, 3, H, W) to features (T, width). With an attribute `clip_frames`, the frames
    of a call are so many consecutive ones, or fewer at the end of a chunk. `mean`, `std`, `version`
    and `licence` are attributes that it may have.
    """

    is_staged = False

    def __init__(self, config: EncoderConfig):
        self._config = config

    def __repr__(self) -> str:
        return f"OwnEncoder({self._config.encoder!r})"

    def spec(self) -> EncoderSpec:
        network: Any = self._fresh()
        width, clip = getattr(network, "width", None), getattr(network, "clip_frames", None)
        if not isinstance(width, int):
            raise ConfigError(
                f"features.encoder: {self._config.encoder} has no attribute `width`, the length of "
                "a frame's feature; add it"
            )
        return EncoderSpec(
            title=self._config.encoder,
            width=width,
            short_side=round(self._config.size / IMAGENET_CROP),
            mean=tuple(getattr(network, "mean", IMAGENET_MEAN)),
            std=tuple(getattr(network, "std", IMAGENET_STD)),
            clip_frames=clip,
            licence=str(getattr(network, "licence", "your own")),
        )

    def weights_name(self) -> str:
        path = file_weights(self._config)
        version = getattr(_class_of(self._config), "version", "")
        own = f"seed-{self._config.seed}" if path is None else file_digest(path)
        return f"{own} {version}"

    def require_weights(self) -> None:
        self.network()

    def network(self) -> nn.Module:
        network = self._fresh()
        if (path := file_weights(self._config)) is not None:
            try:
                network.load_state_dict(read_state(path, self._config.encoder))
            except RuntimeError as error:
                words = " ".join(str(error).split())[:200]
                raise ConfigError(
                    f"features.weights: {path} does not fit {self._config.encoder}: {words}"
                ) from error
        return network

    def _fresh(self) -> nn.Module:
        try:
            with seeded(self._config):
                return _class_of(self._config)(**self._config.arguments)
        except TypeError as error:
            raise ConfigError(f"features.arguments of {self._config.encoder}: {error}") from error


def _class_of(config: EncoderConfig) -> type[nn.Module]:
    return imported_class(config.encoder, what="features.encoder")
