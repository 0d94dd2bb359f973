import numpy as np
import pytest
import torch

from csl_dist.batches import pad_features, plan_batches
from csl_dist.errors import ConfigError
from csl_dist.models import ModelSpec, build_scorer, sees_context

MODELS = [("transformer", {"preset": "tiny"}), ("framewise", {})]


def spec(name: str, arguments: dict[str, object]) -> ModelSpec:
    return ModelSpec(name=name, arguments=arguments, num_features=16, num_classes=5)


def features(*lengths: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.normal(size=(n, 16)).astype(np.float32) for n in lengths]


@pytest.mark.parametrize(("name", "arguments"), MODELS)
def test_padding_never_changes_a_real_frames_output(name: str, arguments: dict) -> None:
    torch.manual_seed(0)
    scorer = build_scorer(spec(name, arguments)).eval()
    videos = features(7, 12, 1, 9)
    with torch.inference_mode():
        together = scorer(*pad_features(videos))
        assert together.shape == (4, 12, 5)
        for row, video in zip(together, videos, strict=True):
            alone = scorer(*pad_features([video]))[0]
            assert torch.allclose(row[: len(video)], alone, atol=1e-5)


def test_framewise_is_blind_to_order_and_transformer_is_not() -> None:
    torch.manual_seed(0)
    video = features(10)[0]
    order = np.random.default_rng(1).permutation(10)
    for name, arguments in MODELS:
        scorer = build_scorer(spec(name, arguments)).eval()
        with torch.inference_mode():
            straight = scorer(*pad_features([video]))[0]
            shuffled = scorer(*pad_features([video[order]]))[0]
        moved = torch.allclose(straight[order], shuffled, atol=1e-4)
        assert moved is not sees_context(name)


def test_normalisation_travels_in_the_weights() -> None:
    scorer = build_scorer(spec("framewise", {}))
    scorer.set_normalisation(torch.full((16,), 2.0), torch.full((16,), 4.0))
    other = build_scorer(spec("framewise", {}))
    other.load_state_dict(scorer.state_dict())
    assert torch.equal(other.feature_mean, torch.full((16,), 2.0))
    video = features(3)[0]
    scorer.eval(), other.eval()
    with torch.inference_mode():
        plain = scorer.model(torch.from_numpy((video - 2) / 4)[None], None, None)
        assert torch.allclose(other(*pad_features([video])), plain, atol=1e-6)


def test_vit_b_has_the_size_of_vit_b_16() -> None:
    with torch.device("meta"):
        scorer = build_scorer(
            ModelSpec(name="transformer", arguments={}, num_features=512, num_classes=7)
        )
    in_layers = sum(p.numel() for p in scorer.model.layers.parameters())
    assert in_layers == 12 * (4 * 768**2 + 2 * 768 * 3072 + 4 * 768 + 3072 + 768 + 4 * 768)


@pytest.mark.parametrize(
    ("name", "arguments", "sentence"),
    [
        ("lstm", {}, "'lstm' is not one of transformer, framewise"),
        ("transformer", {"preset": "huge"}, "preset 'huge' is not one of vit_b"),
        ("framewise", {"depth": 3}, "scorer model 'framewise': .*depth"),
    ],
)
def test_unknown_model_or_argument_is_refused(name: str, arguments: dict, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        build_scorer(spec(name, arguments))


def test_batches_keep_order_and_stay_below_the_limit() -> None:
    lengths = [3, 3, 4, 9, 2, 30, 1]
    batches = plan_batches(lengths, 12)
    assert [i for batch in batches for i in batch] == list(range(len(lengths)))
    for batch in batches:
        padded = max(lengths[i] for i in batch) * len(batch)
        assert padded <= 12 or len(batch) == 1
