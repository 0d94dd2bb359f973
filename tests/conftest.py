"""Shared fixtures: one small embedded dataset and one Ray session for the whole test run."""

import os
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import made_run
import pytest
import yaml
from small_demo import SMALL_DEMO

from csl_dist.config import RunConfig, load_config
from csl_dist.data.demo import write_demo
from csl_dist.storage.url import Storage

# How long an example takes tells of the machine's other work, not of the code.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")

# Ray's workers would wait until whatever else runs on the machine, such as other tests, is idle.
os.environ.setdefault("RAY_worker_niceness", "0")

if TYPE_CHECKING:
    from s3_server import FaultyProxy


RAY_GROUP = "ray"
"""Files with this `xdist_group` start Ray."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts files that start Ray first: they take longest, and the others fill the time after."""
    items.sort(key=lambda item: not starts_ray(item.nodeid.partition("::")[0]))


def pytest_sessionfinish() -> None:
    """Ends agents of Ray whose driver a test killed: they would stay on the machine for ever."""
    from csl_dist.cluster.leftovers import orphans

    for orphan in orphans():
        orphan.remove()


@cache
def starts_ray(path: str) -> bool:
    return f'xdist_group("{RAY_GROUP}")' in (Path(__file__).parents[1] / path).read_text()


@pytest.fixture(scope="session")
def small_dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of an embedded dataset of 12 short videos; tests do not write to it."""
    folder = tmp_path_factory.mktemp("dataset")
    write_demo(folder, SMALL_DEMO)
    return folder


@pytest.fixture
def small_config_file(small_dataset: Path, tmp_path: Path) -> Path:
    """A config of a quick run on the small dataset, with its own root."""
    content = {
        "root": str(tmp_path / "run"),
        "dataset": {"path": str(small_dataset), "truth": str(small_dataset / "errors.csv")},
        "features": {"weights": "random", "size": 32, "chunk_frames": 32},
        "scorers": {"transformer": {"arguments": {"preset": "tiny"}}, "framewise": {}},
        "train": {"epochs": 3, "learning_rate": 1e-3, "batch_frames": 256},
        "predict": {"group_frames": 150},
    }
    path = tmp_path / "small.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path


@pytest.fixture
def small_config(small_config_file: Path) -> RunConfig:
    return load_config(small_config_file)


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(str(tmp_path / "storage"))


@pytest.fixture(scope="session")
def ray_session() -> Iterator[None]:
    from csl_dist.cluster.session import connect, disconnect

    connect()
    yield
    disconnect()


@pytest.fixture(scope="session")
def made_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a small dataset with its finished run in `run`; tests do not write to it."""
    folder = tmp_path_factory.mktemp("made")
    made_run.make_run(folder)
    return folder


@pytest.fixture
def made_root(made_folder: Path, tmp_path: Path) -> str:
    """A copy of the finished run's root, to write to; the dataset stays where it was."""
    shutil.copytree(made_folder / "run", tmp_path / "run")
    return str(tmp_path / "run")


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """A real S3 server process with an empty bucket, for the whole test run."""
    from s3_server import s3_server

    with s3_server() as endpoint:
        yield endpoint


@pytest.fixture
def proxy(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator["FaultyProxy"]:
    """The way to the S3 server for everything that `s3://` names, with faults to choose."""
    from s3_server import FaultyProxy, settings

    from csl_dist.storage.url import remote_store

    proxy = FaultyProxy(s3_endpoint)
    for name, value in settings(proxy.endpoint).items():
        monkeypatch.setenv(name, value)
    remote_store.cache_clear()
    yield proxy
    remote_store.cache_clear()
    proxy.shutdown()
    proxy.server_close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Debian's Chromium, headless."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip(f"there is no browser: none of {', '.join(BROWSERS)} is installed")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu", "--disable-quic"]
        )
        yield browser
        browser.close()
