"""Memory of prediction: the most that a worker and the driver hold.

.venv/bin/python benchmarks/predict_memory.py --videos 1000 --checkpoints 10 [--frames 500] [--json]

Pages of mapped features count in a worker's size, though all workers share
them and the system takes them back when it needs room; `private_mib` is without them.
"""

import sys
import tempfile
from pathlib import Path

from figures import driver_mib, parser_of, positive, print_figures, seconds_of
from memory import WorkerMemory
from rich.console import Console

from csl_dist.cluster.session import connect, disconnect
from csl_dist.cluster.stage import Stage
from csl_dist.config import parse_config
from csl_dist.predict.stage import predict
from csl_dist.training.inputs import open_inputs

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
from builder import write_checkpoints, write_random_dataset


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--videos", type=positive, default=100)
    parser.add_argument("--checkpoints", type=positive, default=10)
    parser.add_argument("--frames", type=positive, default=500)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        sizes = {"num_videos": arguments.videos, "num_frames": arguments.frames}
        write_random_dataset(data, **sizes, split="audit")
        config = {
            "root": f"{folder}/run",
            "dataset": {"path": str(data)},
            "scorers": {"framewise": {}},
            "train": {"epochs": arguments.checkpoints},
            "audit": {"swapped_copies": 0},
        }
        inputs = open_inputs(parse_config(config, where="the benchmark"))
        write_checkpoints(inputs, "framewise", arguments.checkpoints)
        connect()
        memory = WorkerMemory()
        stage = Stage(inputs=inputs, console=Console(stderr=True, quiet=True))
        with memory.watched():
            seconds = seconds_of(lambda: predict(stage))
        disconnect()
    figures = {
        "videos": arguments.videos,
        "checkpoints": arguments.checkpoints,
        "seconds": round(seconds, 1),
        "worker_mib": round(memory.peak_bytes / 2**20),
        "private_mib": round(memory.peak_private_bytes / 2**20),
        "driver_mib": driver_mib(),
    }
    print_figures(figures, as_json=arguments.json)


if __name__ == "__main__":
    main()
