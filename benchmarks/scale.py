"""What a user waits for beside the work itself, on a dataset of thousands of videos.

.venv/bin/python benchmarks/scale.py [--videos 1000] [--work DIR] [--only status ...] [--json]

Videos of ready features, 500 frames each; 100 features and label files are made, the others are
links to them. One framewise scorer, two epochs on 100 videos. Each command runs in its own process
and should have the machine alone; CPU and memory are those of this process, and CPU also of all
that it started, which tells more than seconds where others use the machine. With --work, the
dataset and its run are kept, and made only once.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from figures import parser_of, print_figures

NUM_FRAMES, WIDTH, NUM_CLASSES, NUM_MADE, NUM_TRAINED = 500, 32, 8, 100, 100
POLL_SECONDS = 0.05
TREE_SECONDS = 1.0
"""Between two looks at all processes that a command has started."""


def write_dataset(folder: Path, num_videos: int) -> None:
    """Features that tell the class, labels of steps in order, and links to them."""
    random = np.random.default_rng(0)
    centres_CD = random.normal(size=(NUM_CLASSES, WIDTH))
    for name in ("features", "labels"):
        (folder / name).mkdir(parents=True)
    for i in range(min(NUM_MADE, num_videos)):
        cuts = np.sort(random.choice(np.arange(20, NUM_FRAMES - 20), NUM_CLASSES - 1, False))
        labels_T = np.searchsorted(cuts, np.arange(NUM_FRAMES), side="right")
        features_TD = centres_CD[labels_T] + random.normal(size=(NUM_FRAMES, WIDTH))
        np.save(folder / f"features/v{i:05}.npy", features_TD.astype("float32"))
        if i % 25 == 7:  # a step that got another's name
            labels_T[labels_T == 3] = 6
        text = "".join(f"step{label}\n" for label in labels_T)
        (folder / f"labels/v{i:05}.txt").write_text(text)
    (folder / "classes.txt").write_text("".join(f"step{i}\n" for i in range(NUM_CLASSES)))
    write_list(folder, num_videos)


def write_list(folder: Path, num_videos: int) -> None:
    """The manifest of so many videos, whose files are made or linked."""
    lines = ["id,source,labels,split,fps"]
    for i in range(num_videos):
        own = [folder / f"{kind}/v{i:05}.{end}" for kind, end in _FILES]
        for path, (kind, end) in zip(own, _FILES, strict=True):
            if not path.exists():
                os.link(folder / f"{kind}/v{i % NUM_MADE:05}.{end}", path)
        split = "train" if i < NUM_TRAINED else "val" if i < NUM_TRAINED + 20 else "audit"
        lines.append(f"v{i:05},features/v{i:05}.npy,labels/v{i:05}.txt,{split},5")
    (folder / "manifest.csv").write_text("\n".join(lines) + "\n")


_FILES = (("features", "npy"), ("labels", "txt"))


def write_config(folder: Path) -> Path:
    content = {
        "root": str(folder / "run"),
        "dataset": {"path": str(folder / "data" / "manifest.csv")},
        "scorers": {"framewise": {}},
        "train": {"epochs": 2, "learning_rate": 1e-2},
    }
    path = folder / "csl.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


class Commands:
    """Runs commands, each with its seconds and the memory of its own process."""

    def __init__(self, folder: Path):
        self._environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
        self._log = (folder / "log.txt").open("a")
        self.figures: dict[str, Any] = {}

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "csl_dist.cli", *arguments]
        self._log.write(f"\n$ csl {' '.join(arguments)}\n")
        self._log.flush()
        return subprocess.Popen(
            command, env=self._environment, stdout=self._log, stderr=subprocess.STDOUT
        )

    def time(self, name: str, *arguments: str, allowed: tuple[int, ...] = (0,)) -> None:
        start = time.perf_counter()
        process = self.start(*arguments)
        memory, cpu, looked = 0, 0.0, 0.0
        everyone: dict[int, float] = {}
        while process.poll() is None:
            memory = max(memory, peak_memory(process.pid))
            cpu = max(cpu, cpu_seconds(process.pid))
            if time.perf_counter() - looked > TREE_SECONDS:
                looked = time.perf_counter()
                for pid in descendants(process.pid):
                    everyone[pid] = max(everyone.get(pid, 0.0), cpu_seconds(pid))
            time.sleep(POLL_SECONDS)
        everyone[process.pid] = cpu
        if process.returncode not in allowed:
            raise SystemExit(f"csl {' '.join(arguments)} ended with {process.returncode}")
        self.note(name, time.perf_counter() - start, memory, cpu, sum(everyone.values()))

    def note(
        self, name: str, seconds: float, memory: int = 0, cpu: float = 0.0, everyone: float = 0.0
    ) -> None:
        self.figures[f"{name}_seconds"] = round(seconds, 2)
        if cpu:
            self.figures[f"{name}_cpu_seconds"] = round(cpu, 2)
            self.figures[f"{name}_all_cpu_seconds"] = round(everyone, 2)
        if memory:
            self.figures[f"{name}_mib"] = memory // 2**20
        words = f"{name}: {seconds:.2f} s, {cpu:.2f} s of CPU ({everyone:.2f} with workers)"
        words += f", {memory // 2**20} MiB, load {os.getloadavg()[0]:.0f}"
        print(words, file=sys.stderr, flush=True)


def peak_memory(pid: int) -> int:
    """Most bytes that a process ever had; 0 of one that is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    lines = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(lines[0].split()[1]) * 1024 if lines else 0


