"""Memory of scoring: the most that a worker and the driver hold, for some videos and checkpoints.

.venv/bin/python benchmarks/score_memory.py --videos 1000 --checkpoints 10 [--frames 500]

Prints one JSON object. Pages of mapped features count in a worker's size, though all workers share
them and the system takes them back when it needs room; `private_mib` is without them.
"""

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path

from made import write_checkpoints, write_features
from memory import WorkerMemory
from rich.console import Console

from csl_dist.cluster.session import connect, disconnect
from csl_dist.cluster.stage import Stage
from csl_dist.config import parse_config
from csl_dist.predict.stage import score
from csl_dist.run import open_run


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--videos", type=int, default=100)
    parser.add_argument("--checkpoints", type=int, default=10)
    parser.add_argument("--frames", type=int, default=500)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        write_features(
            data, num_videos=arguments.videos, num_frames=arguments.frames, split="audit"
        )
        config = {
            "root": f"{folder}/run",
            "dataset": {"path": str(data)},
            "scorers": {"framewise": {}},
            "train": {"epochs": arguments.checkpoints},
            "audit": {"swapped_copies": 0},
        }
        run = open_run(parse_config(config, where="the benchmark"))
        write_checkpoints(run, "framewise", arguments.checkpoints)
        connect()
        memory = WorkerMemory()
        begun = time.perf_counter()
        with memory.watched():
            score(Stage(run=run, console=Console(stderr=True, quiet=True)))
        seconds = time.perf_counter() - begun
        disconnect()
    driver = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        json.dumps(
            {
                "videos": arguments.videos,
                "checkpoints": arguments.checkpoints,
                "seconds": round(seconds, 1),
                "worker_mib": round(memory.peak_bytes / 2**20),
                "private_mib": round(memory.peak_private_bytes / 2**20),
                "driver_mib": round(driver),
            }
        )
    )


if __name__ == "__main__":
    main()
