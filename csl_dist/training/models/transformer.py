"""The paper's temporal Transformer: every frame in the light of the whole video."""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from csl_dist.errors import ConfigError
from csl_dist.training.models.head import HEAD_WIDTH, classifier_head
from csl_dist.training.models.place import Place

PRESETS = {
    "vit_b": {"layers": 12, "width": 768, "heads": 12, "hidden": 3072},
    "small": {"layers": 4, "width": 256, "heads": 4, "hidden": 1024},
    "tiny": {"layers": 2, "width": 64, "heads": 4, "hidden": 256},
}
"""Sizes by name; `vit_b` has those of ViT-B/16, the paper's."""

SHARE_SCALE = 100.0
"""The share of the video that has passed, 0 to 1, is encoded as a position from 0 to this."""


class Transformer(nn.Module):
    """Projection, pre-norm Transformer layers, projection to 512, classifier head."""

    sees_context = True

    def __init__(
        self,
        *,
        num_features: int,
        num_classes: int,
        preset: str = "vit_b",
        dropout: float = 0.1,
    ):
        super().__init__()
        if preset not in PRESETS:
            raise ConfigError(f"transformer preset {preset!r} is not one of {', '.join(PRESETS)}")
        size = PRESETS[preset]
        self.project_in = nn.Linear(num_features, size["width"])
        self.layers = nn.ModuleList(
            Layer(size["width"], size["heads"], size["hidden"], dropout)
            for _ in range(size["layers"])
        )
        self.norm = nn.LayerNorm(size["width"])
        self.project_out = nn.Linear(size["width"], HEAD_WIDTH)
        self.head = classifier_head(HEAD_WIDTH, num_classes)

    def forward(self, x_BTD: Tensor, padding_BT: Tensor, place: Place) -> Tensor:
        x = self.project_in(x_BTD)
        x = x + place_encoding(place, x.shape[-1]).to(x.dtype)
        # Without padding there is no mask, and attention may take its fastest kernel.
        attend = None if not padding_BT.any() else ~padding_BT[:, None, None, :]
        for layer in self.layers:
            x = layer(x, attend)
        logits_BTC: Tensor = self.head(self.project_out(self.norm(x)))
        return logits_BTC


class Layer(nn.Module):
    """Self-attention and MLP, each on a normalised input and added to it."""

    def __init__(self, width: int, heads: int, hidden: int, dropout: float):
        super().__init__()
        self.heads = heads
        self.norm_attention = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.mix = nn.Linear(width, width)
        self.norm_mlp = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x_BTD: Tensor, attend: Tensor | None) -> Tensor:
        x_BTD = x_BTD + self.dropout(self._attention(self.norm_attention(x_BTD), attend))
        out: Tensor = x_BTD + self.dropout(self.mlp(self.norm_mlp(x_BTD)))
        return out

    def _attention(self, x_BTD: Tensor, attend: Tensor | None) -> Tensor:
        qkv = self.qkv(x_BTD).unflatten(-1, (3, self.heads, -1))
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # each (B, heads, T, width / heads)
        mixed = scaled_dot_product_attention(q, k, v, attn_mask=attend)
        out: Tensor = self.mix(mixed.transpose(1, 2).flatten(2))
        return out


def place_encoding(place: Place, width: int) -> Tensor:
    """Encodings (B, T, width): half tell the share of the video, half tell neighbours apart."""
    share = sinusoids(place.share_BT() * SHARE_SCALE, width // 2)
    index = sinusoids(place.index_BT, width // 2)
    return torch.cat([share, index], dim=-1)


def sinusoids(position_BT: Tensor, width: int) -> Tensor:
    """Position encodings (B, T, width): sines and cosines of geometrically growing wavelength."""
    steps = torch.arange(0, width, 2, device=position_BT.device)
    angles = position_BT[..., None] * torch.exp(steps * (-math.log(10_000.0) / width))
    return torch.cat([angles.sin(), angles.cos()], dim=-1)
