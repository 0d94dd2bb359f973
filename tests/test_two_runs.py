"""Two `csl run` on one root, on disk and on S3."""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from builder import MadeVideo, write_manifest

from csl_dist.storage.lock import holder_of
from csl_dist.storage.paths import RunPaths
from csl_dist.storage.url import Storage

CLASSES = ("reach", "grasp", "lift")
CONFIG = """\
root: {root}
dataset: {{path: {data}, folds: 2}}
scorers: {{framewise: {{}}}}
train: {{epochs: 4, learning_rate: 1e-3, batch_frames: 256}}
"""
COMMAND = (sys.executable, "-m", "csl_dist.cli", "run")


def write_videos(folder: Path) -> None:
    labels_T = np.repeat([0, 1, 2], 20)
    names_T = [CLASSES[label] for label in labels_T]
    features_TD = np.eye(3, dtype=np.float32)[labels_T]
    videos = [
        MadeVideo(id=f"v{number}", split="audit", names_T=names_T, features_TD=features_TD)
        for number in range(6)
    ]
    write_manifest(folder, videos, fps=2, classes=CLASSES)


@pytest.mark.slow
@pytest.mark.xdist_group("ray")
@pytest.mark.parametrize("kind", ["disk", "s3"])
def test_second_run_is_refused_and_takes_over_when_the_first_is_killed(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if kind == "s3":
        request.getfixturevalue("proxy")
    root = str(tmp_path / "run") if kind == "disk" else f"s3://bucket/{tmp_path.name}"
    write_videos(tmp_path / "data")
    config = tmp_path / "c.yaml"
    config.write_text(CONFIG.format(root=root, data=tmp_path / "data"))
    with start(config) as first:
        wait_for_lock(root, first)
        second = subprocess.run([*COMMAND, str(config)], capture_output=True, text=True)
        assert second.returncode == 2
        assert f"process {first.pid}" in " ".join(second.stderr.split())
        assert first.poll() is None
        first.kill()
    with start(config) as third:
        begun = time.monotonic()
        wait_for_lock(root, third)
        assert time.monotonic() - begun < 60
        assert third.wait() == 0


def start(config: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [*COMMAND, str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def wait_for_lock(root: str, process: "subprocess.Popen[bytes]") -> None:
    paths = RunPaths(Storage(root))
    while (holder := holder_of(paths)) is None or holder.pid != process.pid:
        assert process.poll() is None
        time.sleep(0.1)
