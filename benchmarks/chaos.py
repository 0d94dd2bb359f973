"""Kills drivers, workers and nodes at random; the end must be that of an undisturbed run.

.venv/bin/python benchmarks/chaos.py [--kills 100] [--seed 0]

A small dataset is run, grows, is audited by another rule and relabelled, on a Ray cluster of two
nodes, in as many rounds as it takes. Each command is killed again and again before it may finish.
What is stored in the end is compared, byte by byte, with what the same commands store when nobody
disturbs them.
"""

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
from builder import MadeVideo, write_manifest
from processes import descendants
from ray_cluster import RunningCluster, ray_cluster

NUM_VIDEOS, NUM_NEW = 12, 2
CLASSES = ("reach", "grasp", "lift")
CONFIG = """\
root: {folder}/run
dataset: {{path: {folder}/data, folds: 2}}
scorers: {{transformer: {{arguments: {{preset: tiny}}}}, framewise: {{}}}}
train: {{epochs: 6, learning_rate: 1e-3, batch_frames: 256}}
flag: {{min_frames: 2}}
audit: {{swapped_copies: 2}}
"""
KILLS_PER_ROUND = 20
DONE_BEFORE = "are those of audit"
"""What `csl relabel` says when a kill came after it had made its audit."""
KILLED_WORDS = ("being written to by", "has been marked dead")
"""What a command says that meets the lock of a killed one, or whose node died late."""
UNCOMPARED = ("run.json", "lock.json", "sources.json", "report.html", "pulse.json")
"""Files that name times, processes or places."""


@dataclass(frozen=True)
class Step:
    """A command, and what happens to the dataset before it."""

    name: str
    arguments: tuple[str, ...]
    num_videos: int


def steps(folder: Path) -> list[Step]:
    config, root = str(folder / "c.yaml"), str(folder / "run")
    grown = NUM_VIDEOS + NUM_NEW
    return [
        Step("run", ("run", config), NUM_VIDEOS),
        Step("growth", ("run", config), grown),
        Step("audit", ("audit", config, "--set", "flag.percent=20"), grown),
        Step("relabel", ("relabel", root, str(folder / "fixed")), grown),
    ]


def write_videos(folder: Path, count: int) -> None:
    videos = []
    for number in range(count):
        rng = np.random.default_rng(number)
        labels_T = np.repeat([0, 1, 2], rng.integers(20, 40, size=3))
        noise_TD = rng.normal(0, 0.5, size=(len(labels_T), 3))
        features_TD = (np.eye(3)[labels_T] + noise_TD).astype(np.float32)
        names_T = [CLASSES[label] for label in labels_T]
        videos.append(
            MadeVideo(id=f"v{number:02d}", split="audit", names_T=names_T, features_TD=features_TD)
        )
    write_manifest(folder / "data", videos, fps=2, classes=CLASSES)
    (folder / "fixed").mkdir(exist_ok=True)
    first = (folder / "data/v00.txt").read_text()
    (folder / "fixed/v00.txt").write_text(first.replace("grasp", "lift", 5))


def prepare(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "c.yaml").write_text(CONFIG.format(folder=folder))


def stored(folder: Path) -> dict[str, bytes]:
    """What a run has stored, without times and places."""
    root = folder / "run"
    found = {}
    for path in sorted(root.rglob("*")):
        # A kill may leave a temporary file of obstore, which no listing shows.
        if path.is_file() and path.name not in UNCOMPARED and "#" not in path.name:
            data = path.read_bytes().replace(str(folder).encode(), b"FOLDER")
            if path.suffix in (".json", ".jsonl"):
                data = re.sub(rb'"(created|seconds|frames_per_second)": [0-9.e+-]+', b"", data)
            found[str(path.relative_to(root))] = data
    return found


def start(step: Step, cluster: RunningCluster) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "csl_dist.cli", *step.arguments]
    return subprocess.Popen(
        command,
        env=cluster.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def is_done(process: "subprocess.Popen[str]", *, node_died: bool = False) -> bool:
    """Whether a command has done its work; another end than by a kill ends the loop.

    All nodes have one address here, so a driver may be attached to the node that dies; Ray then
    ends the driver, too.
    """
    said, _ = process.communicate()
    if process.returncode == 0 or DONE_BEFORE in said:
        return True
    explained = node_died or any(words in said for words in KILLED_WORDS)
    if process.returncode > 0 and not explained:
        sys.exit(f"{process.args!r} ended with {process.returncode}: {said}")
    return False


def undisturbed(folder: Path, cluster: RunningCluster) -> dict[str, float]:
    """Does all steps; the seconds of each."""
    prepare(folder)
    seconds = {}
    for step in steps(folder):
        write_videos(folder, step.num_videos)
        begun = time.monotonic()
        if not is_done(start(step, cluster)):
            sys.exit(f"{step.name} does not end")
        seconds[step.name] = time.monotonic() - begun
    return seconds


def disturbed(
    folder: Path,
    cluster: RunningCluster,
    rng: random.Random,
    kills: int,
    seconds: dict[str, float],
) -> Counter[str]:
    """Does all steps, killing something in each as often as its share of time; counts of kills."""
    prepare(folder)
    counts: Counter[str] = Counter()
    shares = {name: own / sum(seconds.values()) for name, own in seconds.items()}
    for step in steps(folder):
        write_videos(folder, step.num_videos)
        left = max(1, round(kills * shares[step.name]))
        while True:
            process, victims = start(step, cluster), set[str]()
            while left and process.poll() is None:
                time.sleep(rng.uniform(0.05, 0.5) * seconds[step.name])
                if process.poll() is None:
                    victim = kill_one(process, cluster, rng)
                    victims.add(victim)
                    counts[f"{victim} in {step.name}"] += 1
                    left -= 1
            if is_done(process, node_died="node" in victims):
                break
    return counts


def kill_one(process: "subprocess.Popen[str]", cluster: RunningCluster, rng: random.Random) -> str:
    """Kills the driver, a worker of Ray, or a node, which comes back."""
    victim = rng.choice(["driver", "driver", "worker", "worker", "node"])
    workers = list(ray_workers(cluster))
    if victim == "worker" and workers:
        os.kill(rng.choice(workers), signal.SIGKILL)
        return victim
    if victim == "node":
        cluster.order("kill")
        cluster.order("add")
        return victim
    process.kill()
    return "driver"


def ray_workers(cluster: RunningCluster) -> Iterator[int]:
    """Processes that run tasks and actors."""
    for pid in descendants(cluster.process.pid):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_text()
        except OSError:
            continue
        if command.startswith("ray::") and "IDLE" not in command:
            yield pid


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as name, ray_cluster(2, {}, dashboard=False) as cluster:
        seconds = undisturbed(Path(name) / "calm", cluster)
        expected = stored(Path(name) / "calm")
        counts, rounds, different = Counter[str](), 0, set[str]()
        while counts.total() < arguments.kills:
            folder = Path(name) / f"shaken{rounds}"
            left = min(KILLS_PER_ROUND, arguments.kills - counts.total())
            counts += disturbed(folder, cluster, rng, left, seconds)
            found = stored(folder)
            different |= {
                key for key in expected.keys() | found if expected.get(key) != found.get(key)
            }
            rounds += 1
            print(f"round {rounds}: {counts.total()} kills", file=sys.stderr, flush=True)
    print(
        json.dumps(
            {
                "kills": counts,
                "rounds": rounds,
                "files": len(expected),
                "different": sorted(different)[:10],
            }
        )
    )
    if different:
        sys.exit(f"{len(different)} files differ")


if __name__ == "__main__":
    main()
