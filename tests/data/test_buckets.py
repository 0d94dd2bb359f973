"""Datasets that lie in a bucket: the same labels, frames and features, in few requests."""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from builder import grey_pictures, write_video
from format_files import FPS, SAMPLES, TIMES_T, write_sample
from layout_files import WRITERS, touch
from lerobot_files import write_lerobot
from obstore.store import ObjectStore, from_url
from PIL import Image
from s3_server import BUCKET, FaultyProxy
from web_server import WebServer, certificate, web_server

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
    assert len(listings) <= 2, "of the folder, and of what lies beside it"
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


def test_contents_that_are_noted_take_no_request_a_file(
    tmp_path: Path, upload: Upload, proxy: FaultyProxy
) -> None:
    folder, names = tmp_path / "data", [f"v{i}" for i in range(6)]
    rows = "".join(f"{name},{name}.npy,{name}.txt,{FPS}\n" for name in names)
    touch(folder / "manifest.csv", f"id,source,labels,fps\n{rows}")
    for number, name in enumerate(names):
        np.save(folder / f"{name}.npy", np.full((4, 3), number, np.float32))
        touch(folder / f"{name}.txt", "cut\nstir\nstir\ncut\n")
    url = upload(folder)
    config, contents = ManifestConfig(path=url), Contents()

    def digests() -> list[str]:
        videos = open_dataset(config).videos
        return [feature_content(video.source, contents) for video in videos]

    first = digests()
    assert len(set(first)) == len(names)
    proxy.requests.clear()
    assert digests() == first
    asked = [path for _, path in proxy.requests if ".npy" in path]
    assert asked == []
    Storage(url).put("v2.npy", Storage(url).read("v3.npy"))
    assert [old == new for old, new in zip(first, digests(), strict=True)] == [
        name != "v2" for name in names
    ]


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


@pytest.fixture(params=["http", "https"])
def web(
    request: pytest.FixtureRequest, filmed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[WebServer]:
    """The filmed dataset on a web server."""
    from csl_dist.storage import url as module

    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    if request.param == "https" and shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    tls = certificate(tmp_path) if request.param == "https" else None

    def trusting(url: str, *, client_options: dict[str, object], **more: object) -> ObjectStore:
        """Nobody has signed the certificate of a test."""
        options = {**client_options, "allow_invalid_certificates": True}
        return from_url(url, client_options=options, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(module, "from_url", trusting)
    module.remote_store.cache_clear()
    with web_server(filmed, tls) as server:
        yield server
    module.remote_store.cache_clear()


def test_manifest_on_the_web_is_the_one_on_disk(
    web: WebServer, filmed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from csl_dist.data.media import video as video_module
    from csl_dist.storage import url as module

    monkeypatch.setattr(module, "READ_AHEAD_BYTES", 1 << 14)
    monkeypatch.setattr(video_module, "HEAD_PACKETS", 4)  # of a file of 90 frames, not of 90,000
    near_config = ManifestConfig(path=str(filmed / "manifest.csv"))
    config = ManifestConfig(path=f"{web.url}/manifest.csv")
    near, far = open_dataset(near_config), open_dataset(config)
    assert far.videos[0].source == f"{web.url}/videos/v.mp4"
    assert len(web.requests) <= 6, "a folder can't be listed: each file is asked for"
    times_T = pixel_source(near.videos[0]).times()
    assert pixel_source(far.videos[0]).times().tolist() == times_T.tolist()
    web.requests.clear()
    wanted_T = times_T[[50, 51, 55]]
    for one, two in zip(
        pixel_source(near.videos[0]).decode(wanted_T),
        pixel_source(far.videos[0]).decode(wanted_T),
        strict=True,
    ):
        np.testing.assert_array_equal(one, two)  # type: ignore[arg-type]
    fetched = sum(sent for _, path, sent in web.requests if path.endswith(".mp4"))
    assert fetched < 0.4 * (filmed / "videos/v.mp4").stat().st_size, "ranges, not the whole file"
    [facts] = look_at_videos(far, config)
    assert facts.problems == ()
    assert facts.class_frames_C is not None
    assert facts.class_frames_C.tolist() == [50, 40]


def test_local_manifest_may_name_files_on_the_web(web: WebServer, tmp_path: Path) -> None:
    rows = f"v,{web.url}/videos/v.mp4,{web.url}/labels/v.txt,{FPS}"
    touch(tmp_path / "own/manifest.csv", f"id,source,labels,fps\n{rows}\n")
    config = ManifestConfig(path=str(tmp_path / "own"))
    [facts] = look_at_videos(open_dataset(config), config)
    assert facts.problems == ()
    touch(
        tmp_path / "own/manifest.csv", f"id,source,labels,fps\n{rows.replace('v.mp4', 'w.mp4')}\n"
    )
    [facts] = look_at_videos(open_dataset(config), config)
    assert f"{web.url}/videos/w.mp4" in facts.problems[0]


def test_google_s_bucket_is_listed_once_and_read_in_ranges(
    filmed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against a server with the part of Google's XML interface that reading needs."""
    from csl_dist.storage.url import remote_store

    bucket = tmp_path / "buckets/bucket"
    shutil.copytree(filmed, bucket / "filmed")
    with web_server(bucket.parent) as server:
        account = {
            "gcs_base_url": server.url,
            "disable_oauth": True,
            "client_email": "",
            "private_key": "",
            "private_key_id": "",
        }
        touch(tmp_path / "account.json", json.dumps(account))
        monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT", str(tmp_path / "account.json"))
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")  # plain http is meant
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        remote_store.cache_clear()
        url = "gs://bucket/filmed"
        assert recognise(place(url)) == "manifest"
        server.requests.clear()
        config = ManifestConfig(path=url)
        dataset = open_dataset(config)
        asked = [(method, path) for method, path, _ in server.requests]
        assert len([path for _, path in asked if "list-type=2" in path]) == 1
        assert not [path for method, path in asked if method == "HEAD"]
        assert len(asked) <= 3, "the list, and the manifest"
        [facts] = look_at_videos(dataset, config)
        assert facts.problems == ()
        assert facts.class_frames_C is not None
        assert facts.class_frames_C.tolist() == [50, 40]
        near = pixel_source(open_dataset(ManifestConfig(path=str(filmed))).videos[0])
        wanted_T = near.times()[[3, 70]]
        far = pixel_source(dataset.videos[0])
        for one, two in zip(near.decode(wanted_T), far.decode(wanted_T), strict=True):
            np.testing.assert_array_equal(one, two)  # type: ignore[arg-type]
        with pytest.raises(DataError, match=r"gs://bucket/filmed/none.csv: there is no such file"):
            open_dataset(ManifestConfig(path=f"{url}/none.csv"))
    remote_store.cache_clear()
