"""The head alone: every frame by itself, blind to order."""

from torch import Tensor, nn

from csl_dist.training.models.head import classifier_head
from csl_dist.training.models.place import Place


class Framewise(nn.Module):
    """Logits of each frame from its own feature vector."""

    sees_context = False

    def __init__(self, *, num_features: int, num_classes: int):
        super().__init__()
        self.head = classifier_head(num_features, num_classes)

    def forward(self, x_BTD: Tensor, padding_BT: Tensor, place: Place) -> Tensor:
        logits_BTC: Tensor = self.head(x_BTD)
        return logits_BTC
