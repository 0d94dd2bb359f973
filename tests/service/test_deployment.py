"""`csl serve` as people start it: replicas on real Ray Serve, one of which is killed."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from typing import Any

import pytest
from processes import descendants, kill_below

pytestmark = pytest.mark.xdist_group("ray")

PATIENCE = 120


def get(url: str, token: str | None = None) -> Any:
    request = urllib.request.Request(url)
    if token is not None:
        request.add_header("Authorization", f"Bearer {token}")
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read())


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def start(*arguments: str) -> "subprocess.Popen[str]":
    environment = {k: v for k, v in os.environ.items() if k != "RAY_ADDRESS"}
    return subprocess.Popen(
        [sys.executable, "-m", "csl_dist.cli", "serve", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def test_replicas_share_a_port_survive_a_kill_and_end_with_sigterm(made_root: str) -> None:
    port = free_port()
    process = start(made_root, "--host", "0.0.0.0", "--port", str(port), "--replicas", "2")
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("review: "), line + (process.stderr.read() if not line else "")
        token = line.strip().split("#token=")[1]
        address = f"http://127.0.0.1:{port}"
        with pytest.raises(urllib.error.HTTPError, match="401"):
            get(f"{address}/api/audits")
        [audit] = get(f"{address}/api/audits", token)
        assert audit["flags"] == 1

        replicas = [p for p, name in descendants(process.pid).items() if "ServeReplica" in name]
        assert len(replicas) == 2
        os.kill(replicas[0], signal.SIGKILL)
        deadline = time.monotonic() + PATIENCE
        while True:  # the other one answers, and a new one comes
            assert time.monotonic() < deadline
            try:
                assert get(f"{address}/api/audits/run/flags", token)["total"] == 1
            except (urllib.error.URLError, ConnectionError):
                continue  # a connection to the one that was killed
            names = descendants(process.pid)
            now = [p for p, name in names.items() if "ServeReplica" in name]
            if len(set(now) - set(replicas)) == 1 and replicas[0] not in now:
                break
            time.sleep(0.2)

        process.send_signal(signal.SIGTERM)  # what systemd and docker send
        assert process.wait(timeout=PATIENCE) == 0
        assert process.stderr is not None
        assert "Fatal" not in process.stderr.read()
        with pytest.raises(urllib.error.URLError):
            get(f"{address}/api/health")
    finally:
        if process.poll() is None:
            kill_below(process.pid, "")
            process.kill()
        process.wait()
