"""Scheduling overhead: units of no work through the pool, on a local Ray.

python benchmarks/pool.py [--units 10000] [--actors 2]
"""

import argparse
import time

import ray

from csl_dist.cluster.pool import ActorPool
from csl_dist.cluster.session import connect, disconnect


class Idler:
    """Does nothing with a unit."""

    def work(self, unit: int) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--units", type=int, default=10_000)
    parser.add_argument("--actors", type=int, default=2)
    arguments = parser.parse_args()
    connect()
    actor = ray.remote(num_cpus=1)(Idler)
    with ActorPool(actor.remote, num_actors=arguments.actors, max_retries=3) as pool:
        pool.start(arguments.actors)
        pool.wait_until_started()
        begun = time.perf_counter()
        count = sum(1 for _ in pool.run(range(arguments.units)))
        seconds = time.perf_counter() - begun
    disconnect()
    print(f"{count} units, {arguments.actors} actors: {1000 * seconds / count:.2f} ms a unit")


if __name__ == "__main__":
    main()
