"""Scorer models, all mapping features (B, T, D) to class logits (B, T, C)."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from csl_dist.errors import ConfigError
from csl_dist.models.framewise import Framewise
from csl_dist.models.place import Place
from csl_dist.models.transformer import Transformer

__all__ = ["ModelSpec", "Place", "Scorer", "build_scorer", "sees_context"]

MODELS: dict[str, type[nn.Module]] = {"transformer": Transformer, "framewise": Framewise}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """All that is needed to build a scorer before its weights are loaded."""

    name: str
    arguments: dict[str, Any]
    num_features: int
    num_classes: int


class Scorer(nn.Module):
    """A model behind the normalisation of its features, which travels in the weights."""

    feature_mean: Tensor
    feature_std: Tensor

    def __init__(self, model: nn.Module, num_features: int):
        super().__init__()
        self.model = model
        self.register_buffer("feature_mean", torch.zeros(num_features))
        self.register_buffer("feature_std", torch.ones(num_features))

    def set_normalisation(self, mean_D: Tensor, std_D: Tensor) -> None:
        self.feature_mean.copy_(mean_D)
        self.feature_std.copy_(std_D)

    def forward(self, x_BTD: Tensor, padding_BT: Tensor, place: Place) -> Tensor:
        """Logits (B, T, C); `padding_BT` is True where there is no frame."""
        x_BTD = (x_BTD - self.feature_mean) / self.feature_std
        logits_BTC: Tensor = self.model(x_BTD, padding_BT, place)
        return logits_BTC


def build_scorer(spec: ModelSpec) -> Scorer:
    """A scorer with fresh weights, from torch's current random state."""
    model_class = _model_class(spec.name)
    try:
        model = model_class(
            num_features=spec.num_features, num_classes=spec.num_classes, **spec.arguments
        )
    except TypeError as error:
        raise ConfigError(f"scorer model {spec.name!r}: {error}") from error
    return Scorer(model, spec.num_features)


def sees_context(name: str) -> bool:
    """Whether a model looks at more than one frame at a time, and so at order."""
    return bool(getattr(_model_class(name), "sees_context", True))


def _model_class(name: str) -> type[nn.Module]:
    if name not in MODELS:
        raise ConfigError(f"scorer model {name!r} is not one of {', '.join(MODELS)}")
    return MODELS[name]
