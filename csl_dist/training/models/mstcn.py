"""A multi-stage temporal convolution network: dilated convolutions, each stage refining the last.

After Farha and Gall, "MS-TCN: Multi-Stage Temporal Convolutional Network for Action Segmentation".
"""

import torch
from torch import Tensor, nn

from csl_dist.training.models.place import Place


class MultiStageTcn(nn.Module):
    """Logits of every stage while training, of the last stage afterwards."""

    sees_context = True

    def __init__(
        self,
        *,
        num_features: int,
        num_classes: int,
        stages: int = 4,
        layers: int = 10,
        width: int = 64,
        dropout: float = 0.5,
    ):
        super().__init__()
        inputs = [num_features, *[num_classes] * (stages - 1)]
        self.stages = nn.ModuleList(
            Stage(num_inputs, num_classes, layers=layers, width=width, dropout=dropout)
            for num_inputs in inputs
        )

    def forward(self, x_BTD: Tensor, padding_BT: Tensor, place: Place) -> Tensor:
        real_B1T = ~padding_BT[:, None, :]
        x = x_BTD.transpose(1, 2)
        logits = []
        for stage in self.stages:
            x = stage(x, real_B1T)
            logits.append(x.transpose(1, 2))
            x = x.softmax(dim=1)
        return torch.stack(logits) if self.training else logits[-1]


class Stage(nn.Module):
    """Residual layers whose dilation doubles from one to the next."""

    def __init__(
        self, num_inputs: int, num_classes: int, *, layers: int, width: int, dropout: float
    ):
        super().__init__()
        self.project_in = nn.Conv1d(num_inputs, width, 1)
        self.layers = nn.ModuleList(Layer(width, 2**i, dropout) for i in range(layers))
        self.project_out = nn.Conv1d(width, num_classes, 1)

    def forward(self, x_BDT: Tensor, real_B1T: Tensor) -> Tensor:
        x = self.project_in(x_BDT)
        for layer in self.layers:
            x = layer(x, real_B1T)
        logits_BCT: Tensor = self.project_out(x)
        return logits_BCT


class Layer(nn.Module):
    """A dilated convolution over three frames, added to its input."""

    def __init__(self, width: int, dilation: int, dropout: float):
        super().__init__()
        self.dilated = nn.Conv1d(width, width, 3, padding=dilation, dilation=dilation)
        self.mix = nn.Conv1d(width, width, 1)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x_BDT: Tensor, real_B1T: Tensor) -> Tensor:
        # Padding is zero before every convolution, exactly as what lies beyond a video's end.
        x_BDT = x_BDT * real_B1T
        out: Tensor = x_BDT + self.dropout(self.mix(self.dilated(x_BDT).relu()))
        return out
