"""Kills drivers, workers and nodes at random; the end must be that of an undisturbed run.

.venv/bin/python benchmarks/chaos.py [--kills 100] [--seed 0]

A small dataset is run, grows, is audited by another rule and relabelled, on a Ray cluster of two
nodes, in as many rounds as it takes. Each command is killed again and again before it may finish.
What is stored in the end is compared, byte by byte, with what the same commands store when nobody
disturbs them. Commands are forked off a process that has imported everything, so that a kill costs
the work that it interrupts and not the seconds that Python takes to start.
"""

import argparse
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
from builder import MadeVideo, write_manifest
from commands import RunningCommand
from processes import descendants
from ray_cluster import RunningCluster, ray_cluster
from stored import different as differing
from stored import stored

NUM_VIDEOS, NUM_NEW = 8, 4
CLASSES = ("reach", "grasp", "lift")
CONFIG = """\
root: {folder}/run
dataset: {{path: {folder}/data}}
scorers: {{transformer: {{arguments: {{preset: tiny}}}}}}
train: {{epochs: 4, learning_rate: 1e-3, batch_frames: 256, max_failures: 100}}
predict: {{group_frames: 200, max_retries: 100}}
flag: {{min_frames: 2}}
audit: {{swapped_copies: 2}}
"""
KILLS_PER_STEP = 5
"""At most, in a round; a step may end before them all."""
LONGEST_WAIT = 0.2
"""Before a kill, as a share of the time that the step takes undisturbed."""
DONE_BEFORE = "are those of audit"
"""What `csl relabel` says when a kill came after it had made its audit."""


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
        split = ("train", "train", "val", "audit")[number % 4]
        videos.append(
            MadeVideo(id=f"v{number:02d}", split=split, names_T=names_T, features_TD=features_TD)
        )
    write_manifest(folder / "data", videos, fps=2, classes=CLASSES)
    (folder / "fixed").mkdir(exist_ok=True)
    audited = (folder / "data/v03.txt").read_text()
    (folder / "fixed/v03.txt").write_text(audited.replace("grasp", "lift", 5))


def prepare(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "c.yaml").write_text(CONFIG.format(folder=folder))


def is_done(command: RunningCommand, *, node_died: bool = False) -> bool:
    """Waits; whether the work is done. Another end than by a kill ends the loop.

    All nodes have one address here, so a driver may be attached to the node that dies; Ray then
    ends the driver, too.
    """
    code, said = command.wait(), command.stdout.read_text() + command.stderr.read_text()
    if code == 0 or DONE_BEFORE in said:
        return True
    if code > 0 and not node_died:
        sys.exit(f"csl {' '.join(command.arguments)} ended with {code}: {said}")
    return False


def undisturbed(folder: Path) -> dict[str, float]:
    """Does all steps; the seconds of each."""
    prepare(folder)
    seconds = {}
    for step in steps(folder):
        write_videos(folder, step.num_videos)
        begun = time.monotonic()
        assert is_done(RunningCommand.start(*step.arguments))
        seconds[step.name] = time.monotonic() - begun
    return seconds


def disturbed(
    folder: Path,
    cluster: RunningCluster,
    rng: random.Random,
    kills: int,
    seconds: dict[str, float],
) -> Counter[str]:
    """Does all steps, with as many kills in each; counts of kills."""
    prepare(folder)
    counts: Counter[str] = Counter()
    for step in steps(folder):
        write_videos(folder, step.num_videos)
        left = kills
        while True:
            command, victims = RunningCommand.start(*step.arguments), set[str]()
            while left and command.goes_on_for(rng.uniform(0, LONGEST_WAIT) * seconds[step.name]):
                victim = kill_one(command, cluster, rng)
                victims.add(victim)
                counts[f"{victim} in {step.name}"] += 1
                left -= 1
            if is_done(command, node_died="node" in victims):
                break
    return counts


def kill_one(driver: RunningCommand, cluster: RunningCluster, rng: random.Random) -> str:
    """Kills the driver, a worker of Ray, or a node, which comes back."""
    workers = list(ray_workers(cluster))
    # A command that has no worker does not notice what happens to nodes.
    victim = rng.choice(["driver", "driver", "worker", "worker", "node"]) if workers else "driver"
    if victim == "worker":
        with suppress(ProcessLookupError):  # it may have ended by itself
            os.kill(rng.choice(workers), signal.SIGKILL)
    elif victim == "node":
        cluster.order("kill")
        cluster.order("add")
    else:
        driver.send(signal.SIGKILL)
    return victim


def ray_workers(cluster: RunningCluster) -> Iterator[int]:
    """Processes that run tasks and actors; Ray's own agents are part of a node."""
    for pid in descendants(cluster.process.pid):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_text()
        except OSError:
            continue
        if command.startswith("ray::") and not re.search("IDLE|Agent", command):
            yield pid


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as name, ray_cluster(2, {}, dashboard=False) as cluster:
        os.environ.update(cluster.environment)
        folder = Path(name) / "work"  # always the same, because paths are stored, too
        seconds = undisturbed(folder)
        expected = stored(folder / "run")
        print(f"undisturbed: {seconds}", file=sys.stderr, flush=True)
        counts, rounds, different = Counter[str](), 0, set[str]()
        while counts.total() < arguments.kills:
            shutil.rmtree(folder)
            left = -(-(arguments.kills - counts.total()) // len(seconds))
            counts += disturbed(folder, cluster, rng, min(left, KILLS_PER_STEP), seconds)
            found = stored(folder / "run")
            different |= set(differing(expected, found))
            rounds += 1
            print(f"round {rounds}: {dict(counts)}", file=sys.stderr, flush=True)
            for key in sorted(different)[:10]:
                print(f"differs: {key}", file=sys.stderr, flush=True)
    result = {
        "kills": counts,
        "rounds": rounds,
        "files": len(expected),
        "different": sorted(different)[:10],
    }
    print(json.dumps(result))
    if different:
        sys.exit(f"{len(different)} files differ")


if __name__ == "__main__":
    main()
