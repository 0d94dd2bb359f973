"""Arithmetic: what a checkpoint's model multiplies with, on CPUs and on GPUs.

`exact` is float32 on CPUs and bfloat16 on GPUs. `fast` is 8-bit integers on CPUs; on GPUs it is
CUDA graphs, which start a batch's kernels without Python, and 8-bit floats where the GPU has them.
"""

import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn
from torch.ao.quantization import quantize_dynamic

from csl_dist.config import PredictConfig
from csl_dist.errors import CheckpointError
from csl_dist.predict.forward import CPU_BATCH_FRAMES, diverged
from csl_dist.training.checkpoints import CheckpointInfo, State
from csl_dist.training.models import ModelSpec, Scorer, build_scorer

LEAST_NARROW_WEIGHTS = 1 << 17
"""Weights of a layer from which on its product is faster in 8 bits than all that comes with it.
Smaller ones stay as they are: those of `tiny`, `framewise` and the classifier head."""
FLOAT8_CAPABILITY = (8, 9)
"""Of the first GPUs that multiply 8-bit floats (Ada, Hopper)."""
PACKED_PRODUCT = "_linear_pointwise"


class Arithmetic:
    """Makes empty models, which also means compiles them, and fills them one checkpoint at a time.

    This is `exact`.
    """

    def __init__(self, config: PredictConfig, device: torch.device):
        self._config = config
        self._device = device

    def empty(self, model: ModelSpec) -> Scorer:
        """A model to fill again and again."""
        scorer = build_scorer(model).eval().to(self._device)
        if self._config.compile:
            scorer.model.compile(dynamic=True)
        return scorer

    def filled(self, scorer: Scorer, weights: State, checkpoint: CheckpointInfo) -> Scorer:
        """The model with a checkpoint's weights, ready to predict."""
        load_weights(scorer, weights, checkpoint)
        if not self._config.compile:  # which chooses products of its own
            lighten(scorer)
        return scorer


class Integers(Arithmetic):
    """`fast` on CPUs."""

    def filled(self, scorer: Scorer, weights: State, checkpoint: CheckpointInfo) -> Scorer:
        load_weights(scorer, weights, checkpoint)
        narrow = in_integers(scorer, checkpoint)
        if not self._config.compile:
            lighten(narrow)
        return narrow


class Graphs(Arithmetic):
    """`fast` on GPUs: every checkpoint sees batches of the same shapes, so that graphs repeat.

    A graph reads weights where they were when it was recorded: each checkpoint's are copied there.
    """

    def empty(self, model: ModelSpec) -> Scorer:
        self._model = model
        scorer = build_scorer(model).eval().to(self._device)
        if has_float8(self._device):
            in_float8(scorer)
        scorer.model.compile(mode="reduce-overhead", dynamic=True)
        return scorer

    def filled(self, scorer: Scorer, weights: State, checkpoint: CheckpointInfo) -> Scorer:
        if not has_float8(self._device):
            load_weights(scorer, weights, checkpoint)
            return scorer
        with self._device:  # made where it is filled
            narrow = build_scorer(self._model).eval()
        load_weights(narrow, weights, checkpoint)
        require_finite_weights(narrow, checkpoint)
        in_float8(narrow)
        copy_weights(narrow, scorer)
        return scorer


def arithmetic_of(config: PredictConfig, device: torch.device) -> Arithmetic:
    """What `predict.precision` means on a device."""
    if config.precision == "exact":
        return Arithmetic(config, device)
    return Integers(config, device) if device.type == "cpu" else Graphs(config, device)


def load_weights(scorer: Scorer, weights: State, checkpoint: CheckpointInfo) -> None:
    """Fills a model with a checkpoint's weights, which must be the model's."""
    try:
        scorer.load_state_dict(weights)
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[-1].strip()
        raise CheckpointError(
            f"checkpoint {checkpoint.place} does not fit its model: {reason}"
        ) from error


def lighten(scorer: Scorer) -> None:
    """Takes from a filled model's forward pass what costs time and changes nothing.

    Call it again whenever weights are loaded.
    """
    pack_weights(scorer)
    for layer in scorer.modules():
        if type(layer) is nn.Sequential and not layer.training:
            vars(layer)["forward"] = _straight(layer)  # instead of its class's


def pack_weights(scorer: Scorer) -> None:
    """Lays out the weights of a filled model's linear layers as oneDNN multiplies them on a CPU.

    They are multiplied in float32 as before, a tenth faster than by MKL, which torch uses otherwise
    and which orders them anew in every product. Where torch has no such product, which is not part
    of its public interface, layers stay as they are.
    """
    if not (torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, PACKED_PRODUCT)):
        return
    for layer in scorer.modules():
        if type(layer) is nn.Linear and _is_plain(layer.weight):
            vars(layer)["forward"] = _packed_product(layer)


