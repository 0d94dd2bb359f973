from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from csl_dist.cli.app import app
from csl_dist.config import parse_config
from csl_dist.errors import DataError, LockedError, StorageError
from csl_dist.features.catalog import catalog, chosen, damages, remove
from csl_dist.features.store import FeatureEntry, FeatureStore
from csl_dist.storage.lock import RootLock
from csl_dist.storage.paths import RunPaths
from csl_dist.storage.run_file import RunFile, put_run_file
from csl_dist.storage.url import Storage
from csl_dist.storage.zarr import open_array
from csl_dist.types import Span, Timeline, consecutive_spans

NUM_FRAMES, WIDTH, CHUNK = 10, 6, 4
ENCODER = "e" * 16
ENTRY = FeatureEntry(video="a/b", fingerprint="f" * 16)
SPANS = consecutive_spans(NUM_FRAMES, CHUNK)
VALUES = np.random.default_rng(0).normal(size=(NUM_FRAMES, WIDTH)).astype(np.float32)


def make_store(storage: Storage, *, width: int = WIDTH) -> FeatureStore:
    store = FeatureStore(storage, ENCODER, {ENTRY.video: ENTRY}, width)
    timeline = Timeline(times_T=np.arange(NUM_FRAMES) / 5, duration=2.0, source_fps=25.0)
    store.create(ENTRY, timeline, chunk_frames=CHUNK, dtype="float32", source={"size": 7})
    return store


def fill(store: FeatureStore, values: np.ndarray = VALUES) -> None:
    for span in SPANS:
        repeated = [1.2] if span.start == 4 else []
        store.write_chunk(ENTRY, span, values[span.start : span.stop], repeated=repeated)


def test_video_counts_once_it_is_finished_and_reads_back(storage: Storage) -> None:
    store = make_store(storage)
    assert store.missing_chunks(ENTRY, SPANS) == SPANS
    fill(store)
    assert store.missing_chunks(ENTRY, SPANS) == []
    assert store.missing() == ["a/b"]
    stored = store.finish(ENTRY, SPANS)
    assert store.missing() == []
    assert (stored.num_frames, stored.repeated) == (NUM_FRAMES, [1.2])
    assert store.stored(ENTRY) == stored
    assert np.array_equal(store.read("a/b"), VALUES)
    assert np.array_equal(store.read("a/b", slice(3, 7)), VALUES[3:7])
    order = np.array([7, 8, 2, 3, 0])
    assert np.array_equal(store.read("a/b", order), VALUES[order])
    assert store.timeline("a/b").source_fps == 25.0


def test_attributes_tell_what_the_features_are_of(storage: Storage) -> None:
    make_store(storage)
    attributes = dict(open_array(storage.child(ENCODER), f"{ENTRY.key}/features").attrs)
    assert attributes == {
        "encoder": ENCODER,
        "video": "a/b",
        "fingerprint": "f" * 16,
        "fps": pytest.approx(5.0),
        "source": {"size": 7},
    }


def test_chunk_that_was_never_written_is_not_read_as_numbers(storage: Storage) -> None:
    store = make_store(storage)
    store.write_chunk(ENTRY, SPANS[0], VALUES[:CHUNK])
    with pytest.raises(StorageError, match="has lost data"):
        store.read("a/b")


def test_wide_features_are_read_in_small_chunks_of_one_file(storage: Storage) -> None:
    """A quarter of a mebibyte a frame: four frames a file, each chunk at most a mebibyte."""
    width = 2**17
    store = make_store(storage, width=width)
    values = np.random.default_rng(1).normal(size=(NUM_FRAMES, width)).astype(np.float32)
    fill(store, values)
    array = open_array(storage.child(ENCODER), f"{ENTRY.key}/features")
    assert (array.shards, array.chunks) == ((CHUNK, width), (2, width))
    files = [key for key in storage.list_keys() if "/features/c/" in key]
    assert len(files) == len(SPANS)
    assert np.array_equal(store.read("a/b", slice(1, 6)), values[1:6])


