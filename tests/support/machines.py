"""Two Ray nodes and an S3 server, on machines of their own as far as they can tell.

Each has its own network, processes and folders: what it may write to is its own, and all else can
only be read, as in a container's image. Every process of a machine ends with its first one, and
with that its network and folders, so that nothing is left to clean up.

As a script: the S3 server, with a way to it for each node.
"""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ray_cluster import PATIENCE
from s3_server import FaultyProxy, s3_server, settings

STORE, HEAD, WORKER = "10.77.0.1", "10.77.0.2", "10.77.0.3"
"""Addresses, known to the machines alone."""
IMAGE = "/mnt"
"""Where each machine has its own copy of the folder that it was given."""
OWN_FOLDERS = ("/tmp", "/dev/shm", IMAGE)
ROWS = "/records/rows/"

NAMESPACES = ["--net", "--mount", "--pid", "--uts", "--ipc"]
UNSHARE = [
    *["setpriv", "--pdeathsig=KILL"],  # ends with the test, however that ends
    *["unshare", *NAMESPACES, "--fork", "--kill-child", "--mount-proc"],
]
NODE_SETTINGS = {
    "HOME": "/tmp",
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": "0123456789abcdef" * 4,
    # No name server tells these machines which address their name stands for.
    "GLOO_SOCKET_IFNAME": "eth0",
}


@dataclass(frozen=True)
class Machine:
    address: str
    pid: int
    """Its first process, as seen from outside."""

    def start(
        self, *command: str, environment: dict[str, str] | None = None
    ) -> "subprocess.Popen[str]":
        """Starts a command there; it ends with the machine at the latest."""
        # A working directory from outside would be a way out.
        entered = ["nsenter", f"--target={self.pid}", *NAMESPACES, "env", "--chdir=/tmp"]
        return subprocess.Popen(
            [*entered, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **PATIENCE, **NODE_SETTINGS, **(environment or {})},
        )

    def run(self, *command: str, environment: dict[str, str] | None = None) -> str:
        """What a command prints there."""
        process = self.start(*command, environment=environment)
        out, error = process.communicate()
        assert process.returncode == 0, f"{shlex.join(command)}\n{out}\n{error}"
        return out


@dataclass(frozen=True)
class Machines:
    """A cluster of two nodes with one CPU each."""

    head: Machine
    worker: Machine
    environment: dict[str, str]
    """Of a driver on the head."""
    store: "subprocess.Popen[str]"

    def requests(self) -> dict[str, list[tuple[str, str]]]:
        """What each node asked of S3 so far: method and path."""
        assert self.store.stdin is not None
        print("requests", file=self.store.stdin, flush=True)
        asked = json.loads(_line_of(self.store, "{"))
        return {address: [tuple(one) for one in all_] for address, all_ in asked.items()}


def refusal() -> str | None:
    """Why this system makes no such machines, if it does not."""
    try:
        probe = "mount -t tmpfs none /mnt && ip link add switch type bridge"
        subprocess.run([*UNSHARE, "sh", "-c", probe], check=True, capture_output=True, text=True)
    except FileNotFoundError as error:
        return f"{error.filename} is not installed"
    except subprocess.CalledProcessError as error:
        return f"namespaces can't be made: {error.stderr.strip()}"
    return None


@contextmanager
def ray_machines(image: Path) -> Iterator[Machines]:
    """A head and a worker that share nothing but S3; each has a copy of the folder `image`."""
    with ExitStack() as stack:
        store, head, worker = (
            stack.enter_context(_machine(address, image)) for address in (STORE, HEAD, WORKER)
        )
        _connect(store, [head, worker])
        server = store.start(sys.executable, __file__)
        endpoints = json.loads(_line_of(server, "{"))
        environments = {node: settings(endpoint) for node, endpoint in endpoints.items()}
        _start_ray(head, environments[HEAD], "--head", "--port=6379", "--include-dashboard=false")
        _start_ray(worker, environments[WORKER], f"--address={HEAD}:6379")
        driver = {**environments[HEAD], "RAY_ADDRESS": f"{HEAD}:6379"}
        yield Machines(head=head, worker=worker, environment=driver, store=server)


@contextmanager
def _machine(address: str, image: Path) -> Iterator[Machine]:
    tmpfs = "mount -t tmpfs none"
    script = f"""
        {tmpfs} {IMAGE} && cp -a {shlex.quote(str(image))}/. {IMAGE} &&
        {tmpfs} /tmp && {tmpfs} /dev/shm && mount -o remount,bind,ro / &&
        ip link set lo up && echo ready && exec sleep infinity
    """
    process = subprocess.Popen([*UNSHARE, "sh", "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        _line_of(process, "ready")
        [pid] = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        yield Machine(address, int(pid))
    finally:
        process.kill()
        process.wait()


def _connect(store: Machine, nodes: list[Machine]) -> None:
    """A switch in the store's network, with a cable to each node."""

    def ip(machine: Machine, arguments: str) -> None:
        inside = ["nsenter", f"--target={machine.pid}", "--net", "ip", *arguments.split()]
        subprocess.run(inside, check=True)

    ip(store, "link add switch type bridge")
    ip(store, f"address add {store.address}/24 dev switch")
    ip(store, "link set switch up")
    for number, node in enumerate(nodes):
        ip(store, f"link add port{number} type veth peer name eth0 netns {node.pid}")
        ip(store, f"link set port{number} master switch up")
        ip(node, f"address add {node.address}/24 dev eth0")
        ip(node, "link set eth0 up")


def _start_ray(machine: Machine, environment: dict[str, str], *arguments: str) -> None:
    """Starts a Ray node of one CPU, and waits until it is there."""
    ray = str(Path(sys.executable).with_name("ray"))
    small = ["--num-cpus=1", f"--object-store-memory={150 * 2**20}", "--disable-usage-stats"]
    where = f"--node-ip-address={machine.address}"
    command = [ray, "start", "--block", where, *small, *arguments]
    _line_of(machine.start(*command, environment=environment), "Ray runtime started")


def _line_of(process: "subprocess.Popen[str]", words: str) -> str:
    """The first line with these words that a process prints."""
    assert process.stdout is not None
    line = next((line for line in process.stdout if words in line), None)
    assert line is not None, process.communicate()[1]
    return line


def _held_alone(other: FaultyProxy, _: int, method: str, path: str) -> str | None:
    """No node's scores are taken before the other has some too, so that neither does it all."""
    others = any(verb == "PUT" and ROWS in key for verb, key in other.requests)
    return "slow down" if method == "PUT" and ROWS in path and not others else None


def main() -> None:
    with s3_server() as endpoint:
        ways = {address: FaultyProxy(endpoint, STORE) for address in (HEAD, WORKER)}
        ways[HEAD].fault = partial(_held_alone, ways[WORKER])
        ways[WORKER].fault = partial(_held_alone, ways[HEAD])
        print(json.dumps({address: way.endpoint for address, way in ways.items()}), flush=True)
        for _ in sys.stdin:  # a line for each time that they are asked for
            print(json.dumps({address: way.requests for address, way in ways.items()}), flush=True)


if __name__ == "__main__":
    main()
