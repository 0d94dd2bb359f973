"""The files of jobs/, each run by `ray job submit` as their docstrings say."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from ray_cluster import RunningCluster, ray_cluster

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ray")]

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def cluster() -> Iterator[RunningCluster]:
    python = str(Path(sys.executable).parent)
    paths = {"PATH": f"{python}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(CHECKOUT)}
    with ray_cluster(1, {**paths, "RAY_AUTH_MODE": "disabled"}) as cluster:
        yield cluster


def submit(cluster: RunningCluster, job: str, config: Path) -> str:
    result = subprocess.run(
        [
            *(sys.executable, "-m", "ray.scripts.scripts", "job", "submit"),
            *("--address", cluster.dashboard, "--"),
            *("python", str(CHECKOUT / "jobs" / f"{job}.py"), str(config)),
        ],
        capture_output=True,
        text=True,
        env=cluster.environment,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.mark.timeout(900)
def test_jobs_do_the_stages_one_by_one_and_all_at_once(
    cluster: RunningCluster, small_dataset: Path, tmp_path: Path
) -> None:
    config = tmp_path / "c.yaml"
    config.write_text(f"""\
root: {tmp_path}/run
dataset: {{path: {small_dataset}, truth: {small_dataset}/errors.csv}}
features: {{weights: random, size: 32, chunk_frames: 32}}
scorers: {{framewise: {{}}}}
train: {{epochs: 2, batch_frames: 256}}
""")
    files = {path.stem for path in (CHECKOUT / "jobs").glob("*.py")}
    stages = ("extract", "train", "audit", "evaluate")
    assert files == {*stages, "run"}
    for job in stages:
        submit(cluster, job, config)
    metrics = json.loads((tmp_path / "run/audits/0001/metrics.json").read_text())
    assert metrics["checkpoints"] == 2
    said = submit(cluster, "run", config)
    assert "all 2 epochs are trained" in said, "what the other jobs did is done"
    assert (tmp_path / "run/report.html").exists()
