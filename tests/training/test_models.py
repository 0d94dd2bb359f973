from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from csl_dist.config import FeaturesConfig
from csl_dist.errors import ConfigError
from csl_dist.features.encoders import Encoder
from csl_dist.features.families.resnet import Resnet, split_network, torchvision
from csl_dist.training.batches import padded_batch
from csl_dist.training.models import ModelSpec, Place, Transformer, build_scorer, sees_context
from csl_dist.training.models.head import classifier_head
from csl_dist.types import Span, Window

MODELS = [
    ("transformer", {"preset": "tiny"}),
    ("framewise", {}),
    ("mstcn", {"stages": 3, "layers": 4, "width": 8}),
    (f"{__name__}:UsersOwn", {"width": 6}),
]


class UsersOwn(nn.Module):
    """A model as a user brings it: features and padding in, logits out."""

    def __init__(self, *, num_features: int, num_classes: int, width: int):
        super().__init__()
        self.gru = nn.GRU(num_features, width, batch_first=True)
        self.out = nn.Linear(width, num_classes)

    def forward(self, x_BTD: Tensor, padding_BT: Tensor) -> Tensor:
        return self.out(self.gru(x_BTD)[0])


def spec(name: str, arguments: dict[str, object]) -> ModelSpec:
    return ModelSpec(name=name, arguments=arguments, num_features=16, num_classes=5)


def features(*lengths: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.normal(size=(n, 16)).astype(np.float32) for n in lengths]


def batch(videos: list[np.ndarray]) -> tuple[Tensor, Tensor, Place]:
    windows = [Window(str(i), Span(0, len(v)), len(v)) for i, v in enumerate(videos)]
    return padded_batch(windows, lambda window: videos[int(window.video)], torch.device("cpu"))


@pytest.mark.parametrize(("name", "arguments"), MODELS)
def test_padding_never_changes_a_real_frames_output(name: str, arguments: dict) -> None:
    torch.manual_seed(0)
    scorer = build_scorer(spec(name, arguments)).eval()
    videos = features(7, 12, 1, 9)
    with torch.inference_mode():
        together = scorer(*batch(videos))
        assert together.shape == (4, 12, 5)
        for row, video in zip(together, videos, strict=True):
            alone = scorer(*batch([video]))[0]
            assert torch.allclose(row[: len(video)], alone, atol=1e-5)


def test_framewise_is_blind_to_order_and_the_others_are_not() -> None:
    torch.manual_seed(0)
    video = features(10)[0]
    order = np.random.default_rng(1).permutation(10)
    for name, arguments in MODELS:
        scorer = build_scorer(spec(name, arguments)).eval()
        with torch.inference_mode():
            straight = scorer(*batch([video]))[0]
            shuffled = scorer(*batch([video[order]]))[0]
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
        assert torch.allclose(other(*batch([video])), plain, atol=1e-6)


