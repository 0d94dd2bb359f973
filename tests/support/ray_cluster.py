"""A Ray cluster of several nodes on this machine, in a process of its own.

As a script: starts the nodes, prints where they are as JSON, then obeys commands on stdin, one a
line: `add` a node, `kill` the newest one; the end of stdin ends it all.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

PATIENCE = {"RAY_DASHBOARD_STARTUP_TIMEOUT_S": "300", "RAY_worker_niceness": "0"}
"""For a machine that has much else to do; Ray's workers would wait until all others are idle."""


@dataclass(frozen=True)
class RunningCluster:
    address: str
    dashboard: str
    environment: dict[str, str]
    """In which a driver finds the cluster."""
    process: "subprocess.Popen[str]"

    def order(self, command: str) -> None:
        """Has the cluster add or kill a node, and waits until that is done."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline().strip() == command


@contextmanager
def ray_cluster(
    num_nodes: int, environment: dict[str, str], *, dashboard: bool = True
) -> Iterator[RunningCluster]:
    """Nodes of one CPU each, the head among them, with some additions to the environment."""
    environment = {**os.environ, **PATIENCE, **environment}
    process = subprocess.Popen(
        [sys.executable, __file__, str(num_nodes), str(int(dashboard))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        assert process.stdout is not None
        # Ray, too, prints lines while it starts.
        line = next(line for line in process.stdout if line.startswith("{"))
        places = json.loads(line)
        found = {**environment, "RAY_ADDRESS": places["address"]}
        yield RunningCluster(**places, environment=found, process=process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(timeout=60)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def node_arguments() -> dict[str, int]:
    """A small node, whose agent does not take the port that every Ray's agent takes."""
    memory = 150 * 2**20
    return {
        "num_cpus": 1,
        "object_store_memory": memory,
        "dashboard_agent_listen_port": free_port(),
    }


def main(num_nodes: int, include_dashboard: bool) -> None:
    from ray.cluster_utils import Cluster

    port = free_port()
    cluster = Cluster(
        initialize_head=True,
        head_node_args={
            "include_dashboard": include_dashboard,
            "dashboard_port": port,
            **node_arguments(),
        },
    )
    nodes = [cluster.add_node(**node_arguments()) for _ in range(num_nodes - 1)]
    dashboard = f"http://127.0.0.1:{port}"
    print(json.dumps({"address": cluster.address, "dashboard": dashboard}), flush=True)
    for line in sys.stdin:
        command = line.strip()
        if command == "add":
            nodes.append(cluster.add_node(**node_arguments()))
        elif command == "kill":
            cluster.remove_node(nodes.pop(), allow_graceful=False)
        print(command, flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:] != ["0"])
