"""A real S3 server process on loopback, and a proxy before it that lets requests fail."""

import http.client
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BUCKET = "bucket"
HOST = "127.0.0.1"

Fault = Callable[[int, str, str], str | None]
"""From a request's number, method and path: what befalls it, if anything."""

ERRORS = {
    "slow down": (503, "SlowDown"),
    "internal": (500, "InternalError"),
    "too many": (429, "TooManyRequests"),
    "expired": (400, "ExpiredToken"),
    "unknown key": (403, "InvalidAccessKeyId"),
    "denied": (403, "AccessDenied"),
    "vanished": (404, "NoSuchKey"),
}


@contextmanager
def s3_server() -> Iterator[str]:
    """The endpoint of moto's server, a process of its own, with one empty bucket."""
    with socket.socket() as free:
        free.bind((HOST, 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", HOST, "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        endpoint = f"http://{HOST}:{port}"
        _await_answer(endpoint, process)
        request = urllib.request.Request(f"{endpoint}/{BUCKET}", method="PUT")
        urllib.request.urlopen(request).close()
        yield endpoint
    finally:
        process.terminate()
        process.wait()


def _await_answer(endpoint: str, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None, "the S3 server ended"
        try:
            urllib.request.urlopen(endpoint).close()
            return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError("the S3 server does not answer")


def settings(endpoint: str) -> dict[str, str]:
    """The environment in which `s3://` means this server."""
    host = urllib.parse.urlsplit(endpoint).hostname
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
        # Never ask the machine's own metadata service from a test.
        "AWS_METADATA_ENDPOINT": f"http://{HOST}:1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "NO_PROXY": ",".join(filter(None, [os.environ.get("NO_PROXY"), HOST, host or ""])),
    }


class FaultyProxy(ThreadingHTTPServer):
    """Hands requests on to a server, save those that `fault` picks."""

    daemon_threads = True

    def __init__(self, target: str, host: str = HOST):
        super().__init__((host, 0), _Handler)
        self.host = host
        self.target = urllib.parse.urlsplit(target).netloc
        self.fault: Fault = lambda number, method, path: None
        self.requests: list[tuple[str, str]] = []
        self.faults: list[str] = []
        self.slow_seconds = 1.0
        self.lock = threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def endpoint(self) -> str:
        return f"http://{self.host}:{self.server_port}"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that gave up is part of the game."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FaultyProxy

    def handle_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        proxy = self.server
        with proxy.lock:
            proxy.requests.append((self.command, self.path))
            fault = proxy.fault(len(proxy.requests), self.command, self.path)
            if fault is not None:
                proxy.faults.append(fault)
        if fault == "cut":
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        elif fault in ERRORS:
            status, code = ERRORS[fault]
            text = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>no</Message></Error>"
            self._answer(status, {}, b"" if self.command == "HEAD" else text.encode())
        else:
            if fault == "slow":
                time.sleep(proxy.slow_seconds)
            self._hand_on(body, cut_answer=fault == "cut answer")

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = handle_any

    def _hand_on(self, body: bytes, *, cut_answer: bool) -> None:
        connection = http.client.HTTPConnection(self.server.target)
        connection.request(self.command, self.path, body=body, headers=dict(self.headers))
        answer = connection.getresponse()
        content = answer.read()
        headers = {
            name: value
            for name, value in answer.getheaders()
            if name.lower() not in ("connection", "transfer-encoding", "date", "server")
        }
        connection.close()
        if cut_answer:
            content = content[: len(content) // 2]
            self.close_connection = True
        self._answer(answer.status, headers, content)

    def _answer(self, status: int, headers: dict[str, str], content: bytes) -> None:
        self.send_response(status)
        if "content-length" not in {name.lower() for name in headers}:
            self.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass
