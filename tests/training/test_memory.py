"""What a training step takes, and windows where a worker's memory does not suffice."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from csl_dist.config import TrainConfig
from csl_dist.storage.url import Storage
from csl_dist.training.checkpoints import CheckpointInfo, CheckpointStore
from csl_dist.training.memory import MODEL_COPIES, longest_sequence, step_bytes
from csl_dist.training.models import ModelSpec, Place, build_scorer
from csl_dist.training.stage import Training, fitted_to_memory
from csl_dist.training.train import TrainingTask
from csl_dist.types import Annotation

TINY = ModelSpec(name="transformer", arguments={"preset": "tiny"}, num_features=8, num_classes=3)


class Pairs(nn.Module):
    """Compares every frame with every other, and keeps the table."""

    def __init__(self, *, num_features: int, num_classes: int):
        super().__init__()
        self.head = nn.Linear(num_features, num_classes)

    def forward(self, x_BTD: Tensor, padding_BT: Tensor) -> Tensor:
        table_BTT = (x_BTD @ x_BTD.transpose(1, 2)).softmax(dim=-1)
        logits: Tensor = table_BTT @ self.head(x_BTD)
        return logits


PAIRS = ModelSpec(name=f"{__name__}:Pairs", arguments={}, num_features=8, num_classes=3)


def kept_bytes(spec: ModelSpec, num_frames: int) -> float:
    """What a real step keeps, asked of torch for the long sequence itself."""
    scorer = build_scorer(spec).train()
    own = {p.untyped_storage().data_ptr() for p in scorer.parameters()}
    kept = {}

    def note(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        place = Place(torch.arange(num_frames)[None].float(), torch.tensor([float(num_frames)]))
        x = torch.zeros(1, num_frames, spec.num_features)
        outputs = scorer(x, torch.zeros(1, num_frames, dtype=torch.bool), place)
    del outputs
    return float(sum(size for pointer, size in kept.items() if pointer not in own))


@pytest.mark.parametrize("spec", [TINY, PAIRS], ids=["transformer", "all pairs"])
def test_two_short_sequences_tell_what_a_long_one_keeps(spec: ModelSpec) -> None:
    weights = sum(p.numel() * 4 for p in build_scorer(spec).parameters())
    kept = (step_bytes(spec, 2000) - MODEL_COPIES * weights) / 1.3
    assert kept == pytest.approx(kept_bytes(spec, 2000), rel=0.05)


@pytest.mark.parametrize("spec", [TINY, PAIRS], ids=["transformer", "all pairs"])
def test_longest_sequence_fits_and_the_next_does_not(spec: ModelSpec) -> None:
    memory = 1e9
    most = longest_sequence(spec, memory)
    assert step_bytes(spec, most) <= 0.8 * memory < step_bytes(spec, most + 1024)
    assert longest_sequence(spec, memory, on_gpu=True) > most, "bfloat16 takes less"
    assert longest_sequence(spec, 1.0) == 1024, "less would be no context"


def training(storage: Storage, num_frames: int, spec: ModelSpec = TINY) -> Training:
    annotation = Annotation(
        video="a", labels_T=np.zeros(num_frames, int), times_T=np.arange(num_frames) / 15
    )
    task = TrainingTask(
        scorer="transformer",
        fold=0,
        model=spec,
        config=TrainConfig(),
        classes=("a", "b", "c"),
        encoder="e",
        annotations=(annotation,),
        fingerprint="f",
    )
    return Training(task=task, features=None, checkpoints=CheckpointStore(storage))  # type: ignore[arg-type]


def fitted(training: Training, memory: float) -> int | None:
    return fitted_to_memory(training, lambda: memory, False).task.model.max_frames


def test_whole_videos_are_seen_where_memory_allows(storage: Storage) -> None:
    assert fitted(training(storage, 34_200), 24e9) is None
    most = fitted(training(storage, 34_200), 5e8)
    assert most is not None
    assert step_bytes(TINY, most) < 5e8


def test_short_videos_and_a_configured_length_need_no_estimate(storage: Storage) -> None:
    def never() -> float:
        raise AssertionError("memory was asked for")

    assert fitted_to_memory(training(storage, 8000), never, False).task.model.max_frames is None
    set_by_hand = training(storage, 34_200, replace(TINY, max_frames=500))
    assert fitted_to_memory(set_by_hand, never, False) is set_by_hand


def test_training_goes_on_with_the_windows_that_it_began_with(storage: Storage) -> None:
    begun = training(storage, 34_200)
    info = CheckpointInfo(
        scorer="transformer",
        fold=0,
        epoch=1,
        model=replace(TINY, max_frames=2048),
        classes=("a", "b", "c"),
        class_weights=(1.0, 1.0, 1.0),
        train_ids=("a",),
        encoder="e",
        training="f",
        metrics={},
    )
    begun.checkpoints.save(info, {"w": torch.zeros(1)}, {})
    assert fitted(begun, 24e9) == 2048, "though there is memory for more now"
