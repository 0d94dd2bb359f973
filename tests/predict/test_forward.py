from dataclasses import replace

import numpy as np
import pytest
import torch
from made_checkpoint import SPEC, checkpoint

from csl_dist.errors import CheckpointError, CslError, LeakageError
from csl_dist.predict.checkpoints import refuse_leakage
from csl_dist.predict.forward import (
    each_log_probabilities,
    group_log_probabilities,
    require_finite,
    within_memory,
)
from csl_dist.predict.trajectories import Group
from csl_dist.predict.units import (
    PredictSlice,
    PredictUnit,
    plan_groups,
    row_of,
    split_slices,
    spread_over_groups,
)
from csl_dist.training.batches import padded_batch, windows_of
from csl_dist.training.models import build_scorer
from csl_dist.types import Annotation, Span, Window

CPU = torch.device("cpu")
LENGTHS = {"a": 12, "b": 5, "c": 30, "d": 7}


def read_features(window: Window) -> np.ndarray:
    rng = np.random.default_rng(ord(window.video))
    features_TD = rng.normal(size=(LENGTHS[window.video], 8)).astype(np.float32)
    return features_TD[window.span.start : window.span.stop]


def annotations() -> list[Annotation]:
    return [
        Annotation(video=v, labels_T=np.zeros(n, dtype=int), times_T=np.arange(n))
        for v, n in LENGTHS.items()
    ]


def one_group(features: dict[str, str]) -> Group:
    """All videos together, as they would be if their lengths were alike."""
    groups = plan_groups(annotations(), features, fold=0, group_frames=99)
    return Group(
        fold=0,
        videos=tuple(v for g in groups for v in g.videos),
        lengths=tuple(n for g in groups for n in g.lengths),
        features=tuple(made for g in groups for made in g.features),
    )


def test_groups_hold_like_lengths_up_to_the_limit() -> None:
    lengths = {"a": 100, "b": 103, "c": 98, "d": 1000, "e": 1010, "f": 10, "g": 101}
    videos = [
        Annotation(video=v, labels_T=np.zeros(n, dtype=int), times_T=np.arange(n))
        for v, n in lengths.items()
    ]
    groups = plan_groups(videos, dict.fromkeys(lengths, "f"), fold=0, group_frames=310)
    assert [g.videos for g in groups] == [("f",), ("c", "a", "b"), ("g",), ("d",), ("e",)]
    assert groups[1].lengths == (98, 100, 103)


def test_row_of_a_video_changes_with_what_it_is_made_of_and_not_with_its_neighbours() -> None:
    same = row_of(checkpoint(), "f", 10, "float16")
    assert row_of(checkpoint(epoch=9), "f", 10, "float16") == same, "weights count, not names"
    others = [
        row_of(checkpoint(content_hash="i"), "f", 10, "float16"),
        row_of(checkpoint(), "g", 10, "float16"),
        row_of(checkpoint(), "f", 11, "float16"),
        row_of(checkpoint(), "f", 10, "float32"),
    ]
    assert len({same, *others}) == 5


def test_groups_do_not_depend_on_the_order_of_videos() -> None:
    features = dict.fromkeys(LENGTHS, "f")
    forth = plan_groups(annotations(), features, fold=0, group_frames=20)
    back = plan_groups(annotations()[::-1], features, fold=0, group_frames=20)
    assert forth == back


def test_unit_changes_with_checkpoint_and_features() -> None:
    features = dict.fromkeys(LENGTHS, "f")
    group, other = one_group(features), one_group(features | {"a": "new"})
    units = [
        PredictUnit(checkpoint=checkpoint(), group=group, numbers="float16"),
        PredictUnit(checkpoint=checkpoint(content_hash="i"), group=group, numbers="float16"),
        PredictUnit(checkpoint=checkpoint(), group=other, numbers="float16"),
        PredictUnit(checkpoint=checkpoint(), group=group, numbers="float32"),
    ]
    assert len({unit.unit.fingerprint for unit in units}) == 4


def test_log_probabilities_equal_a_naive_loop() -> None:
    torch.manual_seed(0)
    scorer = build_scorer(SPEC).eval()
    group = one_group(dict.fromkeys(LENGTHS, "f"))
    got = group_log_probabilities(
        scorer, group, read_features, model=SPEC, batch_frames=36, device=CPU
    )
    naive = []
    for video in group.videos:
        whole = Window(video, Span(0, LENGTHS[video]), LENGTHS[video])
        with torch.inference_mode():
            logits = scorer(*padded_batch([whole], read_features, CPU))[0]
            naive.append(torch.log_softmax(logits, dim=-1).numpy())
    assert got.dtype == np.float32
    assert np.abs(got - np.concatenate(naive)).max() < 1e-4


@pytest.mark.parametrize("name", ["transformer", "framewise"])
def test_long_videos_run_in_windows_whose_logits_are_averaged(name: str) -> None:
    arguments = SPEC.arguments if name == "transformer" else {}
    spec = replace(SPEC, name=name, arguments=arguments, max_frames=8)
    torch.manual_seed(0)
    scorer = build_scorer(spec).eval()
    group = one_group(dict.fromkeys(LENGTHS, "f"))
    got = group_log_probabilities(
        scorer, group, read_features, model=spec, batch_frames=20, device=CPU
    )
    naive = []
    for video, length in zip(group.videos, group.lengths, strict=True):
        seen = [[] for _ in range(length)]
        for window in windows_of(video, length, spec):
            with torch.inference_mode():
                logits = scorer(*padded_batch([window], read_features, CPU))[0]
            for frame, row in zip(range(window.span.start, window.span.stop), logits, strict=True):
                seen[frame].append(row)
        naive += [torch.log_softmax(torch.stack(rows).mean(0), dim=-1) for rows in seen]
    assert np.abs(got - torch.stack(naive).numpy()).max() < 1e-4


