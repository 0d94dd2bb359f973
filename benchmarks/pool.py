"""Scheduling overhead: units of no work through the pool, on a local Ray.

python benchmarks/pool.py [--units 10000] [--actors 2]
"""

import argparse
import time

import ray

from csl_dist.remote.pool import run_on_actors
from csl_dist.remote.session import connect, disconnect


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
    done = run_on_actors(
        range(arguments.units), make_actor=actor.remote, num_actors=arguments.actors, max_retries=3
    )
    next(done)  # the actors are up
    begun = time.perf_counter()
    count = sum(1 for _ in done)
    seconds = time.perf_counter() - begun
    disconnect()
    print(f"{count + 1} units, {arguments.actors} actors: {1000 * seconds / count:.2f} ms a unit")


if __name__ == "__main__":
    main()
