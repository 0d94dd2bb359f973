"""The `csl` command, one module per group of commands."""

from csl_dist.cli import (
    bench,
    checkpoints,
    dataset,
    features,
    jobs,
    plan,
    query,
    relabel,
    reproduce,
    results,
    serve,
    stages,
    trajectories,
)
from csl_dist.cli.app import main

__all__ = [
    "bench",
    "checkpoints",
    "dataset",
    "features",
    "jobs",
    "main",
    "plan",
    "query",
    "relabel",
    "reproduce",
    "results",
    "serve",
    "stages",
    "trajectories",
]
