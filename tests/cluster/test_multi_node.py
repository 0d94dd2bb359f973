"""The pool on several nodes, one of which is killed, and one of which comes later."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ray_cluster import RunningCluster, ray_cluster

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ray")]

NUM_UNITS = 24

DRIVER = """
import os, sys, time
from pathlib import Path
import ray
from csl_dist.cluster.pool import ActorPool

class Noter:
    def work(self, unit):
        time.sleep(0.4)
        node = ray.get_runtime_context().get_node_id()
        (Path(FOLDER) / f"{unit}-{node}").touch()

ray.init(log_to_driver=False)
# One actor for each of three nodes, and one for the node that is to come.
make_actor = ray.remote(num_cpus=1)(Noter).remote
units = range(int(sys.argv[1]))
with ActorPool(make_actor, num_actors=4, max_retries=3) as pool:
    print(sorted(done.task for done in pool.run(units)) == list(units))
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[RunningCluster]:
    with ray_cluster(3, {}, dashboard=False) as cluster:
        yield cluster


def wait_for(count: int, folder: Path, driver: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + 120
    while len(list(folder.iterdir())) < count:
        assert time.monotonic() < deadline
        assert driver.poll() is None, driver.communicate()[1]
        time.sleep(0.1)


def test_killed_node_loses_nothing_and_a_new_one_takes_work(
    cluster: RunningCluster, tmp_path: Path
) -> None:
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER.replace("FOLDER", repr(str(tmp_path))), str(NUM_UNITS)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=cluster.environment,
    )
    wait_for(4, tmp_path, driver)
    cluster.order("kill")
    cluster.order("add")
    out, error = driver.communicate(timeout=200)
    # Ray tells of the killed node on the same stream.
    assert "True" in out.splitlines(), error
    notes = [path.name.split("-") for path in tmp_path.iterdir()]
    assert {int(unit) for unit, _ in notes} == set(range(NUM_UNITS))
    assert len({node for _, node in notes}) == 4, "two that stay, the killed one and the new one"