def test_head_computes_the_papers_equation() -> None:
    head = classifier_head(512, 7)
    assert [m.p for m in head if isinstance(m, torch.nn.Dropout)] == [0.5, 0.3]
    w1, norm1, _, _, w2, norm2, _, _, w3 = head.eval()
    assert [tuple(w.weight.shape) for w in (w1, w2, w3)] == [(128, 512), (32, 128), (7, 32)]

    def layer_norm(x: torch.Tensor, norm: torch.nn.Module) -> torch.Tensor:
        deviation = (x.var(dim=-1, keepdim=True, correction=0) + 1e-5).sqrt()
        return (x - x.mean(dim=-1, keepdim=True)) / deviation * norm.weight + norm.bias

    h_TD = torch.randn(5, 512)
    u1 = layer_norm(h_TD @ w1.weight.T + w1.bias, norm1).clamp(min=0)
    u2 = layer_norm(u1 @ w2.weight.T + w2.bias, norm2).clamp(min=0)
    assert torch.allclose(head(h_TD), u2 @ w3.weight.T + w3.bias, atol=1e-5)


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
        ("lstm", {}, "'lstm' is not one of transformer, framewise, .* nor an import path"),
        ("no_such.module:Net", {}, "'no_such.module:Net' can't be imported .*No module named"),
        ("csl_dist.training.models:Missing", {}, "can't be imported .*AttributeError"),
        ("csl_dist.training.models:ModelSpec", {}, r"is not a subclass of torch\.nn\.Module"),
        ("transformer", {"preset": "huge"}, "preset 'huge' is not one of vit_b"),
        ("framewise", {"depth": 3}, "scorer model 'framewise': .*depth"),
    ],
)
def test_unknown_model_or_argument_is_refused(name: str, arguments: dict, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        build_scorer(spec(name, arguments))


def naive_convolution(x_DT: np.ndarray, conv: nn.Conv1d, dilation: int) -> np.ndarray:
    """Three taps, `dilation` apart, zero beyond the ends."""
    weight, bias = conv.weight.detach().numpy(), conv.bias.detach().numpy()
    num_frames = x_DT.shape[1]
    out = np.repeat(bias[:, None], num_frames, axis=1)
    for t in range(num_frames):
        for tap, place in enumerate((t - dilation, t, t + dilation)):
            if 0 <= place < num_frames:
                out[:, t] += weight[:, :, tap] @ x_DT[:, place]
    return out


def test_stage_of_mstcn_equals_a_naive_computation() -> None:
    torch.manual_seed(0)
    scorer = build_scorer(spec("mstcn", {"stages": 1, "layers": 3, "width": 8})).eval()
    [stage] = scorer.model.stages
    [video] = features(11)

    def pointwise(x_DT: np.ndarray, conv: nn.Conv1d) -> np.ndarray:
        return conv.weight.detach().numpy()[:, :, 0] @ x_DT + conv.bias.detach().numpy()[:, None]

    x = pointwise(video.T, stage.project_in)
    for i, layer in enumerate(stage.layers):
        seen = np.maximum(naive_convolution(x, layer.dilated, 2**i), 0)
        x = x + pointwise(seen, layer.mix)
    with torch.inference_mode():
        logits = scorer(*batch([video]))[0].numpy()
    assert np.abs(logits - pointwise(x, stage.project_out).T).max() < 1e-4


def test_mstcn_puts_out_every_stage_while_training() -> None:
    scorer = build_scorer(spec("mstcn", {"stages": 3, "layers": 2, "width": 8}))
    videos = features(6, 4)
    assert scorer.train()(*batch(videos)).shape == (3, 2, 6, 5)
    assert scorer.eval()(*batch(videos)).shape == (2, 6, 5)


@pytest.mark.parametrize("trainable_stages", [1, 2])
def test_cnn_that_starts_from_an_encoder_gives_its_features(trainable_stages: int) -> None:
    config = FeaturesConfig(weights="random", seed=5, size=32)
    frozen, _ = split_network(Resnet(config).whole_network().eval(), trainable_stages)
    pixels = np.random.default_rng(0).integers(0, 256, size=(4, 32, 32, 3), dtype=np.uint8)
    encoder = Encoder(config)
    with torch.inference_mode():
        activations = frozen(encoder.normalised(torch.from_numpy(pixels))).flatten(1)
    scorer = build_scorer(
        ModelSpec(
            name="cnn",
            arguments={"trainable_stages": trainable_stages},
            num_features=activations.shape[1],
            num_classes=3,
        )
    )
    scorer.model.start_from(config)
    scorer.eval()
    with torch.inference_mode():
        features_TD = scorer.model.features(activations).numpy()
    assert np.abs(features_TD - encoder.encode(pixels)).max() < 1e-4
    assert "feature_mean" not in scorer.state_dict(), "activations are taken as they are"


@pytest.mark.parametrize("training", [False, True])
def test_cnn_does_not_see_padding(training: bool) -> None:
    """Not even while training, where BatchNorm looks at all frames of a batch."""
    torch.manual_seed(0)
    spec = ModelSpec(
        name="cnn", arguments={"trainable_stages": 1}, num_features=256 * 4, num_classes=3
    )
    scorer = build_scorer(spec).train(training)
    scorer.model.head.eval()  # dropout would differ between two calls
    videos = [
        np.random.default_rng(i).random((n, 1024), dtype=np.float32) for i, n in ((1, 3), (2, 5))
    ]
    x, padding, place = batch(videos)
    together = scorer(x, padding, place)
    x[padding] = 1e6
    assert torch.equal(scorer(x, padding, place), together)
    assert together.shape == (2, 5, 3)
    if not training:
        [alone] = scorer(*batch(videos[:1]))
        assert torch.allclose(alone, together[0, :3], atol=1e-5)


def vision_transformer() -> nn.Module:
    """torchvision's, with the sizes of the preset `tiny`."""
    torch.manual_seed(0)
    made: nn.Module = torchvision().models.VisionTransformer(
        image_size=32, patch_size=16, num_layers=2, num_heads=4, hidden_dim=64, mlp_dim=256
    )
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.1)  # its own start has zeros, which would hide mistakes
    return made.eval()


