"""A file system of a few megabytes, for tests that fill it or make it read-only."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class SmallDisk:
    """A file system of its own, mounted at a folder."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._ballast = folder / ".ballast"

    def fill(self, *, left: int) -> None:
        """Leaves room for so many bytes."""
        facts = os.statvfs(self.folder)
        with self._ballast.open("wb") as file:
            file.write(b"0" * max(0, facts.f_bavail * facts.f_frsize - left))

    def make_room(self) -> None:
        self._ballast.unlink(missing_ok=True)

    def mount(self, option: str) -> None:
        """Changes how it is mounted: `ro` or `rw`."""
        subprocess.run(["mount", "-o", f"remount,{option}", str(self.folder)], check=True)


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[SmallDisk]:
    """Skips the test where no file system can be mounted."""
    folder.mkdir(parents=True)
    options = f"size={megabytes}m,nr_inodes=0"
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("there is no `mount`")
    if done.returncode:
        pytest.skip(f"a file system can't be mounted here: {done.stderr.strip()}")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