def test_windowed_framewise_model_gives_what_it_gives_of_whole_videos() -> None:
    whole = replace(SPEC, name="framewise", arguments={})
    torch.manual_seed(0)
    scorer = build_scorer(whole).eval()
    group = one_group(dict.fromkeys(LENGTHS, "f"))
    outputs = [
        group_log_probabilities(
            scorer, group, read_features, model=spec, batch_frames=20, device=CPU
        )
        for spec in (whole, replace(whole, max_frames=4))
    ]
    assert np.abs(outputs[0] - outputs[1]).max() < 1e-5


def test_audit_of_trained_videos_is_refused_with_the_list() -> None:
    with pytest.raises(LeakageError, match="2 of the videos .*: x, y; .*allow_in_sample"):
        refuse_leakage(checkpoint(), ["a", "x", "y"], [])
    with pytest.raises(LeakageError, match="1 of the videos .*: y;"):
        refuse_leakage(checkpoint(), ["x", "y"], ["x"])
    refuse_leakage(checkpoint(), ["a", "b"], [])


def test_batch_is_halved_until_memory_suffices() -> None:
    tried = []

    def compute(batch_frames: int) -> np.ndarray:
        tried.append(batch_frames)
        if batch_frames > 30:
            raise torch.OutOfMemoryError("CUDA out of memory")
        if batch_frames > 20:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to …")
        return np.zeros(1, dtype=np.float32)

    _, sufficient = within_memory(compute, 100)
    assert tried == [100, 50, 25, 12]
    assert sufficient == 12


def test_memory_that_never_suffices_and_other_errors_are_told() -> None:
    def too_large(batch_frames: int) -> np.ndarray:
        raise MemoryError

    def broken(batch_frames: int) -> np.ndarray:
        raise RuntimeError("shapes do not fit")

    with pytest.raises(CslError, match="memory does not suffice for a single window"):
        within_memory(too_large, 8)
    with pytest.raises(RuntimeError, match="shapes do not fit"):
        within_memory(broken, 8)


def test_checkpoint_that_gives_nan_is_named() -> None:
    with pytest.raises(CheckpointError, match="transformer/fold-0/epoch-0001 gives NaN"):
        require_finite(np.array([[0.0, np.nan]], dtype=np.float32), checkpoint())


def made_slice(epoch: int, lengths: list[int]) -> PredictSlice:
    """A checkpoint with a unit for each length."""
    units = tuple(
        PredictUnit(
            checkpoint=checkpoint(epoch=epoch),
            group=Group(fold=0, videos=(f"v{n}",), lengths=(length,), features=(f"g{n}",)),
            numbers="float16",
        )
        for n, length in enumerate(lengths)
    )
    return PredictSlice(scorer="transformer", units=units, batch_frames=64)


def units_in(slices: list[PredictSlice]) -> list[PredictUnit]:
    return sorted(
        (unit for part in slices for unit in part.units),
        key=lambda unit: (unit.checkpoint.epoch, unit.group.fingerprint),
    )


@pytest.mark.parametrize("num_workers", [1, 2, 3, 5, 8, 50])
def test_slices_are_split_for_workers_that_would_have_none(num_workers: int) -> None:
    slices = [made_slice(1, [10, 20, 30]), made_slice(2, [10, 20, 30, 40, 50])]
    parts = split_slices(slices, num_workers)
    assert len(parts) == min(8, max(2, num_workers))
    assert units_in(parts) == units_in(slices)
    assert all(len({unit.checkpoint.epoch for unit in part.units}) == 1 for part in parts)


def test_largest_slice_is_split_first() -> None:
    parts = split_slices([made_slice(1, [10, 20]), made_slice(2, [100, 200])], 3)
    assert sorted(part.num_frames for part in parts) == [30, 100, 200]


def test_workers_begin_with_different_groups() -> None:
    a, b, c = ([made_slice(epoch, [length]) for epoch in (1, 2)] for length in (10, 20, 30))
    spread = spread_over_groups([*a, *b, *c], num_workers=2)
    assert spread == [a[0], b[0], a[1], b[1], *c]
    assert spread_over_groups([*a, *b, *c], num_workers=1) == [*a, *b, *c]


def test_checkpoints_together_give_the_same_bytes_as_each_alone() -> None:
    torch.manual_seed(0)
    scorers = [build_scorer(SPEC).eval() for _ in range(3)]
    scorers[2].set_normalisation(torch.full((8,), 0.5), torch.full((8,), 2.0))
    group = one_group(dict.fromkeys(LENGTHS, "f"))
    settings = {"model": SPEC, "batch_frames": 36, "device": CPU}
    together = each_log_probabilities(scorers, group, read_features, **settings)
    for scorer, got in zip(scorers, together, strict=True):
        alone = group_log_probabilities(scorer, group, read_features, **settings)
        assert np.array_equal(got, alone)
