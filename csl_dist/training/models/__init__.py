"""Scorer models, all mapping features (B, T, D) to class logits (B, T, C)."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from csl_dist.errors import ConfigError
from csl_dist.features.families.imported import imported_class
from csl_dist.training.models.cnn import Cnn
from csl_dist.training.models.framewise import Framewise
from csl_dist.training.models.mstcn import MultiStageTcn
from csl_dist.training.models.place import Place
from csl_dist.training.models.transformer import Transformer

__all__ = ["Cnn", "ModelSpec", "Place", "Scorer", "Transformer", "build_scorer", "sees_context"]

MODELS: dict[str, type[nn.Module]] = {
    "transformer": Transformer,
    "framewise": Framewise,
    "mstcn": MultiStageTcn,
    "cnn": Cnn,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """All that is needed to build a scorer before its weights are loaded."""

    name: str
    """One of MODELS, or the import path `package.module:Class` of the user's own."""
    arguments: dict[str, Any]
    num_features: int
    num_classes: int
    max_frames: int | None = None
    """Longer videos run in windows of so many frames; None: every video at once."""


class Scorer(nn.Module):
    """A model behind the normalisation of its features, which travels in the weights."""

    feature_mean: Tensor
    feature_std: Tensor

    def __init__(self, model: nn.Module, num_features: int):
        super().__init__()
        self.model = model
        # Models of the package know their frames' places; others get features and padding alone.
        self.knows_place = type(model) in MODELS.values()
        self.is_normalised = bool(getattr(model, "is_normalised", True))
        if self.is_normalised:
            self.register_buffer("feature_mean", torch.zeros(num_features))
            self.register_buffer("feature_std", torch.ones(num_features))

    def set_normalisation(self, mean_D: Tensor, std_D: Tensor) -> None:
        self.feature_mean.copy_(mean_D)
        self.feature_std.copy_(std_D)

    def forward(self, x_BTD: Tensor, padding_BT: Tensor, place: Place) -> Tensor:
        """Logits (B, T, C); `padding_BT` is True where there is no frame.

        While training, a model may put out (S, B, T, C): every stage's logits, all of them trained.
        """
        return self.logits(self.normalised(x_BTD), padding_BT, place)

    def normalised(self, x_BTD: Tensor) -> Tensor:
        """Features as the model behind the normalisation sees them."""
        if not self.is_normalised:
            return x_BTD
        scale_D = 1 / self.feature_std
        # In one pass over the features, which are wider than most of what follows.
        return torch.addcmul(-self.feature_mean * scale_D, x_BTD, scale_D)

    def normalises_like(self, other: "Scorer") -> bool:
        """Whether another scorer's model sees the same numbers: mostly one of the same training."""
        return not self.is_normalised or (
            torch.equal(self.feature_mean, other.feature_mean)
            and torch.equal(self.feature_std, other.feature_std)
        )

    def logits(self, normal_BTD: Tensor, padding_BT: Tensor, place: Place) -> Tensor:
        """Of features that are normalised already."""
        known = (place,) if self.knows_place else ()
        logits_BTC: Tensor = self.model(normal_BTD, padding_BT, *known)
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


def weight_bytes(spec: ModelSpec) -> int:
    """Of a scorer's parameters, which are not made for that."""
    with torch.device("meta"):
        scorer = build_scorer(spec)
    return sum(parameter.nbytes for parameter in scorer.parameters())


def sees_context(name: str) -> bool:
    """Whether a model looks at more than one frame at a time, and so at order."""
    return bool(getattr(_model_class(name), "sees_context", True))


def _model_class(name: str) -> type[nn.Module]:
    if name in MODELS:
        return MODELS[name]
    if ":" not in name:
        raise ConfigError(
            f"scorer model {name!r} is not one of {', '.join(MODELS)}, nor an import path such as "
            "package.module:Class"
        )
    return imported_class(name, what="scorer model")
