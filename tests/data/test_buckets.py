"""Datasets that lie in a bucket: the same labels, frames and features, in few requests."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from builder import grey_pictures, write_video
from format_files import FPS, SAMPLES, TIMES_T, write_sample
from layout_files import WRITERS, touch
from lerobot_files import write_lerobot
from PIL import Image
from s3_server import BUCKET, FaultyProxy

from csl_dist.config import DatasetConfig, ManifestConfig
from csl_dist.data.check import look_at_videos
from csl_dist.data.content import Contents
from csl_dist.data.feature_files import feature_content, inspect
from csl_dist.data.init import draft_config, recognise
from csl_dist.data.layouts import open_dataset
from csl_dist.data.media.pixels import pixel_source
from csl_dist.data.media.sources import media_of
from csl_dist.errors import DataError
from csl_dist.storage.files import place
from csl_dist.storage.url import Storage
from csl_dist.types import Media, Split, Video

Upload = Callable[[Path], str]


@pytest.fixture
def upload(proxy: FaultyProxy, request: pytest.FixtureRequest) -> Upload:
    """Copies a folder to the bucket; its URL."""

    def copied(folder: Path) -> str:
        remote = Storage(f"s3://{BUCKET}/{request.node.name}/{folder.name}")
        for file in folder.rglob("*"):
            if file.is_file():
                remote.put(str(file.relative_to(folder)), file.read_bytes())
        proxy.requests.clear()
        return remote.url

    return copied


def config_at(config: DatasetConfig, folder: Path, url: str) -> DatasetConfig:
    return replace(config, path=config.path.replace(str(folder), url))


def without_place(text: str, folder: str) -> str:
    return text.replace(folder, "…")


LAYOUTS = {**WRITERS, "lerobot": lambda root: write_lerobot(root, videos=False)}


@pytest.mark.parametrize("layout", [*LAYOUTS, *SAMPLES])
def test_dataset_in_a_bucket_is_the_one_on_disk(
    tmp_path: Path, upload: Upload, proxy: FaultyProxy, layout: str
) -> None:
    folder = tmp_path / "data"
    config = LAYOUTS[layout](folder) if layout in LAYOUTS else write_sample(layout, folder)
    local = open_dataset(config)
    url = upload(folder)
    remote = open_dataset(config_at(config, folder, url))
    assert remote.classes == local.classes
    for near, far in zip(local.videos, remote.videos, strict=True):
        assert far == replace(near, labels=far.labels, source=far.source)
        assert without_place(far.source, url) == without_place(near.source, str(folder))
        assert without_place(far.labels, url) == without_place(near.labels, str(folder))
        far_T = remote.track(far).at(TIMES_T)
        assert far_T.tolist() == local.track(near).at(TIMES_T).tolist()
    listings = [path for method, path in proxy.requests if "list-type=2" in path]
    assert len(listings) <= 3, "of the folder, and of what lies beside it or below"
    others = [path for method, path in proxy.requests if method == "HEAD"]
    assert len(others) <= (2 if layout == "epic_kitchens" else 0), "no request for each file"


@pytest.mark.parametrize("layout", ["cholec80", "elan", "epic_kitchens", "segments"])
def test_dataset_in_a_bucket_is_recognised_and_drafted(
    tmp_path: Path, upload: Upload, layout: str
) -> None:
    folder = tmp_path / "data"
    (WRITERS[layout] if layout in WRITERS else lambda root: write_sample(layout, root))(folder)
    url = upload(folder)
    assert recognise(place(url)) == layout
    near = draft_config(layout, folder, tmp_path / "near.yaml")
    far = draft_config(layout, place(url), tmp_path / "far.yaml")
    assert {**far.dataset, "path": ""} == {**near.dataset, "path": ""}
    assert str(far.dataset["path"]) == str(near.dataset["path"]).replace(str(folder), url)


@pytest.fixture
def filmed(tmp_path: Path) -> Path:
    """A manifest of one video of 90 noisy frames."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "filmed"
    pictures = (rng.integers(0, 255, (96, 96, 3), dtype=np.uint8) for _ in range(90))
    options = {"preset": "ultrafast", "g": "10", "movflags": "faststart", "crf": "4"}
    write_video(folder / "videos/v.mp4", pictures, fps=FPS, options=options)
    touch(folder / "labels/v.txt", "cut\n" * 50 + "stir\n" * 40)
    touch(folder / "manifest.csv", f"id,source,labels,fps\nv,videos/v.mp4,labels/v.txt,{FPS}\n")
    return folder


