"""An audit on two nodes that loses actors, a node and its driver, ten times over."""

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from builder import write_checkpoints, write_random_dataset
from processes import descendants
from ray_cluster import RunningCluster, ray_cluster

from csl_dist.config import load_config
from csl_dist.training.inputs import open_inputs

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ray")]

COMMAND = [sys.executable, "-c", "from csl_dist.cli import main; main()", "audit"]
NUM_VIDEOS, NUM_FRAMES, NUM_CHECKPOINTS, NUM_KILLS = 24, 300, 60, 10
GROUP_VIDEOS = 6
NUM_UNITS = NUM_CHECKPOINTS * NUM_VIDEOS // GROUP_VIDEOS
UNITS_IN_FLIGHT = 2
"""Two nodes of one CPU have two actors."""


def write_config(folder: Path, data: Path) -> Path:
    path = folder / "c.yaml"
    path.write_text(f"""\
root: {folder}/run
dataset: {{path: {data}}}
scorers: {{transformer: {{arguments: {{preset: small}}}}}}
train: {{epochs: {NUM_CHECKPOINTS}}}
predict: {{group_frames: {GROUP_VIDEOS * NUM_FRAMES}, max_retries: 20}}
""")
    return path


def stored(root: Path) -> dict[str, bytes]:
    folder = root / "transformer/trajectories.zarr"
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


class RowWatch(threading.Thread):
    """Notes every time that a row is recorded."""

    def __init__(self, root: Path):
        super().__init__(daemon=True)
        self._folder = root / "transformer/records/rows"
        self._end = threading.Event()
        self.seen: set[tuple[str, int]] = set()

    def run(self) -> None:
        while not self._end.wait(0.02):
            for path in self._folder.rglob("*.json"):
                try:
                    self.seen.add((path.name, path.stat().st_mtime_ns))
                except OSError:  # it goes when its video is published
                    continue

    def end(self) -> None:
        self._end.set()
        self.join()


def start(path: Path, cluster: RunningCluster) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [*COMMAND, str(path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=cluster.environment,
    )


def kill_an_actor(cluster: RunningCluster, rng: random.Random) -> bool:
    processes = descendants(cluster.process.pid).items()
    actors = [pid for pid, name in processes if name.startswith("ray::PredictActor")]
    if actors:
        os.kill(rng.choice(sorted(actors)), signal.SIGKILL)
    return bool(actors)


@pytest.mark.timeout(900)
def test_ten_random_kills_leave_the_same_bytes(tmp_path: Path) -> None:
    write_random_dataset(
        tmp_path / "data", num_videos=NUM_VIDEOS, num_frames=NUM_FRAMES, split="audit"
    )
    calm, disturbed = tmp_path / "calm", tmp_path / "disturbed"
    calm.mkdir()
    write_checkpoints(
        open_inputs(load_config(write_config(calm, tmp_path / "data"))),
        "transformer",
        NUM_CHECKPOINTS,
    )
    shutil.copytree(calm, disturbed)
    path = write_config(disturbed, tmp_path / "data")
    subprocess.run([*COMMAND, str(calm / "c.yaml")], check=True, stdout=subprocess.DEVNULL)
    expected = stored(calm / "run")
    assert expected

    rng = random.Random(0)
    kinds = ["actor"] * 5 + ["node"] * 3 + ["driver"] * 2
    rng.shuffle(kinds)
    watch = RowWatch(disturbed / "run")
    watch.start()
    with ray_cluster(2, {}, dashboard=False) as cluster:
        driver = start(path, cluster)
        for kind in kinds:
            before = len(watch.seen)
            deadline = time.monotonic() + 120
            while len(watch.seen) < before + 3:
                assert driver.poll() is None, driver.communicate()[1]
                assert time.monotonic() < deadline, f"nothing was scored before: {kind}"
                time.sleep(0.05)
            time.sleep(rng.uniform(0, 0.5))
            if kind == "actor":
                assert kill_an_actor(cluster, rng)
            elif kind == "node":
                cluster.order("kill")
                cluster.order("add")
            else:
                driver.kill()
                driver.wait()
                driver = start(path, cluster)
        _, errors = driver.communicate(timeout=400)
        assert driver.returncode == 0, errors
    watch.end()
    assert stored(disturbed / "run") == expected
    names = [name for name, _ in watch.seen]
    assert len(set(names)) == NUM_UNITS
    assert len(names) - NUM_UNITS <= NUM_KILLS * UNITS_IN_FLIGHT
