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
from csl_dist.cli.app import app, main

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

PANELS = ("Dataset", "Run", "Results", "Cluster", "Stores and speed")
"""Of `csl --help`, in the order in which a newcomer needs them."""
app.registered_commands.sort(key=lambda command: PANELS.index(str(command.rich_help_panel)))
