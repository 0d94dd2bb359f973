"""RootLock: one writer per run root.

`lock.json` says who writes, and is written anew every few seconds. A lock whose process has ended
is taken over: on the same machine that is seen at once, elsewhere by the lock not being written any
more. Readers never look at it.
"""

import getpass
import json
import logging
import os
import socket
import threading
import time
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType

from csl_dist.errors import LockedError, StorageError
from csl_dist.storage.paths import RunPaths

LOG = logging.getLogger(__name__)

BEAT_SECONDS = 5.0
"""Time between two writings of a lock that is held."""
STALE_SECONDS = 30.0
"""A lock of another machine that was not written for so long may be left behind."""
WATCH_SECONDS = 2.5 * BEAT_SECONDS
"""How long such a lock is watched before it is taken over, as clocks may differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who holds a lock."""

    token: str
    command: str
    user: str
    host: str
    machine: str
    """Names the booted system and its process numbers: `pid` means nothing elsewhere."""
    pid: int
    started: float
    """When the process started, in the system's clock ticks, as pids are used again; 0 where the
    system does not tell, so that only the beat does."""
    since: float
    """Seconds since 1970."""
    beat: float
    """When the lock was last written."""

    def sentence(self) -> str:
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.since))
        return f"`{self.command}` of {self.user} on {self.host} (process {self.pid}), since {since}"

    def has_ended(self) -> bool | None:
        """Whether the process is gone; None where that can't be seen from here."""
        if self.machine != _machine() or not self.started:
            return None
        return _started(self.pid) != self.started


def holder_of(paths: RunPaths) -> Holder | None:
    """Who writes to a run root, as far as its lock says; a process that has ended does not."""
    found = _read(paths)
    if found is None or found.has_ended():
        return None
    # Where this system does not tell of processes, its clock tells how long one has been silent.
    is_silent = time.time() - found.beat > STALE_SECONDS
    return None if found.machine == _machine() and not found.started and is_silent else found


class RootLock:
    """Held while a command writes to a run root; a second command is refused."""

    def __init__(self, paths: RunPaths, command: str):
        self._paths = paths
        now = time.time()
        self._holder = Holder(
            token=uuid.uuid4().hex,
            command=command,
            user=_user(),
            host=socket.gethostname(),
            machine=_machine(),
            pid=os.getpid(),
            started=_started(os.getpid()) or 0.0,
            since=now,
            beat=now,
        )
        self._ended = threading.Event()
        self._beats = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> "RootLock":
        root = self._paths.root
        root.refuse_unwritable()
        if not root.create(RunPaths.LOCK, _content(self._holder)):
            self._take_over()
        self._beats.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._beats.join()
        found = _read(self._paths)
        if found is not None and found.token == self._holder.token:
            self._paths.root.delete(RunPaths.LOCK)

    def _take_over(self) -> None:
        """Replaces a lock that was left behind; LockedError where its holder is at work."""
        root = self._paths.root
        version = root.version(RunPaths.LOCK)
        found = _read(self._paths)
        if found is not None:
            ended = found.has_ended()
            if ended is None and time.time() - found.beat > STALE_SECONDS:
                time.sleep(WATCH_SECONDS)
                ended = root.version(RunPaths.LOCK) == version
            if not ended:
                raise LockedError(
                    f"{root.url} is being written to by {found.sentence()}; wait for it to end, "
                    "or stop it"
                )
        data = _content(self._holder)
        taken = root.replace(RunPaths.LOCK, data, version) if version else False
        if not taken and not root.create(RunPaths.LOCK, data):
            now = _read(self._paths)
            who = now.sentence() if now is not None else "another command"
            raise LockedError(f"{root.url} is being written to by {who}; wait for it to end")

    def _beat(self) -> None:
        while not self._ended.wait(BEAT_SECONDS):
            try:
                found = _read(self._paths)
                if found is None or found.token != self._holder.token:
                    LOG.error("the lock of %s was taken by another command", self._paths.root.url)
                    return
                held = Holder(**asdict(self._holder) | {"beat": time.time()})
                self._paths.root.put(RunPaths.LOCK, _content(held))
            except StorageError as error:
                # The work itself will meet the same trouble, and says so.
                LOG.warning("the lock can't be renewed: %s", error)


def _read(paths: RunPaths) -> Holder | None:
    """What the lock says; None where there is none, or none that can be read."""
    try:
        if not paths.root.exists(RunPaths.LOCK):
            return None
        return paths.root.read_json(RunPaths.LOCK, lambda content: Holder(**content))
    except StorageError:
        return None


def _content(holder: Holder) -> bytes:
    return (json.dumps(asdict(holder), indent=2) + "\n").encode()


def _machine() -> str:
    """The booted system and the space of its process numbers; containers have their own."""
    boot, space = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/pid")
    if boot.exists() and space.exists():
        return f"{boot.read_text().strip()} {os.readlink(space)}"
    return socket.gethostname()


def _started(pid: int) -> float | None:
    """When a process of this machine started; None where there is no such process."""
    try:
        # The name in brackets may hold blanks; what follows it is plain.
        facts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    is_zombie = facts[0] == "Z"
    return None if is_zombie else float(facts[19])


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
