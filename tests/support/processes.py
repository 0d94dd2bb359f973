"""The processes of a running command, for tests that kill some of them."""

import os
import signal
from pathlib import Path


def descendants(pid: int) -> dict[int, str]:
    """Command lines of all processes below one, by process id."""
    parents: dict[int, int] = {}
    names: dict[int, str] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text()
            names[int(folder.name)] = (folder / "cmdline").read_text().replace("\0", " ")
        except OSError:  # a process may end while it is looked at
            continue
        parents[int(folder.name)] = int(stat.rpartition(")")[2].split()[1])

    def is_below(process: int) -> bool:
        while process in parents:
            process = parents[process]
            if process == pid:
                return True
        return False

    return {process: name for process, name in names.items() if is_below(process)}


def kill_below(pid: int, title: str) -> int:
    """Kills, with signal 9, every process below one whose title holds some words; how many."""
    found = [process for process, name in descendants(pid).items() if title in name]
    for process in found:
        os.kill(process, signal.SIGKILL)
    return len(found)
