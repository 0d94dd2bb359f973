"""The encoder's trainable last stages and the head: every frame by itself, from its activations."""

import math

import torch
from torch import Tensor, nn

from csl_dist.config import FeaturesConfig
from csl_dist.features.families.resnet import RESNETS, Resnet, boundary_channels, split_network
from csl_dist.training.models.head import classifier_head
from csl_dist.training.models.place import Place


class Cnn(nn.Module):
    """Logits of each frame from what the frozen stages of a ResNet put out.

    Padding does not reach the stages, whose BatchNorm sees the frames of a batch together.
    """

    sees_context = False
    is_normalised = False

    def __init__(
        self,
        *,
        num_features: int,
        num_classes: int,
        trainable_stages: int,
        encoder: str = "resnet18",
    ):
        super().__init__()
        self.channels = boundary_channels(encoder, trainable_stages)
        self.side = math.isqrt(num_features // self.channels)
        fresh = Resnet(FeaturesConfig(encoder=encoder, weights="random")).whole_network()
        _, self.stages = split_network(fresh, trainable_stages)
        self.norm = nn.BatchNorm1d(RESNETS[encoder])
        self.head = classifier_head(RESNETS[encoder], num_classes)

    def start_from(self, config: FeaturesConfig) -> None:
        """Takes over the weights that the stages have in the configured encoder."""
        _, stages = split_network(Resnet(config).whole_network(), len(self.stages) - 1)
        self.stages.load_state_dict(stages.state_dict())

    def features(self, x_ND: Tensor) -> Tensor:
        """The adapted encoder's features (N, D) of single frames."""
        x = x_ND.unflatten(-1, (self.channels, self.side, self.side))
        features: Tensor = self.stages(x.contiguous(memory_format=torch.channels_last))
        return features.flatten(1)

    def forward(self, x_BTD: Tensor, padding_BT: Tensor, place: Place) -> Tensor:
        real_BT = ~padding_BT
        logits_NC: Tensor = self.head(self.norm(self.features(x_BTD[real_BT])))
        logits_BTC = logits_NC.new_zeros(*padding_BT.shape, logits_NC.shape[-1])
        logits_BTC[real_BT] = logits_NC
        return logits_BTC
