"""The `csl` command, one module per group of commands."""

from csl_dist.cli import (
    bench,
    dataset,
    jobs,
    lint,
    plan,
    query,
    reproduce,
    results,
    serve,
    stages,
    stores,
)
from csl_dist.cli.app import main

__all__ = [
    "bench",
    "dataset",
    "jobs",
    "lint",
    "main",
    "plan",
    "query",
    "reproduce",
    "results",
    "serve",
    "stages",
    "stores",
]