def cpu_seconds(pid: int) -> float:
    """Seconds of CPU that a process used itself; 0 of one that is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def descendants(pid: int) -> list[int]:
    """Processes that a process has started, and these in turn."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            parents.setdefault(parent, []).append(int(entry.name))
    found = [pid]
    for known in found:
        found += parents.get(known, [])
    return found


def time_service(commands: Commands, root: str, port: int) -> None:
    """Seconds until the page, its list of flags, and the list of videos are there."""
    base = f"http://127.0.0.1:{port}"
    start = time.perf_counter()
    process = commands.start("serve", root, "--port", str(port))
    try:
        while process.poll() is None:
            try:
                _get(f"{base}/")
                break
            except OSError:
                time.sleep(POLL_SECONDS)
        commands.note("serve_until_up", time.perf_counter() - start)
        for name, path in (
            ("first_page", "/api/audits /api/audits/run /api/audits/run/flags?limit=50"),
            ("videos_first", "/api/audits/run/videos?limit=100"),
            ("videos_again", "/api/audits/run/videos?limit=100"),
        ):
            begun = time.perf_counter()
            for part in path.split():
                _get(base + part)
            memory = peak_memory(process.pid)
            commands.note(name, time.perf_counter() - begun, memory)
    finally:
        process.terminate()
        process.wait()


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=600) as answer:
        content: bytes = answer.read()
    return content


def bench_scale(num_videos: int, folder: Path, only: list[str], port: int) -> dict[str, Any]:
    """Seconds and memory of each command, in the order in which a user meets them."""
    commands = Commands(folder)
    config, data = str(folder / "csl.yaml"), folder / "data"
    root = str(folder / "run")
    if not data.exists():
        write_dataset(data, num_videos)
        write_config(folder)
    ready = (folder / "run" / "report.html").exists()

    def wanted(name: str) -> bool:
        return not only or name in only

    steps: dict[str, Callable[[], None]] = {
        "check": lambda: commands.time("check", "check", config),
        "lint": lambda: commands.time("lint", "lint", config, allowed=(0, 1)),
        "start": lambda: commands.time("start", "run", config, "--dry-run"),
        "fresh": lambda: commands.time("fresh", "run", config),
        "unchanged": lambda: commands.time("unchanged", "run", config),
        "status": lambda: commands.time("status", "status", root),
        "rule": lambda: commands.time(
            "rule", "audit", config, "--set", f"flag.tolerance_seconds={time.time() % 1 + 1:.3f}"
        ),
        "report": lambda: commands.time("report", "report", root),
        "serve": lambda: time_service(commands, root, port),
        "one_more": lambda: _one_more(commands, data, config),
    }
    for name, step in steps.items():
        if wanted(name) or (name == "fresh" and not ready):
            step()
    return commands.figures


def _one_more(commands: Commands, data: Path, config: str) -> None:
    number = len((data / "manifest.csv").read_text().splitlines()) - 1
    write_list(data, number + 1)
    commands.time("one_more", "run", config)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--videos", type=int, default=1000)
    parser.add_argument("--work", type=Path, help="Where dataset and run are kept.")
    parser.add_argument("--only", action="append", default=[], metavar="STEP")
    parser.add_argument("--port", type=int, default=8431)
    given = parser.parse_args()
    folder = given.work or Path(tempfile.mkdtemp(prefix="csl-scale-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        figures = bench_scale(given.videos, folder, given.only, given.port)
        print_figures(figures, as_json=given.json)
    finally:
        if given.work is None:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
