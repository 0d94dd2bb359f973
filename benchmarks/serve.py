"""How long one frame's trajectory takes over HTTP on loopback, beside the library's own call.

.venv/bin/python benchmarks/serve.py [--checkpoints 200] [--frames 34000] [--queries 1000] [--json]

The same video as query.py's, one replica on this machine, JSON answers, connections kept
open. Beside it the same application behind Ray Serve's proxy, which is the usual way.
"""

import asyncio
import logging
import socket
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from figures import parser_of, print_figures, seconds_of
from query import VIDEO, add_sizes, write_audit
from ray import serve

from csl_dist.cluster.session import connect
from csl_dist.review.store import store_of
from csl_dist.service.app import create_app
from csl_dist.service.deployment import listening_socket, running_service
from csl_dist.service.settings import ServiceSettings

NUM_WARM, TURN_QUERIES = 100, 100
NUM_CLIENTS, QUERIES_EACH = 32, 60
HOST = "127.0.0.1"


def bench_serve(num_checkpoints: int, num_frames: int, num_queries: int) -> dict[str, float]:
    """Median and 99th percentile in milliseconds: alone, with 32 clients, and by the proxy."""
    frames = np.random.default_rng(1).integers(num_frames, size=num_queries).tolist()
    with tempfile.TemporaryDirectory() as folder:
        root = str(Path(folder) / "run")
        audit = write_audit(Path(folder), num_checkpoints, num_frames)
        store_of(root, None).create()

        def ask_library(frame: int) -> object:
            return audit.trajectory(VIDEO, frames=frame)

        connect()
        logging.getLogger("ray.serve").setLevel(logging.ERROR)
        port, proxy_port = _free_port(), _free_port()
        settings = ServiceSettings(roots=(root,), host=HOST, port=port)
        serve.start(http_options={"host": HOST, "port": proxy_port})
        serve.run(_behind_proxy(settings), name="proxied", route_prefix="/")
        with running_service(settings):
            ask, ask_proxy = _asking(port), _asking(proxy_port)
            for frame in frames[:NUM_WARM]:
                ask_proxy(frame)
                ask(frame)
            library: list[float] = []
            alone: list[float] = []
            # Turn about by the hundred, so that what else the machine does meets both, and each
            # finds its caches warm.
            for start in range(0, num_queries, TURN_QUERIES):
                turn = frames[start : start + TURN_QUERIES]
                library += [seconds_of(partial(ask_library, frame)) for frame in turn]
                alone += [seconds_of(partial(ask, frame)) for frame in turn]
            proxied = [seconds_of(partial(ask_proxy, frame)) for frame in frames]
            crowd, seconds = asyncio.run(_crowd(port, frames))
        serve.delete("proxied")
    return {
        "library_ms": _milliseconds(library, 50),
        "http_ms": _milliseconds(alone, 50),
        "http_p99_ms": _milliseconds(alone, 99),
        "vs_library": round(float(np.median(alone) / np.median(library)), 2),
        "clients32_ms": _milliseconds(crowd, 50),
        "clients32_p99_ms": _milliseconds(crowd, 99),
        "clients32_per_s": round(len(crowd) / seconds),
        "serve_proxy_ms": _milliseconds(proxied, 50),
        "serve_proxy_p99_ms": _milliseconds(proxied, 99),
    }


def _behind_proxy(settings: ServiceSettings) -> serve.Application:
    """The same application as Serve's own server would run it."""

    @serve.deployment(ray_actor_options={"num_cpus": 0}, max_ongoing_requests=100)
    @serve.ingress(lambda: create_app(settings))
    class Proxied:
        pass

    return Proxied.bind()  # type: ignore[attr-defined]


def _asking(port: int) -> Callable[[int], object]:
    """A client with one connection, which it keeps; it does as little as a client can."""
    connection = socket.create_connection((HOST, port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(frame: int) -> bytes:
        connection.sendall(_request(frame))
        answer = b""
        while (end := answer.find(b"\r\n\r\n")) < 0:
            answer += connection.recv(1 << 16)
        head, body = answer[:end], answer[end + 4 :]
        length = _length(head)
        while len(body) < length:
            body += connection.recv(1 << 16)
        return body

    return ask


def _request(frame: int) -> bytes:
    path = f"/api/audits/run/trajectory?video={VIDEO}&frame={frame}"
    return f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()


def _length(head: bytes) -> int:
    """Bytes of the body that follows."""
    assert b" 200 " in head, head
    return int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])


async def _crowd(port: int, frames: list[int]) -> tuple[list[float], float]:
    """Times of all requests of clients that ask without a pause, and of all together."""

    async def client(own: list[int]) -> list[float]:
        reader, writer = await asyncio.open_connection(HOST, port)
        seconds = []
        for frame in own:
            start = time.perf_counter()
            writer.write(_request(frame))
            await reader.readexactly(_length(await reader.readuntil(b"\r\n\r\n")))
            seconds.append(time.perf_counter() - start)
        writer.close()
        return seconds

    start = time.perf_counter()
    parts = [np.roll(frames, -i * QUERIES_EACH)[:QUERIES_EACH] for i in range(NUM_CLIENTS)]
    taken = await asyncio.gather(*(client(part.tolist()) for part in parts))
    return [one for part in taken for one in part], time.perf_counter() - start


def _milliseconds(seconds: list[float], percentile: int) -> float:
    return round(1000 * float(np.percentile(seconds, percentile)), 3)


def _free_port() -> int:
    with listening_socket(HOST, 0, shared=False) as free:
        return int(free.getsockname()[1])


def main() -> None:
    parser = parser_of(__doc__)
    add_sizes(parser, num_queries=1000)
    arguments = parser.parse_args()
    figures = bench_serve(arguments.checkpoints, arguments.frames, arguments.queries)
    print_figures(figures, as_json=arguments.json)


if __name__ == "__main__":
    main()