def _is_plain(weight: Tensor) -> bool:
    return weight.device.type == "cpu" and weight.dtype == torch.float32


def _packed_product(layer: nn.Linear) -> Callable[[Tensor], Tensor]:
    packed = torch.ops.mkldnn._reorder_linear_weight(layer.weight.detach(), CPU_BATCH_FRAMES)
    multiply = getattr(torch.ops.mkldnn, PACKED_PRODUCT).default
    return lambda x: multiply(x, packed, layer.bias, "none", [], "")


def _straight(layers: nn.Sequential) -> Callable[[Tensor], Tensor]:
    """Layers one after the other, without the calls of modules and dropouts that do nothing, which
    take a small model some percent of its time."""
    at_work = [layer for layer in layers if type(layer) is not nn.Dropout]
    steps = [_step(*pair) for pair in zip(at_work, [None, *at_work], strict=False)]

    def forward(x: Tensor) -> Tensor:
        for step in steps:
            x = step(x)
        return x

    return forward


def _step(layer: nn.Module, before: nn.Module | None) -> Callable[[Tensor], Tensor]:
    if _has_hooks(layer):
        return layer
    if type(layer) is nn.LayerNorm:
        shape, weight, bias, eps = layer.normalized_shape, layer.weight, layer.bias, layer.eps
        return lambda x: torch.layer_norm(x, shape, weight, bias, eps)
    if type(layer) is nn.Linear:
        return layer.forward
    if type(layer) is not nn.ReLU:
        return layer
    # What these put out is theirs alone, and still in the CPU's cache.
    is_new = type(before) in (nn.Linear, nn.LayerNorm) and not _has_hooks(before)
    return torch.relu_ if is_new else torch.relu


def _has_hooks(layer: nn.Module | None) -> bool:
    return layer is not None and bool(layer._forward_hooks or layer._forward_pre_hooks)


def in_integers(scorer: Scorer, checkpoint: CheckpointInfo) -> Scorer:
    """A filled model whose large layers multiply 8-bit integers, scaled by each batch's range."""
    require_finite_weights(scorer, checkpoint)  # as integers, what is no number would give numbers
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torchao is to replace it, and has no such kernels yet
        large = set(large_layers(scorer))
        quantized: Scorer = quantize_dynamic(scorer, large, dtype=torch.qint8) if large else scorer
    return quantized


def has_float8(device: torch.device) -> bool:
    """Whether a GPU multiplies 8-bit floats, and torchao is there to ask it to."""
    if device.type != "cuda" or torch.version.hip or find_spec("torchao") is None:
        return False
    return torch.cuda.get_device_capability(device) >= FLOAT8_CAPABILITY


def in_float8(scorer: Scorer, config: Any = None) -> None:
    """Turns the large layers of a model into 8-bit floats, scaled by the range of each batch."""
    from torchao.quantization import (
        Float8DynamicActivationFloat8WeightConfig,
        PerTensor,
        quantize_,
    )

    large = set(large_layers(scorer))
    # A scale for each row would need all weights and activations in bfloat16.
    wanted = config or Float8DynamicActivationFloat8WeightConfig(granularity=PerTensor())
    quantize_(scorer, wanted, filter_fn=lambda layer, name: name in large)


def copy_weights(source: Scorer, target: Scorer) -> None:
    """Puts one model's numbers where another one's are, whatever type these have."""
    for own, other in zip(_tensors(target), _tensors(source), strict=True):
        own.copy_(other)


def _tensors(scorer: Scorer) -> list[Tensor]:
    return [*(parameter.data for parameter in scorer.parameters()), *scorer.buffers()]


def large_layers(scorer: Scorer) -> list[str]:
    """Linear layers that are worth fewer bits.

    The first one, which sees the features, stays as it is: rounded by their range, CSL of the demo
    had a rank correlation of .96 with the exact one (docs/LOG.md).
    """
    linear = [(n, part) for n, part in scorer.named_modules() if isinstance(part, nn.Linear)]
    return [name for name, layer in linear[1:] if layer.weight.numel() >= LEAST_NARROW_WEIGHTS]


def require_finite_weights(scorer: Scorer, checkpoint: CheckpointInfo) -> None:
    """Refuses weights that are not numbers."""
    if not all(parameter.isfinite().all() for parameter in scorer.parameters()):
        raise diverged(checkpoint)
