"""The encoder's trainable last stages and the head: every frame by itself, from its activations."""

import math

import torch
from torch import Tensor, nn

from csl_dist.config import FeaturesConfig
from csl_dist.encoder import BOUNDARY_CHANNELS, FEATURE_WIDTH, build_resnet, split_network
from csl_dist.models.head import classifier_head
from csl_dist.models.place import Place


class Cnn(nn.Module):
    """Logits of each frame from what the frozen stages of ResNet-18 put out.

    BatchNorm keeps its statistics: the frames of a batch are too alike to estimate new ones. Before
    the head, features are normalised by what the stages put out before they were trained.
    """

    feature_mean: Tensor
    feature_std: Tensor

    sees_context = False
    is_normalised = False

    def __init__(self, *, num_features: int, num_classes: int, trainable_stages: int):
        super().__init__()
        self.channels = BOUNDARY_CHANNELS[trainable_stages]
        self.side = math.isqrt(num_features // self.channels)
        fresh = build_resnet(FeaturesConfig(weights="random"))
        _, self.stages = split_network(fresh, trainable_stages)
        self.register_buffer("feature_mean", torch.zeros(FEATURE_WIDTH))
        self.register_buffer("feature_std", torch.ones(FEATURE_WIDTH))
        self.head = classifier_head(FEATURE_WIDTH, num_classes)

    def set_normalisation(self, mean_D: Tensor, std_D: Tensor) -> None:
        self.feature_mean.copy_(mean_D)
        self.feature_std.copy_(std_D)

    def start_from(self, config: FeaturesConfig) -> None:
        """Takes over the weights that the stages have in the configured encoder."""
        _, stages = split_network(build_resnet(config), len(self.stages) - 1)
        self.stages.load_state_dict(stages.state_dict())

    def train(self, mode: bool = True) -> "Cnn":
        super().train(mode)
        for module in self.stages.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.eval()
        return self

    def features(self, x_BTD: Tensor) -> Tensor:
        """The adapted encoder's features (B, T, 512)."""
        x = x_BTD.flatten(0, 1).unflatten(-1, (self.channels, self.side, self.side))
        features: Tensor = self.stages(x.contiguous(memory_format=torch.channels_last))
        return features.flatten(1).unflatten(0, x_BTD.shape[:2])

    def forward(self, x_BTD: Tensor, padding_BT: Tensor, place: Place) -> Tensor:
        features = (self.features(x_BTD) - self.feature_mean) / self.feature_std
        logits_BTC: Tensor = self.head(features)
        return logits_BTC
