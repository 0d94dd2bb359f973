"""The paper's classifier head: 512-128-32-C with LayerNorm, ReLU and dropout."""

from torch import nn

HEAD_WIDTH = 512


def classifier_head(num_inputs: int, num_classes: int) -> nn.Sequential:
    """Maps (…, num_inputs) to logits (…, num_classes). Paper: num_inputs is 512."""
    return nn.Sequential(
        nn.Linear(num_inputs, 128),
        nn.LayerNorm(128),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(128, 32),
        nn.LayerNorm(32),
        nn.ReLU(),
        nn.Dropout(0.3),
        nn.Linear(32, num_classes),
    )
