"""The paper's temporal Transformer: every frame in the light of the whole video."""

import math
import re

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

TORCH_EPS, VISION_EPS = 1e-5, 1e-6
"""What LayerNorm adds to the variance: torch's own, and that of vision Transformers."""

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
        pretrained: str | None = None,
    ):
        """`pretrained` is the file of a vision Transformer's weights, of torchvision or timm, whose
        blocks a training starts from; the model itself never opens it."""
        super().__init__()
        self.pretrained = pretrained
        if preset not in PRESETS:
            raise ConfigError(f"transformer preset {preset!r} is not one of {', '.join(PRESETS)}")
        size = PRESETS[preset]
        eps = VISION_EPS if pretrained else TORCH_EPS
        self.project_in = nn.Linear(num_features, size["width"])
        self.layers = nn.ModuleList(
            Layer(size["width"], size["heads"], size["hidden"], dropout, eps=eps)
            for _ in range(size["layers"])
        )
        self.norm = nn.LayerNorm(size["width"], eps=eps)
        self.project_out = nn.Linear(size["width"], HEAD_WIDTH)
        self.head = classifier_head(HEAD_WIDTH, num_classes)

    def start_from_pretrained(self) -> None:
        """Takes over the blocks and the last norm of the pretrained file, where there is one."""
        if self.pretrained is None:
            return
        own = {"layers": self.layers.state_dict(), "norm": self.norm.state_dict()}
        weights = read_blocks(self.pretrained, len(self.layers))
        for part, expected in own.items():
            wrong = [
                name
                for name, tensor in expected.items()
                if name not in weights[part] or weights[part][name].shape != tensor.shape
            ]
            if wrong:
                raise ConfigError(
                    f"pretrained: {self.pretrained} does not fit the model: {len(wrong)} weights "
                    f"of its blocks are missing or of another shape ({wrong[0]})"
                )
        self.layers.load_state_dict(weights["layers"])
        self.norm.load_state_dict(weights["norm"])

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

    def __init__(
        self, width: int, heads: int, hidden: int, dropout: float, *, eps: float = TORCH_EPS
    ):
        super().__init__()
        self.heads = heads
        self.norm_attention = nn.LayerNorm(width, eps=eps)
        self.qkv = nn.Linear(width, 3 * width)
        self.mix = nn.Linear(width, width)
        self.norm_mlp = nn.LayerNorm(width, eps=eps)
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


BLOCK_NAMES = {
    # torchvision: encoder.layers.encoder_layer_0.ln_1.weight
    "ln_1": "norm_attention",
    "self_attention.in_proj_": "qkv.",
    "self_attention.out_proj": "mix",
    "ln_2": "norm_mlp",
    "mlp.linear_1": "mlp.0",
    "mlp.linear_2": "mlp.2",
    "mlp.3": "mlp.2",
    # timm: blocks.0.norm1.weight
    "norm1": "norm_attention",
    "attn.qkv": "qkv",
    "attn.proj": "mix",
    "norm2": "norm_mlp",
    "mlp.fc1": "mlp.0",
    "mlp.fc2": "mlp.2",
}
"""How others name the parts of a block, and how they are named here."""
BLOCK = re.compile(r"(?:encoder\.layers\.encoder_layer_|blocks\.)(\d+)\.(.+)")
LAST_NORM = re.compile(r"(?:encoder\.ln|norm)\.(weight|bias)")


def read_blocks(path: str, num_layers: int) -> dict[str, dict[str, Tensor]]:
    """The first blocks, and the last norm, of a vision Transformer's state dict, in our names."""
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        items = list(state.items())
    except Exception as error:  # the unpickler raises anything on a file that is not its own
        raise ConfigError(f"pretrained: can't read weights from {path} ({error})") from error
    found: dict[str, dict[str, Tensor]] = {"layers": {}, "norm": {}}
    for name, tensor in items:
        if (block := BLOCK.fullmatch(name)) and int(block[1]) < num_layers:
            part = block[2]
            for theirs, ours in BLOCK_NAMES.items():
                if part.startswith(theirs):
                    part = ours + part.removeprefix(theirs)
                    break
            found["layers"][f"{block[1]}.{part}"] = tensor
        elif norm := LAST_NORM.fullmatch(name):
            found["norm"][norm[1]] = tensor
    return found


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
