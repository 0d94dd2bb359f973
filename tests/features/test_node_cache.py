import numpy as np
import pytest

from csl_dist.features import node_cache as node_features
from csl_dist.features.node_cache import (
    NodeFeatures,
    as_small_as_exact,
    forget_node_folder,
    node_folder,
)
from csl_dist.features.store import ALL_FRAMES, Features, Frames
from csl_dist.types import Timeline

ROOT = "s3://bucket/a run for tests of node features"
VALUES = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)


class Source:
    """Counts how often it is read."""

    encoder = "made"

    def __init__(self, version: str = "1"):
        self.num_reads = 0
        self._version = version

    def missing(self) -> list[str]:
        return []

    def timeline(self, video: str) -> Timeline:
        return Timeline(times_T=np.arange(50) / 10, duration=5.0, source_fps=10.0)

    def width(self) -> int:
        return 4

    def fingerprint(self, video: str) -> str:
        return self._version

    def read(self, video: str, frames: Frames = ALL_FRAMES) -> Features:
        self.num_reads += 1
        return (VALUES + ord(video))[frames]


@pytest.fixture
def folder():  # type: ignore[no-untyped-def]
    yield node_folder(ROOT)
    forget_node_folder(ROOT)


def test_video_is_decoded_once_for_all_workers_of_a_machine(folder) -> None:  # type: ignore[no-untyped-def]
    first, second = Source(), Source()
    one, other = NodeFeatures(first, folder), NodeFeatures(second, folder)
    order = np.array([3, 1, 2])
    for reader in (one, other, one):
        assert np.array_equal(reader.read("a"), VALUES + 97)
        assert np.array_equal(reader.read("a", slice(5, 9)), (VALUES + 97)[5:9])
        assert np.array_equal(reader.read("b", order), (VALUES + 98)[order])
    assert (first.num_reads, second.num_reads) == (2, 0)


def test_changed_features_are_decoded_anew(folder) -> None:  # type: ignore[no-untyped-def]
    NodeFeatures(Source("1"), folder).read("a")
    changed = Source("2")
    NodeFeatures(changed, folder).read("a")
    assert changed.num_reads == 1


def test_without_room_the_source_is_read(folder, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(node_features, "MAX_SHARE", 10**18)
    source = Source()
    reader = NodeFeatures(source, folder)
    for _ in range(2):
        assert np.array_equal(reader.read("a", slice(2, 4)), (VALUES + 97)[2:4])
    assert source.num_reads == 2
    assert list(folder.iterdir()) == []


def test_folder_goes_when_it_is_forgotten(folder) -> None:  # type: ignore[no-untyped-def]
    NodeFeatures(Source(), folder).read("a")
    forget_node_folder(ROOT)
    assert not folder.exists()


def test_numbers_that_half_precision_holds_are_kept_in_it() -> None:
    exact = VALUES.astype(np.float16).astype(np.float32)
    assert as_small_as_exact(exact).dtype == np.float16
    assert np.array_equal(as_small_as_exact(exact), exact)
    for values in (VALUES, np.array([70_000.0], np.float32)):
        assert as_small_as_exact(values).dtype == np.float32
