"""What killed commands leave on a machine: temporary folders, sessions of Ray, half-written files.

Nothing here belongs to a command that runs: folders name the process that made them, sessions are
named in the command lines of their processes, and a run root is looked at only while no command
writes to it.
"""

import contextlib
import os
import re
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from csl_dist.errors import LockedError, StorageError
from csl_dist.storage.lock import holder_of
from csl_dist.storage.paths import RunPaths
from csl_dist.storage.url import Storage

OWN = re.compile(r"csl-(train|metrics|export|features)-")
OF_PROCESS = re.compile(r"csl-(?:train|metrics|export)-(\d+)-")
"""Folders that are named after the process that made them."""
HALF_WRITTEN = re.compile(r"#\d+$|^\.csl-\w{8}$")
"""What obstore calls a file until it is whole, and a file that only tries whether one can write."""
RAYLET = "raylet/raylet"
"""In the command line of the parent of every worker and agent of Ray."""
OLD_SECONDS = 24 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """Something that no running command needs."""

    what: str
    num_bytes: int
    remove: Callable[[], None]


def own_folder(kind: str) -> str:
    """Prefix of a temporary folder that `leftovers` recognises when its process is gone."""
    return f"csl-{kind}-{os.getpid()}-"


def leftovers() -> list[Leftover]:
    """What killed commands of this user left on this machine."""
    temporary = Path(tempfile.gettempdir())
    return [*_folders(temporary), *orphans(), *_ray_sessions(), *_cleaners()]


def half_written(root: str) -> list[Leftover]:
    """Files in a run root that were begun; not those of a command that runs."""
    storage = Storage(root)
    if not storage.exists(RunPaths.RUN) and not storage.exists(RunPaths.LOCK):
        raise StorageError(f"{root} is not a run root: it has no {RunPaths.RUN}")
    writer = holder_of(RunPaths(storage))
    if writer is not None and writer.pid != os.getpid():
        raise LockedError(
            f"{root} is being written to by {writer.sentence()}; wait for it to end, then look for "
            "half-written files"
        )
    # A put to a bucket is whole or not there.
    return list(_half_written(Path(storage.url))) if storage.is_local else []


def _folders(temporary: Path) -> Iterator[Leftover]:
    processes = command_lines()
    ray_runs = any("raylet" in line or line.startswith("ray::") for line in processes.values())
    for path in sorted(temporary.glob("csl-*")):
        if not OWN.match(path.name) or not _is_mine(path):
            continue
        maker = OF_PROCESS.match(path.name)
        is_old = time.time() - path.stat().st_mtime > OLD_SECONDS
        in_use = int(maker[1]) in processes if maker else ray_runs and not is_old
        if not in_use:
            yield _folder(path, f"temporary folder {path}")


def _ray_sessions() -> Iterator[Leftover]:
    lines = " ".join(command_lines().values())
    for path in sorted(Path("/tmp/ray").glob("session_2*")):
        if _is_mine(path) and path.is_dir() and path.name not in lines and not _is_new(path):
            yield _folder(path, f"session of a Ray that has ended, {path}")


def _cleaners() -> Iterator[Leftover]:
    """Ray Train's clean-up actors whose training was killed; each holds a process for ever."""
    lines = command_lines()
    by_raylet: dict[int, list[int]] = {}
    busy = set()
    for pid, line in lines.items():
        raylet = _parent(pid)
        if line.startswith("ray::PlacementGroupCleaner") and _is_mine(Path(f"/proc/{pid}")):
            by_raylet.setdefault(raylet, []).append(pid)
        elif line.startswith("ray::TrainController"):
            busy.add(raylet)
    for raylet, pids in by_raylet.items():
        for pid in pids if raylet not in busy else ():
            yield Leftover(
                what=f"clean-up process {pid} of a training that was killed",
                num_bytes=0,
                remove=partial(_end, pid),
            )


def _is_new(session: Path) -> bool:
    """Whether a session was written to lately: by processes that start, or in a container."""
    times = [session.stat().st_mtime]
    for path in (session / "logs").glob("*"):
        with contextlib.suppress(OSError):
            times.append(path.lstat().st_mtime)
    return time.time() - max(times) < 60


def orphans() -> Iterator[Leftover]:
    """Processes of Ray whose raylet is gone: agents do not notice that, and stay for ever."""
    lines = command_lines()
    for pid, line in lines.items():
        parent = lines.get(_parent(pid))
        if (
            line.startswith("ray::")
            and parent is not None
            and RAYLET not in parent
            and _is_mine(Path(f"/proc/{pid}"))
        ):
            yield Leftover(
                what=f"process {pid} ({line.strip()}) of a Ray that has ended",
                num_bytes=0,
                remove=partial(_end, pid),
            )


def _half_written(root: Path) -> Iterator[Leftover]:
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            if HALF_WRITTEN.search(name) and not path.is_symlink():
                size = path.stat().st_size
                remove = partial(path.unlink, missing_ok=True)
                yield Leftover(what=f"half-written file {path}", num_bytes=size, remove=remove)


def command_lines() -> dict[int, str]:
    """Command lines of all processes of this machine, by process id."""
    lines = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            lines[int(folder.name)] = (folder / "cmdline").read_text().replace("\0", " ")
        except OSError:  # a process may end while it is looked at
            continue
    return lines


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _folder(path: Path, what: str) -> Leftover:
    files = (Path(folder, name) for folder, _, names in os.walk(path) for name in names)
    num_bytes = sum(file.lstat().st_size for file in files if os.path.lexists(file))
    remove = partial(shutil.rmtree, path, ignore_errors=True)
    return Leftover(what=what, num_bytes=num_bytes, remove=remove)


def _end(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _is_mine(path: Path) -> bool:
    try:
        return path.lstat().st_uid == os.getuid()
    except OSError:
        return False
