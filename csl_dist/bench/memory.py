"""The most memory that any Ray worker of this machine has held, from Linux's own book-keeping."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SAMPLE_SECONDS = 0.5


class WorkerMemory:
    """Watches worker processes, which come and go."""

    def __init__(self) -> None:
        self.peak_bytes = 0

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
            self.peak_bytes = max([self.peak_bytes, *_peaks()])


def _peaks() -> Iterator[int]:
    """The highest resident size so far of every process that Ray runs tasks or actors in."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # a process may end while it is looked at
            if (folder / "cmdline").read_text().startswith("ray::"):
                lines = (folder / "status").read_text().splitlines()
                peak = next(line for line in lines if line.startswith("VmHWM:"))
                yield int(peak.split()[1]) * 1024