def test_video_in_a_bucket_has_the_same_frames_and_is_read_in_ranges(
    filmed: Path, upload: Upload, proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    from csl_dist.storage import url as module

    monkeypatch.setattr(module, "READ_AHEAD_BYTES", 1 << 14)
    near = open_dataset(ManifestConfig(path=str(filmed))).videos[0]
    far = open_dataset(ManifestConfig(path=upload(filmed))).videos[0]
    times_T = pixel_source(near).times()
    assert pixel_source(far).times().tolist() == times_T.tolist()
    wanted_T = times_T[[50, 51, 55]]
    proxy.requests.clear()
    frames = zip(
        pixel_source(near).decode(wanted_T), pixel_source(far).decode(wanted_T), strict=True
    )
    for one, two in frames:
        np.testing.assert_array_equal(one, two)  # type: ignore[arg-type]
    size = Path(near.source).stat().st_size
    num_reads = sum(method == "GET" for method, _ in proxy.requests)
    assert num_reads * (1 << 14) < 0.6 * size, "a part of the file is fetched"
    contents = Contents()
    assert contents.of_video(far.source) == contents.of_video(near.source)


def test_check_reads_everything_from_the_bucket(filmed: Path, upload: Upload) -> None:
    config = ManifestConfig(path=upload(filmed))
    [found] = look_at_videos(open_dataset(config), config)
    assert found.problems == ()
    assert found.class_frames_C is not None
    assert found.class_frames_C.tolist() == [50, 40]


def test_features_and_frames_in_a_bucket_are_those_on_disk(tmp_path: Path, upload: Upload) -> None:
    folder = tmp_path / "features"
    folder.mkdir()
    features_TD = np.random.default_rng(0).normal(size=(20, 6)).astype(np.float32)
    np.save(folder / "a.npy", features_TD)
    np.savetxt(folder / "a.txt", features_TD)
    with h5py.File(folder / "a.h5", "w") as file:
        file["x"] = features_TD
    (folder / "frames/v").mkdir(parents=True)
    for number, picture in enumerate(grey_pictures([10, 90, 200])):
        Image.fromarray(picture).save(folder / f"frames/v/{number:06d}.png")
    url = upload(folder)
    contents = Contents()
    for name in ("a.npy", "a.txt", "a.h5"):
        far = inspect(f"{url}/{name}", (20, 20))
        np.testing.assert_allclose(far.read(), features_TD, rtol=1e-6)
        near_content = feature_content(str(folder / name), contents)
        assert feature_content(f"{url}/{name}", contents) == near_content
    assert media_of(f"{url}/frames/v") is Media.FRAMES
    video = Video(
        id="v",
        split=Split.AUDIT,
        labels="",
        source=f"{url}/frames/v",
        media=Media.FRAMES,
        source_fps=FPS,
    )
    source = pixel_source(video)
    assert source.times().tolist() == [0.0, 0.1, 0.2]
    assert [int(np.mean(frame)) for frame in source.decode(source.times())] == [10, 90, 200]  # type: ignore[arg-type]
    assert source.content(contents) == contents.of_folder(str(folder / "frames/v"))


def test_what_is_missing_in_a_bucket_is_one_sentence(filmed: Path, upload: Upload) -> None:
    url = upload(filmed)
    with pytest.raises(DataError, match=f"{url}/none.csv: there is no such file"):
        open_dataset(ManifestConfig(path=f"{url}/none.csv"))
    with pytest.raises(
        DataError, match=r"https://.* can't be listed; name its files in a manifest"
    ):
        recognise(place("https://example.com/data"))
