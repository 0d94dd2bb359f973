"""How much memory a training step takes, and how many frames fit into what a worker has.

The paper's temporal model sees a whole video at once. Whether that fits is told from the model:
what a step keeps for its backward pass is counted on two short sequences, for any length.
"""

import torch
from torch import Tensor

from csl_dist.training.models import ModelSpec, Place, Scorer, build_scorer

PROBE_FRAMES = 128
MODEL_COPIES = 4
"""Weights, gradients and AdamW's two moments."""
WORKING_SHARE = 1.3
"""Of what is kept for the backward pass: gradients on their way, and what the allocator wastes."""
USABLE_SHARE = 0.8
"""Of a worker's memory that training may take."""
HALF_SHARE = 0.6
"""Of what float32 keeps is left under CUDA's automatic bfloat16."""
STEP_FRAMES = 1024
"""Windows are chosen in such steps."""
FITS_ANYWHERE = 8192
"""Sequences up to this length are not reckoned with."""


def step_bytes(spec: ModelSpec, num_frames: int, *, on_gpu: bool = False) -> float:
    """Most bytes that a training step over one sequence of so many frames takes."""
    fixed, linear, square = _costs(spec)
    kept = (linear * num_frames + square * num_frames**2) * (HALF_SHARE if on_gpu else 1.0)
    return fixed + kept * WORKING_SHARE


def longest_sequence(spec: ModelSpec, memory_bytes: float, *, on_gpu: bool = False) -> int:
    """Frames of the longest sequence that a worker with so much memory can be trained on."""
    fixed, linear, square = _costs(spec)
    share = WORKING_SHARE * (HALF_SHARE if on_gpu else 1.0)
    room = (memory_bytes * USABLE_SHARE - fixed) / share
    if room <= 0:
        return STEP_FRAMES
    # The positive root of square * T^2 + linear * T = room, without loss where square is tiny.
    root = (linear**2 + 4 * square * room) ** 0.5
    return max(STEP_FRAMES, int(2 * room / (linear + root)) // STEP_FRAMES * STEP_FRAMES)


def _costs(spec: ModelSpec) -> tuple[float, float, float]:
    """Bytes of the model and its optimiser; those kept of a frame; and of a pair of frames."""
    scorer = build_scorer(spec).train()
    fixed = MODEL_COPIES * sum(p.numel() * p.element_size() for p in scorer.parameters())
    short, double = (_kept_bytes(scorer, spec, n) for n in (PROBE_FRAMES, 2 * PROBE_FRAMES))
    square = max(0.0, (double - 2 * short) / (2 * PROBE_FRAMES**2))
    return fixed, short / PROBE_FRAMES - square * PROBE_FRAMES, square


def _kept_bytes(scorer: Scorer, spec: ModelSpec, num_frames: int) -> float:
    """Bytes that a forward pass keeps for the backward one, beside the weights."""
    own = {parameter.untyped_storage().data_ptr() for parameter in scorer.parameters()}
    kept: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    index_BT = torch.arange(num_frames, dtype=torch.float32)[None]
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        # Held until all is counted: a buffer that is freed may be given out again.
        outputs = scorer(
            torch.zeros(1, num_frames, spec.num_features),
            torch.zeros(1, num_frames, dtype=torch.bool),
            Place(index_BT, torch.tensor([float(num_frames)])),
        )
    total = float(sum(kept.values()))
    del outputs
    return total
