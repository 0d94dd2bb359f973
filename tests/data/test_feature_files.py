import gc
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import h5py
import numpy as np
import pytest
import zarr

from csl_dist.data.content import Contents
from csl_dist.data.feature_files import (
    feature_content,
    inspect,
    inspect_all,
    open_features,
    slackened,
)
from csl_dist.errors import DataError
from csl_dist.features.brought import ReadyEntry, ReadyFeatures
from csl_dist.features.source import DerivedFeatures, FeatureReader
from csl_dist.storage.url import Storage
from csl_dist.storage.zarr import create_array
from csl_dist.types import DerivedFrames, Span, Window

VALUES = np.random.default_rng(0).normal(size=(30, 8)).astype(np.float32)


def write(folder: Path, kind: str, values: np.ndarray) -> str:
    path = folder / f"features.{kind.partition('#')[0]}"
    if kind == "npy":
        np.save(path, values)
    elif kind == "txt":
        np.savetxt(path, values)
    elif kind.startswith("h5"):
        with h5py.File(path, "w") as file:
            file["video/one"] = values
    else:
        array = create_array(
            Storage(str(path)), "one", shape=values.shape, chunks=values.shape, dtype="float32"
        )
        array[:] = values
    return str(path) + kind[len(kind.partition("#")[0]) :]


@pytest.mark.parametrize("turned", [False, True], ids=["TD", "DT"])
@pytest.mark.parametrize("kind", ["npy", "txt", "h5", "h5#video/one", "zarr#one"])
def test_features_come_out_frames_first_whatever_the_file(
    tmp_path: Path, kind: str, turned: bool
) -> None:
    file = inspect(write(tmp_path, kind, VALUES.T if turned else VALUES), (30, 30))
    assert (file.num_frames, file.width, file.frames_last) == (30, 8, turned)
    assert np.allclose(file.read(), VALUES, atol=1e-6)


def test_zarr_arrays_of_the_older_format_are_read(tmp_path: Path) -> None:
    array = zarr.create_array(
        tmp_path / "features.zarr", shape=VALUES.shape, dtype="float32", zarr_format=2
    )
    array[:] = VALUES
    file = inspect(str(tmp_path / "features.zarr"), (30, 30))
    assert np.allclose(file.read(), VALUES)


def test_file_that_fits_neither_way_round_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "npy", VALUES)
    with pytest.raises(DataError, match="are 30 x 8, but the labels have 40 frames"):
        inspect(path, (40, 40))
    with pytest.raises(DataError, match="fits neither axis"):
        inspect(path, (29, 29))
    assert inspect(path, slackened((29, 29), True)).num_frames == 30


def test_file_with_three_axes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"must have two axes.*\(2, 3, 4\)"):
        inspect(write(tmp_path, "npy", np.zeros((2, 3, 4))), (2, 2))


@pytest.mark.parametrize("name", ["f.pkl", "f.pth"])
def test_pickle_is_refused_with_the_way_out(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(DataError, match="would run the code inside; convert it: np.save"):
        inspect(str(tmp_path / name), (1, 1))


def test_npy_that_holds_objects_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "f.npy", np.array([[{}]], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match=r"no array of numbers .*unpickling .* make it again"):
        inspect(str(tmp_path / "f.npy"), (1, 1))


def test_npy_that_is_something_else_is_refused_without_advice_to_unpickle_it(
    tmp_path: Path,
) -> None:
    for content in (b"no array", b"PK\x03\x04no zip", b"\x93NUMPY\x01\x00"):
        (tmp_path / "f.npy").write_bytes(content)
        with pytest.raises(DataError, match=r"no array of numbers .*make it again") as refused:
            inspect(str(tmp_path / "f.npy"), (1, 1))
        assert "allow_pickle" not in str(refused.value)


def test_hdf5_with_two_arrays_asks_for_a_name(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file["a"], file["b"] = VALUES, VALUES
    with pytest.raises(DataError, match=r"holds 2 two-axis arrays; name one as .*f\.h5#name"):
        inspect(str(tmp_path / "f.h5"), (30, 30))
    assert inspect(f"{tmp_path}/f.h5#b", (30, 30)).width == 8


def ready(tmp_path: Path, fps: float | None) -> ReadyFeatures:
    file = inspect(write(tmp_path, "npy", VALUES), (30, 30))
    return ReadyFeatures({"v": ReadyEntry(file=file, fps=10, fingerprint="f")}, fps)


def test_ready_features_can_be_sampled(tmp_path: Path) -> None:
    features = ready(tmp_path, 5)
    assert np.array_equal(features.read("v"), VALUES[::2])
    timeline = features.timeline("v")
    assert np.allclose(timeline.times_T, np.arange(15) / 5)
    assert timeline.duration == pytest.approx(3.0)
    assert features.width() == 8


def test_derived_video_shows_the_frames_of_its_original_in_its_order(tmp_path: Path) -> None:
    derived = {"copy": DerivedFrames(original="v", order_T=np.arange(30)[::-1].copy())}
    reader = FeatureReader(DerivedFeatures(ready(tmp_path, None), derived), max_bytes=10**6)
    assert np.array_equal(reader.read(Window("v", Span(0, 30), 30)), VALUES)
    whole = Window("copy", Span(0, 30), 30)
    assert np.array_equal(reader.read(whole), VALUES[::-1])
    assert np.shares_memory(reader.read(whole), reader.read(whole)), "read once, then kept"
    assert np.array_equal(reader.read(Window("copy", Span(4, 9), 30)), VALUES[::-1][4:9])


def test_reader_reads_windows_of_a_video_that_is_too_large_to_keep(tmp_path: Path) -> None:
    derived = {"v": DerivedFrames(original="v", order_T=np.arange(30)[::-1].copy())}
    source = DerivedFeatures(ready(tmp_path, None), derived)
    one_window = 5 * 8 * 4
    reader = FeatureReader(source, max_bytes=one_window)
    first, second = Window("v", Span(0, 5), 30), Window("v", Span(5, 10), 30)
    kept = reader.read(first)
    assert np.array_equal(kept, VALUES[::-1][:5])
    assert reader.read(first) is kept
    assert np.array_equal(reader.read(second), VALUES[::-1][5:10])
    assert reader.read(first) is not kept, "the bound holds one window"


@pytest.mark.parametrize("frames_last", [False, True])
def test_square_file_lies_as_the_others_do(tmp_path: Path, frames_last: bool) -> None:
    rng = np.random.default_rng(0)
    paths, expected = {}, {}
    for name, num_frames in (("a", 20), ("b", 8), ("c", 30)):
        values = rng.normal(size=(num_frames, 8))
        np.save(tmp_path / f"{name}.npy", values.T if frames_last else values)
        paths[name], expected[name] = str(tmp_path / f"{name}.npy"), (num_frames, num_frames)
    files, problems = inspect_all(paths, expected, frames_last=not frames_last, trim=False)
    assert not problems
    assert {file.frames_last for file in files.values()} == {frames_last}


def test_changed_chunk_of_a_zarr_array_is_noticed(tmp_path: Path) -> None:
    source = write(tmp_path, "zarr#one", VALUES)
    before = feature_content(source, Contents())
    assert feature_content(source, Contents()) == before
    chunk = next(p for p in (tmp_path / "features.zarr/one/c").rglob("*") if p.is_file())
    chunk.write_bytes(chunk.read_bytes() + b"x")
    assert feature_content(source, Contents()) != before


def test_lonely_square_file_lies_as_its_layout_has_it(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(16.0).reshape(4, 4))
    paths = {"a": str(tmp_path / "a.npy")}
    files, _ = inspect_all(paths, {"a": (4, 4)}, frames_last=True, trim=False)
    assert files["a"].frames_last


def test_empty_file_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "f.npy").write_bytes(b"")
    with pytest.raises(DataError, match="can't be read as features"):
        inspect(str(tmp_path / "f.npy"), (1, 1))


@pytest.fixture
def threads_switched_while_parsing() -> Iterator[None]:
    """Python code runs in the midst of C code, as a garbage collection may at any time."""
    callback = lambda *_: sum(range(50))  # noqa: E731
    thresholds, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.callbacks.append(callback)
    gc.set_threshold(5)
    sys.setswitchinterval(1e-6)
    yield
    gc.callbacks.remove(callback)
    gc.set_threshold(*thresholds)
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("threads_switched_while_parsing")
def test_npy_files_are_opened_by_many_threads_at_once(tmp_path: Path) -> None:
    path = write(tmp_path, "npy", VALUES)

    def shape(_: int) -> tuple[int, ...]:
        with open_features(path) as array:
            return tuple(array.shape)

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(shape, range(2000))) == {VALUES.shape}
