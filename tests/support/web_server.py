"""A web server of files on loopback, plain or with TLS: byte ranges, and lists as of a bucket."""

import re
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote
from xml.sax.saxutils import escape

HOST = "127.0.0.1"


@dataclass
class WebServer:
    """Where it is, and what it was asked: method, path and bytes sent."""

    url: str
    requests: list[tuple[str, str, int]] = field(default_factory=list)


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate that nobody has signed, and its key."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    subject = ["-subj", "/CN=localhost", "-addext", f"subjectAltName=IP:{HOST}"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    subprocess.run(
        [*command, "-keyout", str(key), "-out", str(cert), *subject],
        check=True,
        capture_output=True,
    )
    return cert, key


def _listing(bucket: Path, prefix: str) -> bytes:
    """As Google's XML interface lists a bucket, with the form of S3's."""
    keys = sorted(str(file.relative_to(bucket)) for file in bucket.rglob("*") if file.is_file())
    entries = "".join(
        f"<Contents><Key>{escape(key)}</Key><Size>{(bucket / key).stat().st_size}</Size>"
        "<LastModified>2025-07-01T00:00:00.000Z</LastModified><ETag>x</ETag></Contents>"
        for key in keys
        if key.startswith(prefix)
    )
    return f"<ListBucketResult>{entries}</ListBucketResult>".encode()


@contextmanager
def web_server(folder: Path, tls: tuple[Path, Path] | None = None) -> Iterator[WebServer]:
    """Serves the files of a folder."""
    found = WebServer("")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            path, _, query = self.path.partition("?")
            file = folder / unquote(path).lstrip("/")
            data = file.read_bytes() if file.is_file() else None
            if "list-type=2" in query:
                data = _listing(file, parse_qs(query).get("prefix", [""])[0])
            asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
            body = b"" if data is None else data
            self.send_response(404 if data is None else 206 if asked else 200)
            if asked and data is not None:
                start, last = int(asked[1]), min(int(asked[2]), len(data) - 1)
                body = data[start : last + 1]
                self.send_header("Content-Range", f"bytes {start}-{last}/{len(data)}")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Last-Modified", "Tue, 01 Jul 2025 00:00:00 GMT")
            self.send_header("ETag", f'"{len(body)}"')
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)
            sent = len(body) if self.command == "GET" else 0
            found.requests.append((self.command, self.path, sent))

        do_GET = do_HEAD = answer

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer((HOST, 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*tls)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    found.url = f"{'http' if tls is None else 'https'}://{HOST}:{server.server_port}"
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
