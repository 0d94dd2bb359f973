"""A real PostgreSQL server for tests: a process of its own, as a user without rights."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

USERS = ("postgres", "nobody")
"""Whom the server runs as where the tests run as root, which it refuses."""


def find_program(name: str) -> str | None:
    """A program of the server; Debian keeps them out of the path."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return shutil.which(name, path=os.pathsep.join([*map(str, places), os.environ["PATH"]]))


class PostgresServer:
    """A server that can be ended and started again."""

    def __init__(self, url: str, start: Callable[[], None], stop: Callable[[], None]):
        self.url = url
        self.start = start
        self.stop = stop


@contextmanager
def postgres_server() -> Iterator[str | None]:
    """The URL of an empty database; None where PostgreSQL is not installed."""
    with stoppable_postgres() as server:
        yield None if server is None else server.url


@contextmanager
def stoppable_postgres() -> Iterator[PostgresServer | None]:
    """An empty database; None where PostgreSQL is not installed."""
    initdb, pg_ctl = find_program("initdb"), find_program("pg_ctl")
    if initdb is None or pg_ctl is None:
        yield None
        return
    user = _user()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = Path(tempfile.mkdtemp(prefix="csl-postgres-"))
    data = folder / "data"
    if user is not None:
        shutil.chown(folder, user)

    def run(*command: str) -> None:
        subprocess.run(command, check=True, user=user, cwd=folder, stdout=subprocess.DEVNULL)

    options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"

    def control(*words: str) -> None:
        run(pg_ctl, "-D", str(data), "-w", "-t", "120", "-l", str(folder / "log"), *words)

    def stop() -> None:
        control("-m", "immediate", "stop")

    try:
        run(initdb, "-D", str(data), "-U", "csl", "-A", "trust", "--no-sync", "-E", "UTF8")
        start = partial(control, "-o", options, "start")
        start()
        yield PostgresServer(f"postgresql://csl@127.0.0.1:{port}/postgres", start, stop)
    finally:
        if (data / "postmaster.pid").exists():
            stop()
        shutil.rmtree(folder, ignore_errors=True)


def _user() -> str | None:
    if os.getuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in USERS if name in known)