def test_catalog_lists_finished_and_unfinished_videos(storage: Storage) -> None:
    store = make_store(storage)
    store.write_chunk(ENTRY, SPANS[0], VALUES[:CHUNK])
    [entry] = catalog(storage)
    assert entry.stored is None
    assert chosen([entry], encoder=None, videos=[], unfinished=True) == [entry]
    fill(store)
    store.finish(ENTRY, SPANS)
    [entry] = catalog(storage)
    assert (entry.encoder, entry.video, entry.fingerprint) == (ENCODER, "a/b", "f" * 16)
    assert entry.num_bytes > 0
    assert chosen([entry], encoder=ENCODER, videos=["a/b"], unfinished=False) == [entry]
    assert chosen([entry], encoder=None, videos=[], unfinished=True) == []
    with pytest.raises(DataError, match="no video 'x'; see `csl features ls`"):
        chosen([entry], encoder=None, videos=["x"], unfinished=False)
    with pytest.raises(DataError, match="no encoder 'x'"):
        chosen([entry], encoder="x", videos=[], unfinished=False)


@pytest.mark.parametrize("how", ["changed", "cut", "lost"])
def test_damage_is_found_with_its_frames(storage: Storage, how: str) -> None:
    store = make_store(storage)
    fill(store)
    store.finish(ENTRY, SPANS)
    assert list(damages(storage, catalog(storage))) == [[]]
    key = next(key for key in storage.list_keys() if key.endswith("/features/c/1/0"))
    if how == "changed":
        array = open_array(storage.child(ENCODER), f"{ENTRY.key}/features", writable=True)
        array[5, 0] = 1000.0
    elif how == "cut":
        storage.put(key, storage.read(key)[:-3])
    else:
        storage.delete(key)
    assert list(damages(storage, catalog(storage))) == [["4-8"]]


def test_removed_video_is_missing_again_and_leaves_nothing(storage: Storage) -> None:
    store = make_store(storage)
    fill(store)
    store.finish(ENTRY, SPANS)
    remove(storage, catalog(storage))
    assert store.missing() == ["a/b"]
    left = list(storage.list_keys())
    assert all(key.endswith("zarr.json") for key in left), "at most the empty folders' marks"
    assert catalog(storage) == []


def test_spans_cover_all_frames() -> None:
    assert consecutive_spans(5, 2) == [Span(0, 2), Span(2, 4), Span(4, 5)]
    assert consecutive_spans(4, 2) == [Span(0, 2), Span(2, 4)]


def test_folder_that_is_no_feature_store_is_neither_listed_nor_tidied(tmp_path: Path) -> None:
    mine = tmp_path / "docs/a/b/mine.txt"
    mine.parent.mkdir(parents=True)
    mine.write_text("kept")
    with pytest.raises(StorageError, match="neither a run root nor a feature store"):
        CliRunner().invoke(
            app, ["features", "rm", str(tmp_path), "--unfinished"], catch_exceptions=False
        )
    storage = Storage(str(tmp_path))
    storage.put(f"{ENCODER}/v0/{'1' * 16}/features/c/0/0", b"1")
    storage.put(f"{ENCODER}/a/b/mine", b"1")
    CliRunner().invoke(
        app, ["features", "rm", str(tmp_path), "--unfinished"], catch_exceptions=False
    )
    assert sorted(storage.list_keys()) == ["docs/a/b/mine.txt", f"{ENCODER}/a/b/mine"]


@pytest.mark.parametrize(
    "named", ["{}", "{}/features.zarr", "{}/features.zarr/", ".", "features.zarr"]
)
def test_features_of_a_run_that_is_written_to_are_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    monkeypatch.chdir(tmp_path)
    paths = RunPaths(Storage(str(tmp_path)))
    config = {"root": str(tmp_path), "dataset": {"path": str(tmp_path)}}
    run = RunFile(
        config=parse_config(config, where="the test"),
        classes=("a", "b"),
        num_held_out=1,
        folds=(0,),
        num_to_extract=0,
        encoder="",
        has_known_errors=False,
        versions={},
    )
    put_run_file(paths, run, [])
    paths.features.put(f"{ENCODER}/v0/{'1' * 16}/features/c/0/0", b"1")
    command = ["features", "rm", named.format(tmp_path), "--unfinished"]
    with RootLock(paths, "csl run"), pytest.raises(LockedError, match="csl run"):
        CliRunner().invoke(app, command, catch_exceptions=False)
    assert list(paths.features.list_keys())
    CliRunner().invoke(app, command, catch_exceptions=False)
    assert not list(paths.features.list_keys())
