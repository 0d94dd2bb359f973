"""What killed commands leave behind is listed and removed; what a running one uses is not."""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from csl_dist.cluster import leftovers as module
from csl_dist.cluster.leftovers import leftovers, own_folder
from csl_dist.storage.lock import RootLock
from csl_dist.storage.paths import RunPaths
from csl_dist.storage.url import Storage
from csl_dist.training.stage import run_name


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(module, "_ray_sessions", lambda: iter(()))
    monkeypatch.setattr(module, "_cleaners", lambda: iter(()))
    return tmp_path


def ended_process() -> int:
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def test_folders_of_processes_that_are_gone_are_removed(temporary: Path) -> None:
    gone = temporary / f"csl-train-{ended_process()}-x"
    used = temporary / f"{own_folder('train')}x"
    others = temporary / "csl-notes"
    for folder in (gone, used, others):
        (folder / "inside").mkdir(parents=True)
        (folder / "inside/file").write_bytes(b"1234")
    [found] = leftovers()
    assert str(gone) in found.what
    assert found.num_bytes == 4
    found.remove()
    assert [folder.exists() for folder in (gone, used, others)] == [False, True, True]


def test_half_written_files_go_only_while_nobody_writes(temporary: Path) -> None:
    root = Storage(str(temporary / "root"))
    root.put("kept#name.json", b"1")
    half = temporary / "root/a.json#3"
    half.write_bytes(b"12")
    with RootLock(RunPaths(root), "test"):
        assert leftovers(root.url) == []
    [found] = leftovers(root.url)
    found.remove()
    assert sorted(os.listdir(temporary / "root")) == ["kept#name.json"]


def test_name_of_many_trainings_fits_a_files_name() -> None:
    names = [f"transformer/fold-{n}" for n in range(200)]
    assert len(run_name(names)) < 255
    assert len(run_name(["x" * 400])) < 255
