"""The `csl` command, one module per group of commands."""

from csl_dist.cli import (
    bench,
    dataset,
    jobs,
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
    "main",
    "plan",
    "query",
    "reproduce",
    "results",
    "serve",
    "stages",
    "stores",
]
