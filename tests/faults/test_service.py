"""The service on a bad day: connections that ask nothing, forged roots, a database that hangs."""

import os
import shutil
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from PIL import Image
from served import client_of, refusal, replace_videos

from csl_dist.audit.reader import open_audit
from csl_dist.config import AuditConfig, ManifestConfig, RunConfig, ScorerConfig
from csl_dist.errors import ConfigError
from csl_dist.review.store import Decision, NewReview, ReviewStore, store_of
from csl_dist.service import connections, guard
from csl_dist.service.deployment import Server
from csl_dist.service.jobs import refuse_beyond
from csl_dist.service.settings import ServiceSettings
from csl_dist.storage.paths import RunPaths
from csl_dist.storage.run_file import read_videos
from csl_dist.storage.url import Storage
from csl_dist.types import Media

TOKEN = "t" * 20


@contextmanager
def served(root: str) -> Iterator[int]:
    """A real server without Ray; its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    store_of(root, None).create()
    server = Server(ServiceSettings(roots=(root,), port=port))
    for _ in range(200):
        try:
            health(port)
            break
        except OSError:
            time.sleep(0.05)
    try:
        yield port
    finally:
        server.stop()


def health(port: int) -> int:
    url = f"http://127.0.0.1:{port}/api/health"
    with urllib.request.urlopen(url, timeout=20) as answer:
        return int(answer.status)


def is_closed(connection: socket.socket, seconds: float) -> bool:
    connection.settimeout(seconds)
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def test_hundreds_of_idle_connections_keep_nobody_out(made_root: str) -> None:
    with served(made_root) as port, ExitStack() as stack:
        for _ in range(connections.MAX_CONNECTIONS + 8):
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        assert health(port) == 200


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nX: "])
def test_connection_whose_first_request_never_ends_is_closed(
    made_root: str, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(connections, "FIRST_REQUEST_SECONDS", 0.5)
    with served(made_root) as port, socket.create_connection(("127.0.0.1", port)) as idle:
        idle.sendall(sent)
        assert is_closed(idle, 20)


def test_body_that_never_ends_is_refused(made_root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "MAX_BODY_SECONDS", 0.5)
    head = b"POST /api/audits/run/reviews HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99\r\n"
    with served(made_root) as port, socket.create_connection(("127.0.0.1", port)) as slow:
        slow.sendall(head + b"Content-Type: application/json\r\n\r\n{")
        slow.settimeout(20)
        assert b" 408 " in slow.recv(100)


def test_database_that_hangs_leaves_the_rest_of_the_service_alive(
    made_root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    thawed = threading.Event()

    def never(*_: object, **__: object) -> list[object]:
        thawed.wait(60)
        return []

    monkeypatch.setattr(ReviewStore, "after", never)
    with served(made_root) as port:
        url = f"http://127.0.0.1:{port}/api/audits/run/progress"
        waiting = [
            threading.Thread(target=lambda: os.system(f"curl -s -m 30 {url} >/dev/null"))
            for _ in range(50)
        ]
        for thread in waiting:
            thread.start()
        try:
            assert health(port) == 200
        finally:
            thawed.set()
            for thread in waiting:
                thread.join()


def forge_source(root: str, source: str, media: Media = Media.VIDEO, fps: float = 0.0) -> None:
    """Makes the audit say that a video's file is another."""
    folder = RunPaths(Storage(root)).audit(1)
    videos = {video.id: video for video in read_videos(folder)}
    videos["v2"] = replace(videos["v2"], source=source, media=media, source_fps=fps)
    replace_videos(folder, list(videos.values()))


@pytest.mark.parametrize("way", ["another file", "linked file", "linked folder", "dots"])
def test_forged_root_shows_no_file_outside_the_dataset(
    made_root: str, made_folder: Path, tmp_path: Path, way: str
) -> None:
    secret = tmp_path / "secret.mp4"
    secret.write_bytes(b"secret")
    (tmp_path / "passwd").write_bytes(b"secret")
    link = made_folder / f"link-{way.replace(' ', '-')}.mp4"
    match way:
        case "another file":
            source = tmp_path / "passwd"
        case "linked file":
            link.symlink_to(secret)
            source = link
        case "linked folder":
            link.symlink_to(tmp_path)
            source = link / "secret.mp4"
        case _:
            source = made_folder / os.path.relpath(secret, made_folder)
    try:
        forge_source(made_root, str(source))
        client = client_of(made_root)
        for name in ("media?video=v2", "picture?video=v2&frame=3"):
            sentence = refusal(client.get(f"/api/audits/run/{name}"), 404)
            assert "--media FOLDER" in sentence
        assert client.get("/api/audits/run/video?video=v2").json()["media"] == "missing"
    finally:
        link.unlink(missing_ok=True)


def test_picture_that_is_a_link_out_of_the_dataset_is_not_shown(
    made_root: str, made_folder: Path, tmp_path: Path
) -> None:
    Image.new("RGB", (8, 8), "red").save(tmp_path / "secret.jpg")
    frames = made_folder / "frames-of-v2"
    frames.mkdir()
    (frames / "000001.jpg").symlink_to(tmp_path / "secret.jpg")
    try:
        forge_source(made_root, str(frames), media=Media.FRAMES)
        url = "/api/audits/run/picture?video=v2&frame=0"
        assert "is no rate" in refusal(client_of(made_root).get(url), 400)
        forge_source(made_root, str(frames), media=Media.FRAMES, fps=10.0)
        assert "--media FOLDER" in refusal(client_of(made_root).get(url), 404)
        shown = client_of(made_root, media=(str(tmp_path),)).get(url)
        assert shown.headers["content-type"] == "image/jpeg"
    finally:
        shutil.rmtree(frames)


def test_file_that_is_no_video_is_not_shown_even_from_the_datasets_folder(
    made_root: str, made_folder: Path
) -> None:
    forge_source(made_root, str(made_folder / "manifest.csv"))
    refusal(client_of(made_root).get("/api/audits/run/media?video=v2"), 404)


