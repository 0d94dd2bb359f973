"""Weights packed, in integers, in 8-bit floats: filled again and again, nearly the same numbers."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from made_checkpoint import SPEC, checkpoint

from csl_dist.config import PredictConfig
from csl_dist.errors import CheckpointError
from csl_dist.predict import arithmetic
from csl_dist.predict.arithmetic import (
    Arithmetic,
    Graphs,
    Integers,
    arithmetic_of,
    copy_weights,
    has_float8,
    in_float8,
    in_integers,
    lighten,
    load_weights,
)
from csl_dist.training.models import ModelSpec, Place, Scorer, build_scorer

SMALL = replace(SPEC, arguments={"preset": "small"})
CPU, GPU = torch.device("cpu"), torch.device("cuda")


@torch.inference_mode()
def outputs(scorer: Scorer, spec: ModelSpec = SPEC) -> Any:
    """Logits of some frames, as a vector."""
    rng = torch.Generator().manual_seed(1)
    x_BTD = torch.randn(2, 20, spec.num_features, generator=rng)
    place = Place(torch.arange(20.0).expand(2, -1), torch.full((2,), 20.0))
    return scorer(x_BTD, torch.zeros(2, 20, dtype=torch.bool), place).numpy().ravel()


@pytest.mark.parametrize(
    ("precision", "device", "kind"),
    [
        ("exact", CPU, Arithmetic),
        ("exact", GPU, Arithmetic),
        ("fast", CPU, Integers),
        ("fast", GPU, Graphs),
    ],
)
def test_precision_means_another_thing_on_each_device(
    precision: Any, device: torch.device, kind: type
) -> None:
    assert type(arithmetic_of(PredictConfig(precision=precision), device)) is kind


@pytest.mark.parametrize("precision", ["exact", "fast"])
def test_a_model_is_filled_with_one_checkpoint_after_another(precision: Any) -> None:
    torch.manual_seed(0)
    own_arithmetic = arithmetic_of(PredictConfig(precision=precision), CPU)
    empty = own_arithmetic.empty(SMALL)
    for _ in range(2):
        own = build_scorer(SMALL).eval()
        filled = own_arithmetic.filled(empty, own.state_dict(), checkpoint())
        assert np.corrcoef(outputs(filled, SMALL), outputs(own, SMALL))[0, 1] > 0.999


def test_float8_is_asked_of_gpus_that_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    capability = (8, 9)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    assert has_float8(GPU)
    assert not has_float8(CPU)
    capability = (8, 0)
    assert not has_float8(GPU)


def test_float8_weights_of_the_next_checkpoint_are_put_where_a_graph_reads_them() -> None:
    # Products of two 8-bit floats need a GPU; weights alone in 8 bits do not.
    from torchao.quantization import Float8WeightOnlyConfig

    torch.manual_seed(0)
    kept, fresh, exact = (build_scorer(SMALL).eval() for _ in range(3))
    load_weights(fresh, exact.state_dict(), checkpoint())
    for scorer in (kept, fresh):
        in_float8(scorer, Float8WeightOnlyConfig())
    layer = kept.model.layers[0].qkv
    assert type(layer.weight).__name__ == "Float8Tensor"
    assert type(kept.model.project_in.weight.data) is torch.Tensor
    before = [p.data_ptr() for p in (layer.weight.qdata, layer.weight.scale, layer.bias)]
    assert not np.array_equal(outputs(kept, SMALL), outputs(fresh, SMALL))
    copy_weights(fresh, kept)
    assert np.array_equal(outputs(kept, SMALL), outputs(fresh, SMALL))
    assert [p.data_ptr() for p in (layer.weight.qdata, layer.weight.scale, layer.bias)] == before
    assert np.corrcoef(outputs(kept, SMALL), outputs(exact, SMALL))[0, 1] > 0.99


def test_graphs_are_filled_with_one_checkpoint_after_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # What needs a GPU is left out: recording graphs, and products of two 8-bit floats.
    from torchao.quantization import Float8WeightOnlyConfig

    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(torch.nn.Module, "compile", lambda module, **how: asked.append(how))
    monkeypatch.setattr(arithmetic, "has_float8", lambda device: True)
    monkeypatch.setattr(
        arithmetic, "in_float8", lambda scorer: in_float8(scorer, Float8WeightOnlyConfig())
    )
    torch.manual_seed(0)
    graphs = Graphs(PredictConfig(precision="fast"), CPU)
    empty = graphs.empty(SMALL)
    for _ in range(2):
        own = build_scorer(SMALL).eval()
        filled = graphs.filled(empty, own.state_dict(), checkpoint())
        assert filled is empty
        assert np.corrcoef(outputs(filled, SMALL), outputs(own, SMALL))[0, 1] > 0.99
    assert asked == [{"mode": "reduce-overhead", "dynamic": True}], "compiled once"


def test_integers_give_nearly_the_same_and_refuse_what_is_no_number() -> None:
    torch.manual_seed(0)
    spec = SMALL
    scorer = build_scorer(spec).eval()
    exact, fast = (outputs(one, spec) for one in (scorer, in_integers(scorer, checkpoint())))
    assert not np.array_equal(exact, fast)
    assert np.corrcoef(exact, fast)[0, 1] > 0.999
    with torch.no_grad():
        next(scorer.parameters())[0] = torch.nan
    with pytest.raises(CheckpointError, match="epoch-0001 gives NaN"):
        in_integers(scorer, checkpoint())


def test_small_layers_stay_exact_because_integers_gain_nothing_there() -> None:
    scorer = build_scorer(SPEC).eval()
    assert in_integers(scorer, checkpoint()) is scorer


def test_the_layer_that_sees_features_stays_exact_however_large() -> None:
    spec = replace(SPEC, arguments={"preset": "small"}, num_features=1024)
    model = in_integers(build_scorer(spec).eval(), checkpoint()).model
    assert type(model.project_in) is torch.nn.Linear
    assert type(model.layers[0].qkv) is not torch.nn.Linear


def test_weights_of_another_model_are_named() -> None:
    scorer = build_scorer(SPEC)
    other = build_scorer(replace(SPEC, num_classes=5))
    with pytest.raises(CheckpointError, match="transformer/fold-0/epoch-0001 does not fit its mod"):
        load_weights(scorer, other.state_dict(), checkpoint())


@pytest.mark.parametrize("model", ["transformer", "framewise", "mstcn"])
def test_lightened_model_gives_the_same_numbers_whenever_weights_are_loaded(model: str) -> None:
    torch.manual_seed(0)
    spec = replace(SPEC, name=model, arguments=SPEC.arguments if model == SPEC.name else {})
    plain, light = (build_scorer(spec).eval() for _ in range(2))
    lighten(light)
    load_weights(light, plain.state_dict(), checkpoint())
    lighten(light)
    assert np.abs(outputs(light) - outputs(plain)).max() < 1e-5


def test_layers_of_a_user_keep_their_hooks_when_a_model_is_lightened() -> None:
    seen: list[torch.Tensor] = []
    scorer = build_scorer(replace(SPEC, name="framewise", arguments={})).eval()
    norm = next(part for part in scorer.modules() if isinstance(part, torch.nn.LayerNorm))
    norm.register_forward_hook(lambda _layer, _inputs, output: seen.append(output))
    lighten(scorer)
    outputs(scorer)
    assert (seen[0] < 0).any(), "what a hook keeps is not overwritten by the layer after it"
