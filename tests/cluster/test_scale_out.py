"""A submitted job on a cluster of several nodes whose root is on S3, disturbed in every way."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ray_cluster import PATIENCE, RunningCluster, ray_cluster
from s3_server import BUCKET, FaultyProxy, settings

from csl_dist.storage.url import Storage

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ray")]

TOKEN = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0123456789abcdef" * 4}
ROOT = f"s3://{BUCKET}/scale-out"
ROWS = "/records/rows/"


def csl(
    *arguments: str | Path, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "csl_dist.cli", *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, **PATIENCE, **(environment or {})},
        check=False,
    )


@pytest.fixture(scope="module")
def local_run(
    tmp_path_factory: pytest.TempPathFactory, small_dataset: Path
) -> tuple[list[str], Path]:
    """The arguments of a run on this machine, which is done, and where its metrics are."""
    folder = tmp_path_factory.mktemp("local")
    path = folder / "small.yaml"
    path.write_text(f"""\
root: {folder}/run
dataset: {{path: {small_dataset}, truth: {small_dataset}/errors.csv}}
features: {{weights: random, size: 32, chunk_frames: 32}}
scorers: {{framewise: {{}}}}
train: {{epochs: 4, learning_rate: 1e-3, batch_frames: 256}}
predict: {{group_frames: 150}}
""")
    result = csl("run", path)
    assert result.returncode == 0, result.stderr
    return [str(path)], folder / "run/audits/0001/metrics.json"


@pytest.fixture(scope="module")
def way(s3_endpoint: str) -> Iterator[FaultyProxy]:
    """What lies between the cluster and S3."""
    proxy = FaultyProxy(s3_endpoint)
    yield proxy
    proxy.shutdown()
    proxy.server_close()


@pytest.fixture(scope="module")
def cluster(local_run: object, way: FaultyProxy) -> Iterator[RunningCluster]:
    """Two nodes that reach S3 through the proxy, started when the local run is out of the way."""
    python = str(Path(sys.executable).parent)
    path = f"{python}{os.pathsep}{os.environ['PATH']}"
    with ray_cluster(2, {**settings(way.endpoint), **TOKEN, "PATH": path}) as cluster:
        yield cluster


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.2)


@pytest.mark.timeout(900)
def test_disturbed_job_on_s3_gives_the_metrics_of_a_local_run(
    local_run: tuple[list[str], Path],
    cluster: RunningCluster,
    way: FaultyProxy,
    proxy: FaultyProxy,
) -> None:
    config, local_metrics = local_run
    faults = {0: "slow down", 20: "cut", 40: "internal"}

    def passing(count: int, method: str, path: str) -> str | None:
        return faults.get(count % 60)

    def until_epoch_three(count: int, method: str, path: str) -> str | None:
        held = method == "PUT" and path.endswith("epoch-0003/model.safetensors")
        return "slow down" if held else passing(count, method, path)

    way.fault = until_epoch_three
    there = ["--address", cluster.dashboard]
    job = ["submit", *config, "--set", f"root={ROOT}", *there]
    first = csl(*job, "--detach", environment=TOKEN)
    assert first.returncode == 0, first.stderr
    again = csl(*job, environment=TOKEN)
    assert again.returncode == 2
    assert f"works on {ROOT} already" in again.stderr

    fold = Storage(f"{ROOT}/framewise/fold-0")

    def epochs() -> list[str]:
        return [key for key in fold.list_keys() if key.endswith("meta.json")]

    wait_until(lambda: len(epochs()) >= 2, "two epochs")
    cancelled = csl("cancel", ROOT, *there, environment=TOKEN)
    assert "is cancelled" in cancelled.stdout, cancelled.stderr
    trained = {key.split("/")[-2] for key in epochs()}

    # The second job is cancelled in the midst of the audit, with as many units done as pass here.
    passed: set[str] = set()

    def until_three_rows(count: int, method: str, path: str) -> str | None:
        if method == "PUT" and ROWS in path and path not in passed:
            if len(passed) == 3:
                return "slow down"
            passed.add(path)
        return passing(count, method, path)

    num_requests = len(way.requests)
    way.fault = until_three_rows
    second = csl(*job, "--detach", environment=TOKEN)
    assert second.returncode == 0, second.stderr
    rows = Storage(f"{ROOT}/framewise/records/rows")
    wait_until(lambda: len(rows.list_keys()) == 3, "three units")
    cancelled = csl("cancel", ROOT, *there, environment=TOKEN)
    assert "is cancelled" in cancelled.stdout, cancelled.stderr
    puts = [path for method, path in way.requests[num_requests:] if method == "PUT"]
    saved = {path.split("/")[-2] for path in puts if path.endswith("model.safetensors")}
    assert trained == {"epoch-0001", "epoch-0002"}
    assert saved <= {"epoch-0003", "epoch-0004"}

    num_requests = len(way.requests)
    way.fault = passing
    third = csl(*job, environment=TOKEN)
    assert third.returncode == 0, third.stdout + third.stderr
    puts = [path for method, path in way.requests[num_requests:] if method == "PUT"]
    scored = {path for path in puts if ROWS in path}
    assert scored, "something was left to score"
    assert not scored & passed, "units that were done are not done again"
    assert json.loads(Storage(ROOT).read("audits/0001/metrics.json")) == json.loads(
        local_metrics.read_text()
    )
    assert len(way.faults) > 5


def test_missing_token_is_one_sentence(cluster: RunningCluster, tmp_path: Path) -> None:
    nothing = {"HOME": str(tmp_path), "RAY_AUTH_MODE": "token"}
    result = csl("logs", ROOT, "--address", cluster.dashboard, environment=nothing)
    assert result.returncode == 2
    assert "needs its token: set RAY_AUTH_MODE=token" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
