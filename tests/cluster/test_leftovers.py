"""What killed commands leave behind is listed and removed; what a running one uses is not."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from stored import different, stored
from typer.testing import CliRunner

from csl_dist.cli.app import app
from csl_dist.cluster import leftovers as module
from csl_dist.cluster.leftovers import leftovers, orphans, own_folder
from csl_dist.errors import LockedError, StorageError
from csl_dist.storage.paths import FORMAT_VERSION
from csl_dist.storage.url import Storage
from csl_dist.training.stage import run_name


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(module, "_ray_sessions", lambda: iter(()))
    monkeypatch.setattr(module, "_cleaners", lambda: iter(()))
    monkeypatch.setattr(module, "orphans", lambda: iter(()))
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
    root.put_json("run.json", {"format_version": FORMAT_VERSION})
    root.put("kept#name.json", b"1")
    (temporary / "root/a.json#3").write_bytes(b"12")
    (temporary / "root/link#1").symlink_to(temporary / "root/run.json")
    command = ["clean", root.url, "--remove"]
    with another_writer(root.url):
        assert isinstance(CliRunner().invoke(app, command).exception, LockedError)
    assert (temporary / "root/a.json#3").exists()
    listed = CliRunner().invoke(app, ["clean", root.url])
    assert "half-written file" in listed.stdout
    assert (temporary / "root/a.json#3").exists()
    assert "removed: 1" in CliRunner().invoke(app, command).stdout
    assert sorted(os.listdir(temporary / "root")) == ["kept#name.json", "link#1", "run.json"]


def test_root_is_cleaned_of_what_has_no_record_and_of_nothing_else(
    made_root: str, temporary: Path
) -> None:
    before = stored(Path(made_root))
    gone = temporary / f"csl-train-{ended_process()}-x"
    gone.mkdir()
    [training] = Path(made_root).glob("framewise/fold-0/checkpoints/*")
    newest = training / "epoch-0006/resume.safetensors"
    left = [
        training / "epoch-0005/resume.safetensors",
        training / "epoch-0007/model.safetensors",
        training / "epoch-0007/model.safetensors#1",
        Path(made_root) / "audits/0002/flags.parquet",
        Path(made_root) / ".csl-a_b01234",
    ]
    for path in left:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"1234")
    listed = CliRunner().invoke(app, ["clean", made_root]).stdout
    assert "left behind: 5, " in listed
    assert str(left[1]) in listed
    assert all(path.exists() for path in left)
    assert "removed: 5, " in CliRunner().invoke(app, ["clean", made_root, "--remove"]).stdout
    assert not any(path.exists() for path in left)
    assert newest.exists()
    assert different(stored(Path(made_root)), before) == []
    assert gone.exists(), "the machine is another matter"


def test_folder_that_is_no_run_root_is_left_alone(temporary: Path) -> None:
    mine = temporary / "notes#1"
    mine.write_text("mine")
    result = CliRunner().invoke(app, ["clean", str(temporary), "--remove"])
    assert isinstance(result.exception, StorageError)
    assert mine.read_text() == "mine"


def test_processes_of_ray_without_a_raylet_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent outlives a driver that is killed; here a process of that name, below this one."""
    with sleeping("ray::DashboardAgent") as agent:
        [found] = [one for one in orphans() if str(agent.pid) in one.what]
        found.remove()
        assert agent.wait(timeout=10) == -signal.SIGKILL
    with sleeping("ray::IDLE") as worker:
        here = module.command_lines() | {os.getpid(): f"/x/{module.RAYLET} --y"}
        monkeypatch.setattr(module, "command_lines", lambda: here)
        assert not [one for one in orphans() if str(worker.pid) in one.what]


@contextmanager
def sleeping(name: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process of a name, which the system tells a moment after it has begun."""
    with subprocess.Popen([name, "30"], executable="/bin/sleep") as process:
        while not Path(f"/proc/{process.pid}/cmdline").read_bytes():
            time.sleep(0.01)
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def another_writer(root: str) -> Iterator[None]:
    """A process that holds the lock."""
    script = (
        "import sys\n"
        "from csl_dist.storage.lock import RootLock\n"
        "from csl_dist.storage.paths import RunPaths\n"
        "from csl_dist.storage.url import Storage\n"
        f"with RootLock(RunPaths(Storage({root!r})), 'test'):\n"
        "    print('held', flush=True); sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield
        process.communicate()


def test_name_of_many_trainings_fits_a_files_name() -> None:
    names = [f"transformer/fold-{n}" for n in range(200)]
    assert len(run_name(names)) < 255
    assert len(run_name(["x" * 400])) < 255