def timm_names(state: dict[str, Tensor]) -> dict[str, Tensor]:
    pairs = (
        ("encoder.layers.encoder_layer_", "blocks."),
        ("ln_1", "norm1"),
        ("ln_2", "norm2"),
        ("self_attention.in_proj_", "attn.qkv."),
        ("self_attention.out_proj", "attn.proj"),
        ("mlp.0", "mlp.fc1"),
        ("mlp.3", "mlp.fc2"),
        ("encoder.ln", "norm"),
    )
    named = {}
    for name, tensor in state.items():
        for theirs, timms in pairs:
            name = name.replace(theirs, timms)
        named[name] = tensor
    return named


@pytest.mark.parametrize("rename", [dict, timm_names], ids=["torchvision", "timm"])
def test_pretrained_blocks_compute_what_the_vision_transformer_does(
    tmp_path: Path, rename: Callable[[dict[str, Tensor]], dict[str, Tensor]]
) -> None:
    vision, path = vision_transformer(), tmp_path / "vit.pt"
    torch.save(rename(vision.state_dict()), path)
    arguments = {"preset": "tiny", "pretrained": str(path)}
    scorer = build_scorer(spec("transformer", arguments)).eval()
    assert isinstance(scorer.model, Transformer)
    x_BTD = torch.randn(2, 9, 64)
    with torch.inference_mode():
        before = our_blocks(scorer.model, x_BTD)
        scorer.model.start_from_pretrained()
        expected = vision.encoder.ln(vision.encoder.layers(x_BTD))  # type: ignore[operator, union-attr]
        assert not torch.allclose(before, expected, atol=0.1)
        assert torch.allclose(our_blocks(scorer.model, x_BTD), expected, atol=1e-5)


def our_blocks(model: Transformer, x_BTD: Tensor) -> Tensor:
    for layer in model.layers:
        x_BTD = layer(x_BTD, None)
    out: Tensor = model.norm(x_BTD)
    return out


def test_model_with_pretrained_blocks_is_built_where_the_file_is_not() -> None:
    build_scorer(spec("transformer", {"preset": "tiny", "pretrained": "/nowhere.pt"}))


def test_pretrained_weights_of_another_size_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "vit.pt"
    torch.save(vision_transformer().state_dict(), path)
    small = build_scorer(spec("transformer", {"preset": "small", "pretrained": str(path)})).model
    assert isinstance(small, Transformer)
    with pytest.raises(ConfigError, match="does not fit the model"):
        small.start_from_pretrained()
    path.write_text("junk")
    with pytest.raises(ConfigError, match="can't read weights from"):
        small.start_from_pretrained()
