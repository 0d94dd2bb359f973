"""Reading an audit from object storage: a real S3 protocol, nothing copied beforehand."""

import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import made_run
import pytest

import csl_dist
from csl_dist.report import write_report
from csl_dist.storage.url import Storage

if TYPE_CHECKING:
    from s3_server import FaultyProxy

moto = pytest.importorskip("moto.server", reason="moto is not installed")
ROOT = "s3://audits-to-read/runs/made"


@pytest.fixture
def remote_root(made_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The finished run in a bucket."""
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    endpoint = "http://{}:{}".format(*server.get_host_and_port())
    settings = {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
        "NO_PROXY": "127.0.0.1",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    bucket = urllib.request.Request(f"{endpoint}/audits-to-read", method="PUT")
    urllib.request.urlopen(bucket).close()
    local, remote = Storage(str(made_folder / "run")), Storage(ROOT)
    for key in local.list_keys():
        if not key.endswith(".safetensors"):
            remote.put(key, local.read(key))
    yield ROOT
    server.stop()


def test_audit_is_read_and_reported_on_s3(remote_root: str, made_folder: Path) -> None:
    near, far = csl_dist.open_audit(str(made_folder / "run")), csl_dist.open_audit(remote_root)
    assert far.missing() == []
    assert far.flags().equals(near.flags())
    assert (far.csl("v2") == near.csl("v2")).all()
    labels = made_run.TRUE_LABELS
    assert (far.csl("v2", labels=labels) == near.csl("v2", labels=labels)).all()
    assert (far.trajectory("v3", frames=7) == near.trajectory("v3", frames=7)).all()
    assert write_report(far, most=1) == f"{ROOT}/report.html"
    assert b"Label audit: made" in Storage(ROOT).read("report.html")


def test_one_frame_takes_two_requests_and_one_where_the_video_is_open(
    proxy: "FaultyProxy", made_folder: Path
) -> None:
    local, remote = Storage(str(made_folder / "run")), Storage("s3://bucket/one-frame")
    for key in local.list_keys():
        if not key.endswith(".safetensors"):
            remote.put(key, local.read(key))
    near, far = csl_dist.open_audit(local.url), csl_dist.open_audit(remote.url)

    def num_requests(video: str, frame: int) -> int:
        proxy.requests.clear()
        found = far.trajectory(video, frames=frame, weighted=False)
        assert (found == near.trajectory(video, frames=frame, weighted=False)).all()
        return len(proxy.requests)

    assert num_requests("v2", 7) == 4  # where trajectories lie, and all labels, are read once
    assert num_requests("v3", 7) == 2
    assert num_requests("v3", 8) == 1
