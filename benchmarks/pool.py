"""Scheduling overhead: units of no work through the pool, on a local Ray.

.venv/bin/python benchmarks/pool.py [--units 10000] [--actors 2] [--json]
"""

import ray
from figures import parser_of, positive, print_figures, seconds_of

from csl_dist.cluster.pool import ActorPool
from csl_dist.cluster.session import connect, disconnect


class Idler:
    """Does nothing with a unit."""

    def work(self, unit: int) -> None:
        pass


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--units", type=positive, default=10_000)
    parser.add_argument("--actors", type=positive, default=2)
    arguments = parser.parse_args()
    connect()
    actor = ray.remote(num_cpus=1)(Idler)
    with ActorPool(actor.remote, num_actors=arguments.actors, max_retries=3) as pool:
        pool.start(arguments.actors)
        pool.wait_until_started()
        seconds = seconds_of(lambda: list(pool.run(range(arguments.units))))
    disconnect()
    figures = {"ms_a_unit": round(1000 * seconds / arguments.units, 2)}
    print_figures(figures, as_json=arguments.json)


if __name__ == "__main__":
    main()
