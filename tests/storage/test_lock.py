"""One writer per root: on disk and on S3, with holders that live, end, and work elsewhere."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from csl_dist.errors import LockedError
from csl_dist.storage import lock
from csl_dist.storage.lock import Holder, RootLock, holder_of
from csl_dist.storage.paths import RunPaths
from csl_dist.storage.url import Storage

HOLD = """
import sys, time
from csl_dist.storage.lock import RootLock
from csl_dist.storage.paths import RunPaths
from csl_dist.storage.url import Storage
with RootLock(RunPaths(Storage(sys.argv[1])), "csl run"):
    print("held", flush=True)
    time.sleep(100)
"""


@pytest.fixture(params=["disk", "s3"])
def paths(request: pytest.FixtureRequest, tmp_path: Path) -> RunPaths:
    if request.param == "disk":
        return RunPaths(Storage(str(tmp_path / "run")))
    request.getfixturevalue("proxy")
    return RunPaths(Storage(f"s3://bucket/{tmp_path.name}"))


@pytest.fixture
def other(paths: RunPaths) -> Iterator["subprocess.Popen[str]"]:
    """Another process that holds the lock."""
    command = [sys.executable, "-c", HOLD, paths.root.url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_second_writer_is_refused_with_who_holds_the_lock(
    paths: RunPaths, other: "subprocess.Popen[str]"
) -> None:
    with pytest.raises(LockedError, match=rf"`csl run` of .* \(process {other.pid}\), since 20"):
        RootLock(paths, "csl audit").__enter__()
    holder = holder_of(paths)
    assert holder is not None
    assert holder.pid == other.pid


def test_lock_of_a_killed_process_is_taken_over_at_once(
    paths: RunPaths, other: "subprocess.Popen[str]"
) -> None:
    other.kill()
    other.wait()
    assert holder_of(paths) is None, "status shows nobody at work"
    with RootLock(paths, "csl audit"):
        holder = holder_of(paths)
        assert holder is not None
        assert holder.command == "csl audit"
    assert not paths.root.exists(RunPaths.LOCK)


def test_lock_goes_when_the_work_fails(paths: RunPaths) -> None:
    with pytest.raises(ZeroDivisionError), RootLock(paths, "csl run"):
        raise ZeroDivisionError
    assert paths.root.list_keys() == []


def foreign(paths: RunPaths, **changes: Any) -> Holder:
    """A lock that a process of another machine left."""
    with RootLock(paths, "csl run"):
        content = json.loads(paths.root.read(RunPaths.LOCK))
    holder = replace(Holder(**content), machine="elsewhere", host="node7", **changes)
    paths.root.put_json(RunPaths.LOCK, asdict(holder))
    return holder


def test_lock_of_another_machine_holds_while_it_is_written(paths: RunPaths) -> None:
    foreign(paths, beat=time.time() - 5)
    with pytest.raises(LockedError, match="on node7"):
        RootLock(paths, "csl audit").__enter__()


def test_lock_of_another_machine_that_is_not_written_any_more_is_taken_over(
    paths: RunPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign(paths, beat=time.time() - 100)
    monkeypatch.setattr(lock, "WATCH_SECONDS", 0.2)
    with RootLock(paths, "csl audit"):
        holder = holder_of(paths)
        assert holder is not None
        assert holder.host != "node7"


def test_silent_holder_is_not_at_work_where_the_system_tells_nothing_of_processes(
    paths: RunPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "_started", lambda pid: None)
    with RootLock(paths, "csl run"):
        assert holder_of(paths) is not None
        content = json.loads(paths.root.read(RunPaths.LOCK))
        with pytest.raises(LockedError, match="being written to"):
            RootLock(paths, "csl audit").__enter__()
    killed = replace(Holder(**content), beat=time.time() - 100)
    paths.root.put_json(RunPaths.LOCK, asdict(killed))
    assert holder_of(paths) is None


def test_holder_whose_clock_is_late_keeps_its_lock(
    paths: RunPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = foreign(paths, beat=time.time() - 100)

    def wait(seconds: float) -> None:
        """Meanwhile the holder writes its lock, at a time that it believes in."""
        later = replace(holder, beat=holder.beat + 5)
        paths.root.put_json(RunPaths.LOCK, asdict(later))

    monkeypatch.setattr(lock.time, "sleep", wait)
    with pytest.raises(LockedError, match="on node7"):
        RootLock(paths, "csl audit").__enter__()


def test_held_lock_is_written_again_and_again(
    paths: RunPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "BEAT_SECONDS", 0.05)
    with RootLock(paths, "csl run"):
        first = paths.root.version(RunPaths.LOCK)
        deadline = time.monotonic() + 20
        while paths.root.version(RunPaths.LOCK) == first:
            assert time.monotonic() < deadline


def test_damaged_lock_is_taken_over(paths: RunPaths) -> None:
    paths.root.put(RunPaths.LOCK, b"null")
    with RootLock(paths, "csl run"):
        assert holder_of(paths) is not None


def test_conditional_writes_have_one_winner(paths: RunPaths) -> None:
    root = paths.root
    assert root.create("key", b"1")
    assert not root.create("key", b"2")
    version = root.version("key")
    assert version is not None
    assert root.replace("key", b"3", version)
    assert not root.replace("key", b"4", version)
    assert root.read("key") == b"3"
    assert not root.replace("none", b"5", version)
