"""The frames that an encoder is adapted to, and activations that are decoded when they are read."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from builder import grey_pictures, write_video

from csl_dist.config import AdaptConfig, FeaturesConfig
from csl_dist.data.media.timeline import sampled
from csl_dist.data.media.video import VideoFile
from csl_dist.features.decoded import DecodedActivations
from csl_dist.features.encoders import Encoder
from csl_dist.features.families.resnet import Resnet, split_network
from csl_dist.features.node_cache import kept_on_node
from csl_dist.features.sample import Sample
from csl_dist.features.store import FeatureEntry, FeatureStore
from csl_dist.storage.url import Storage
from csl_dist.types import UNLABELLED, Annotation, DerivedFrames, Span

ADAPT = AdaptConfig(fps=2, max_frames=6)
CONFIG = FeaturesConfig(weights="random", size=32, chunk_frames=4, adapt=ADAPT)
TIMES_T = np.arange(40) / 10


def sample(**changes: object) -> Sample:
    return Sample.of(replace(ADAPT, **changes), frozenset(["a"]))  # type: ignore[arg-type]


def test_sample_has_so_many_frames_a_second_and_no_more_than_its_bound() -> None:
    assert sample(max_frames=100).frames("a", TIMES_T).tolist() == list(range(0, 40, 5))
    bounded = sample(fps=None).frames("a", TIMES_T)
    assert bounded.tolist() == [0, 8, 16, 23, 31, 39], "evenly spread, both ends among them"
    assert sample().frames("held out", TIMES_T).tolist() == []


def test_labels_of_a_sample_go_with_frames_that_were_moved() -> None:
    order_T = np.concatenate([np.arange(20, 40), np.arange(20)])
    labels_T = np.repeat([1, 0], 20)  # the halves were swapped, each with its labels
    whole = Annotation(video="a", labels_T=labels_T, times_T=TIMES_T)
    moved = sample().annotation(whole, DerivedFrames(original="a", order_T=order_T))
    assert moved.labels_T.tolist() == [0, 0, 0, 1, 1, 1], "frames 0 to 19 are class 0 as before"
    plain = sample().annotation(whole, None)
    assert plain.labels_T.tolist() == [1, 1, 1, 0, 0, 0]
    labels_T[:8] = UNLABELLED
    assert sample().annotation(whole, None).labels_T.tolist() == [-1, -1, 1, 0, 0, 0]


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> VideoFile:
    path = tmp_path_factory.mktemp("clip") / "a.mp4"
    write_video(path, grey_pictures(n * 6 for n in range(40)), fps=10)
    return VideoFile(str(path))


@pytest.fixture
def store(clip: VideoFile, storage: Storage) -> FeatureStore:
    """The sample of video `a`, and the times of `held out`, of which there are no features."""
    entries = {name: FeatureEntry(video=name, fingerprint=name) for name in ("a", "held out")}
    store = FeatureStore(storage, "frozen", entries, 256 * 4, sample=sample())
    timeline, _ = sampled(clip.times(), None)
    for name, entry in entries.items():
        spans = [Span(0, 4), Span(4, 6)] if name == "a" else []
        store.create(entry, timeline, chunk_frames=4, dtype="float16", source={})
        for span in spans:
            rows = np.full((len(span), 256 * 4), span.start, np.float32)
            store.write_chunk(entry, span, rows)
        assert store.finish(entry, spans).num_frames == (6 if name == "a" else 0)
    return store


def test_store_of_a_sample_has_all_times_and_features_of_few_frames(store: FeatureStore) -> None:
    assert store.missing() == []
    for name, num_rows in (("a", 6), ("held out", 0)):
        assert len(store.timeline(name).times_T) == 40
        assert store.read(name).shape == (num_rows, 256 * 4)
        assert store.damaged_chunks(store.entry(name)) == []


def test_decoded_activations_are_those_of_the_frozen_stages_in_any_order(
    clip: VideoFile, store: FeatureStore, tmp_path: Path
) -> None:
    source = DecodedActivations(store, {"a": clip, "held out": clip}, CONFIG)
    pixels = np.stack([np.asarray(frame) for frame in clip.decode(clip.times())])
    expected = Encoder(CONFIG).encode(pixels)
    assert expected.shape == (40, source.width())
    assert np.allclose(source.read("held out"), expected, atol=1e-5)
    order = np.array([30, 31, 2, 3, 3])
    assert np.allclose(source.read("a", order), expected[order], atol=1e-5)
    assert kept_on_node(source, tmp_path) is source, "no disk would hold them"


def test_adapted_encoders_share_the_frozen_stages(clip: VideoFile) -> None:
    pixels = np.stack([np.asarray(frame) for frame in clip.decode(clip.times()[:5])])
    whole = [replace(CONFIG, adapt=None, seed=seed) for seed in (0, 1)]
    tails = [split_network(Resnet(config).whole_network(), 1)[1].state_dict() for config in whole]
    ours, other = Encoder(CONFIG, adapted=tails).encode_adapted(pixels)
    assert np.abs(ours - Encoder(whole[0]).encode(pixels)).max() < 1e-4
    _, stages = split_network(Resnet(whole[1]).whole_network().eval(), 1)
    with torch.inference_mode():
        activations = torch.from_numpy(Encoder(CONFIG).encode(pixels)).view(5, 256, 2, 2)
        expected = stages(activations).flatten(1).numpy()
    assert np.abs(other - expected).max() < 1e-4