def test_videos_of_a_folder_that_was_named_are_shown(
    made_root: str, made_folder: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "elsewhere.mp4"
    copy.write_bytes((made_folder / "v2.mp4").read_bytes())
    forge_source(made_root, str(copy))
    client = client_of(made_root, media=(str(tmp_path),))
    assert client.get("/api/audits/run/media?video=v2").content == copy.read_bytes()


class AskedServer(ThreadingHTTPServer):
    """Knows what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        asked = self.asked

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                self.send_error(404)

            do_HEAD = do_GET

            def log_message(self, *_: object) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/data"


@pytest.fixture
def asked_server() -> Iterator[AskedServer]:
    with AskedServer() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def forge_dataset(root: str, url: str) -> None:
    """Makes a run and its audit say that the dataset, and video v2 of it, are at a URL."""
    folder = RunPaths(Storage(root)).audit(1)
    forge_source(root, f"{url}/v2.mp4")
    for storage, key in ((Storage(root), RunPaths.RUN), (folder, RunPaths.AUDIT)):
        content = storage.read_json(key, dict)
        content["config"]["dataset"]["path"] = url
        storage.put_json(key, content)


def test_url_that_a_root_names_is_asked_only_where_the_service_was_started_for_it(
    made_root: str, asked_server: AskedServer
) -> None:
    forge_dataset(made_root, asked_server.url)
    assert open_audit(made_root).config.dataset.path == asked_server.url
    names = ("media?video=v2", "picture?video=v2&frame=3")
    for media in ((), ("http://127.0.0.1:1",), (f"{asked_server.url}-2",)):
        client = client_of(made_root, media=media)
        for name in names:
            assert "--media URL" in refusal(client.get(f"/api/audits/run/{name}"), 404)
        assert client.get("/api/audits/run/video?video=v2").json()["media"] == "missing"
    assert asked_server.asked == []
    client = client_of(made_root, media=(asked_server.url,))
    assert client.get("/api/audits/run/video?video=v2").json()["media"] == "missing"
    assert asked_server.asked != [], "now it may be asked, and has no such video"


@pytest.mark.parametrize("place", ["outside", "no label file", "url"])
def test_labels_of_a_forged_root_are_not_handed_out_as_corrected(
    made_root: str, made_folder: Path, tmp_path: Path, asked_server: AskedServer, place: str
) -> None:
    secret, inside = tmp_path / "secret.txt", made_folder / "shadow"
    for file in (secret, inside):
        file.write_text("root:x:0:0\n" * 300)
    forged = {"outside": str(secret), "no label file": str(inside)}
    client = client_of(made_root)
    store_of(made_root, None).append(
        NewReview(
            **{"key": "k" * 8, "revision": 1, "video": "v2", "start": 120, "stop": 160},
            **{"decision": Decision.WRONG, "label": "b", "reviewer": "Ada"},
        )
    )
    assert client.get("/api/audits/run/corrected").status_code == 200
    folder = RunPaths(Storage(made_root)).audit(1)
    videos = {video.id: video for video in read_videos(folder)}
    labels = forged.get(place, f"{asked_server.url}/v2.txt")
    replace_videos(folder, [*(videos | {"v2": replace(videos["v2"], labels=labels)}).values()])
    try:
        sentence = refusal(client_of(made_root).get("/api/audits/run/corrected"), 400)
        assert "no label file below the folder of the dataset" in sentence
        assert "root:x" not in sentence
        assert asked_server.asked == []
    finally:
        inside.unlink()


def test_submitting_needs_a_token_on_this_machine_too() -> None:
    with pytest.raises(ConfigError, match="needs --token"):
        ServiceSettings(roots=("/r",), allow_submit=True)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"root": "/etc/run"}, "root is /etc/run, which is not below"),
        ({"root": "/runs/../etc"}, "root is"),
        ({"root": "/runs-of-others/x"}, "root is"),
        ({"dataset": ManifestConfig(path="/home/me")}, "dataset.path is /home/me"),
        (
            {"dataset": ManifestConfig(path="/data/a", truth="/etc/passwd")},
            "dataset.truth is /etc/passwd",
        ),
        ({"root": "s3://bucket/runs/../other/x"}, "root is s3"),
        (
            {"scorers": {"transformer": ScorerConfig(arguments={"pretrained": "/etc/passwd"})}},
            "scorers.transformer.arguments.pretrained is /etc/passwd",
        ),
        ({"scorers": {"x": ScorerConfig(model="os:system")}}, "names the model 'os:system'"),
        ({"scorers": {"os:system": ScorerConfig()}}, "names the model 'os:system'"),
        (
            {"audit": AuditConfig(reviews="sqlite:////home/me/team.db")},
            "audit.reviews is sqlite:////home/me/team.db",
        ),
    ],
)
def test_submitted_config_stays_where_the_service_was_started_for(
    changes: dict[str, object], words: str
) -> None:
    settings = ServiceSettings(
        roots=("/runs/a",),
        token=TOKEN,
        allow_submit=True,
        submit_below=("/runs", "/data", "s3://bucket/runs"),
        submit_models=("mine:Net",),
        database="sqlite:////srv/reviews.db",
    )
    good = RunConfig(
        root="/runs/b",
        dataset=ManifestConfig(path="/data/a"),
        scorers={"x": ScorerConfig(model="mine:Net"), "framewise": ScorerConfig()},
    )
    refuse_beyond(good, settings)
    refuse_beyond(replace(good, root="s3://bucket/runs/b"), settings)
    refuse_beyond(replace(good, audit=AuditConfig(reviews=settings.database)), settings)
    with pytest.raises(ConfigError, match=words):
        refuse_beyond(replace(good, **changes), settings)  # type: ignore[arg-type]


def test_requests_by_another_name_of_the_machine_are_refused(made_root: str) -> None:
    client = client_of(made_root)
    for host in ("evil.example", "127.0.0.1.evil.example", "", "localhost.evil:8000"):
        assert client.get("/api/audits", headers={"host": host}).status_code == 421
    for origin in ("http://evil.example", "null", "http://127.0.0.1:9999"):
        assert client.get("/api/audits", headers={"origin": origin}).status_code == 403


def test_pages_may_load_nothing_from_elsewhere(made_root: str) -> None:
    policy = client_of(made_root).get("/").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
