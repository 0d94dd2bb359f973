"""The most memory that any Ray worker of this machine has held, as Linux counts it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SAMPLE_SECONDS = 0.5


class WorkerMemory:
    """Watches the worker processes of a task or actor, or all of them; they come and go."""

    def __init__(self, task: str = "") -> None:
        self._name = f"ray::{task}"
        self.peak_bytes = 0
        self.peak_private_bytes = 0
        """Without files that are mapped, whose pages processes share."""

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Looks at the workers every so often until the block ends."""
        stop = threading.Event()
        thread = threading.Thread(target=self._watch, args=[stop], daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _watch(self, stop: threading.Event) -> None:
        while not stop.wait(SAMPLE_SECONDS):
            for sizes in _worker_sizes(self._name):
                self.peak_bytes = max(self.peak_bytes, sizes["VmHWM"])
                self.peak_private_bytes = max(self.peak_private_bytes, sizes["RssAnon"])


def _worker_sizes(name: str) -> Iterator[dict[str, int]]:
    """Bytes by what they are, as Linux tells them, of every process whose name begins so."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # a process may end while it is looked at
            if (folder / "cmdline").read_text().startswith(name):
                lines = (folder / "status").read_text().splitlines()
                pairs = [line.split(":") for line in lines if line.endswith(" kB")]
                yield {what: int(size.split()[0]) * 1024 for what, size in pairs}
