"""An audit on two nodes in namespaces of their own, which share no file system but S3."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import machines
import pytest
from machines import HEAD, IMAGE, OWN_FOLDERS, ROWS, WORKER, Machines, ray_machines
from ray_cluster import PATIENCE
from s3_server import BUCKET

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("ray"),
    pytest.mark.timeout(1800),  # three audits, two of them on nodes of one CPU each
]

ROOT = f"s3://{BUCKET}/namespaces"
DATA = f"s3://{BUCKET}/data"
CSL = [sys.executable, "-m", "csl_dist.cli"]

CONFIG = """\
root: {root}
dataset: {{path: {folder}/dataset, truth: {folder}/dataset/errors.csv}}
features: {{weights: random, size: 32, chunk_frames: 32}}
scorers: {{framewise: {{}}}}
train: {{epochs: 3, learning_rate: 1e-3, batch_frames: 256, workers: 2}}
predict: {{group_frames: 150}}
"""

RESULTS = """
import hashlib, json, sys
from csl_dist import open_audit
from csl_dist.storage.url import Storage
audit, storage = open_audit(sys.argv[1]), Storage(sys.argv[1])
csl = {video.id: audit.csl(video.id).tolist() for video in audit.held_out_videos()}
metrics = storage.read_json("audits/0001/metrics.json", dict)
chunks = [key for key, _ in storage.list_sizes() if "/c/" in key and ".zarr/" in key]
digests = {key: hashlib.sha256(storage.read(key)).hexdigest() for key in chunks}
print(json.dumps({"metrics": metrics, "csl": csl, "chunks": digests}))
"""
"""Prints what a run found: metrics, CSL, and what each chunk of its stores holds."""


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory, small_dataset: Path) -> Path:
    """What both machines have a copy of: videos, labels and a config."""
    reason = machines.refusal()
    if reason is not None:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("image")
    shutil.copytree(small_dataset, folder / "dataset")
    (folder / "small.yaml").write_text(CONFIG.format(root=ROOT, folder=IMAGE))
    (folder / "bucket.yaml").write_text(CONFIG.format(root=f"{ROOT}-bucket", folder=DATA))
    return folder


@pytest.fixture(scope="module")
def local_results(image: Path) -> str:
    """What a run on this machine finds."""
    config = image.parent / "local.yaml"
    config.write_text(CONFIG.format(root=image.parent / "run", folder=image))
    environment = {**os.environ, **PATIENCE}
    subprocess.run([*CSL, "run", str(config)], check=True, capture_output=True, env=environment)
    command = [sys.executable, "-c", RESULTS, str(image.parent / "run")]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def cluster(image: Path, local_results: str) -> Iterator[Machines]:
    with ray_machines(image) as cluster:
        yield cluster


def test_machines_share_no_folder(cluster: Machines) -> None:
    for folder in OWN_FOLDERS:
        cluster.head.run("touch", f"{folder}/csl-probe")
        assert "csl-probe" in cluster.head.run("ls", folder)
        assert "csl-probe" not in cluster.worker.run("ls", folder)
        assert not (Path(folder) / "csl-probe").exists()
    outside = Path(__file__).with_name("csl-probe")
    refused = cluster.head.start("touch", str(outside))
    assert "Read-only" in refused.communicate()[1]


UPLOAD = """
import sys
from pathlib import Path
from csl_dist.storage.url import Storage
folder, storage = Path(sys.argv[1]), Storage(sys.argv[2])
for file in folder.rglob("*"):
    if file.is_file():
        storage.put(str(file.relative_to(folder)), file.read_bytes())
"""
"""Copies a folder to the bucket."""


def test_audit_on_them_finds_what_a_local_run_finds(cluster: Machines, local_results: str) -> None:
    head, environment = cluster.head, cluster.environment
    assert len(json.loads(local_results)["chunks"]) > 20, "features, trajectories and scores"
    head.run(*CSL, "run", f"{IMAGE}/small.yaml", environment=environment)
    found = head.run(sys.executable, "-c", RESULTS, ROOT, environment=environment)
    assert json.loads(found) == json.loads(local_results)

    requests = cluster.requests()
    for address in (HEAD, WORKER):
        written = {path for method, path in requests[address] if method == "PUT"}
        assert any(ROWS in path for path in written), f"{address} scored nothing"


def test_dataset_in_the_bucket_needs_no_file_on_the_machines(
    cluster: Machines, local_results: str
) -> None:
    head, environment = cluster.head, cluster.environment
    upload = (sys.executable, "-c", UPLOAD, f"{IMAGE}/dataset", f"{DATA}/dataset")
    head.run(*upload, environment=environment)
    for machine in (head, cluster.worker):
        machine.run("rm", "-r", f"{IMAGE}/dataset")
    head.run(*CSL, "run", f"{IMAGE}/bucket.yaml", environment=environment)
    found = head.run(sys.executable, "-c", RESULTS, f"{ROOT}-bucket", environment=environment)
    assert json.loads(found) == json.loads(local_results)
