"""Floating-point operations of networks, counted on what is short and extended to what is long."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from csl_dist.config import FeaturesConfig
from csl_dist.features.families import family_of
from csl_dist.features.families.resnet import Resnet, split_network
from csl_dist.training.batches import windows_of
from csl_dist.training.models import ModelSpec, Place, Scorer, build_scorer

TRAIN_FACTOR = 3
"""Forward and backward pass over the forward pass alone."""
PROBE_FRAMES = 64


def encoder_flops(config: FeaturesConfig) -> tuple[float, float]:
    """Of one frame, in the frozen stages of all encoders and in those that are adapted."""
    if config.adapt is None:
        return sum(_network_flops(one) for one in config.sets()), 0.0
    with torch.device("meta"):
        resnet = Resnet(replace(config, weights="random")).whole_network()
    frozen, last = split_network(resnet, config.adapt.trainable_stages)
    first, x = _flops(frozen, torch.zeros(1, 3, config.size, config.size, device="meta"))
    return first, _flops(last, x)[0]


def _network_flops(config: FeaturesConfig) -> float:
    # Of the user's own code nobody knows whether it works without numbers.
    device = "cpu" if ":" in config.encoder else "meta"
    with torch.device(device):
        network = family_of(replace(config, weights="random")).network()
    return _flops(network, torch.zeros(1, 3, config.size, config.size, device=device))[0]


def _flops(network: nn.Module, x: Tensor) -> tuple[float, Tensor]:
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        output = network.eval()(x)
    return float(counter.get_total_flops()), output


def forward_flops(spec: ModelSpec, lengths: Sequence[int]) -> float:
    """Floating-point operations of a forward pass over videos of these lengths, in windows.

    Two counts on short sequences give the part that grows with the frames and the part that grows
    with their square, which attention has.
    """
    scorer = build_scorer(spec).eval()
    short = _counted_flops(scorer, spec.num_features, PROBE_FRAMES)
    double = _counted_flops(scorer, spec.num_features, 2 * PROBE_FRAMES)
    square = max(0.0, (double - 2 * short) / (2 * PROBE_FRAMES**2))
    linear = short / PROBE_FRAMES - square * PROBE_FRAMES

    def of_video(length: int) -> float:
        windows = [len(window.span) for window in windows_of("", length, spec)]
        return sum(linear * frames + square * frames**2 for frames in windows)

    return sum(of_video(length) * count for length, count in Counter(lengths).items())


@torch.inference_mode()
def _counted_flops(scorer: Scorer, num_features: int, num_frames: int) -> float:
    index_BT = torch.arange(num_frames, dtype=torch.float32)[None]
    # The counter knows the matrix products of plain attention, not the CPU's fused kernel.
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        scorer(
            torch.zeros(1, num_frames, num_features),
            torch.zeros(1, num_frames, dtype=torch.bool),
            Place(index_BT, torch.tensor([float(num_frames)])),
        )
    return float(counter.get_total_flops())
