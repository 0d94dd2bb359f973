"""The `csl` command, one module per group of commands."""

from csl_dist.cli import dataset, results, stages
from csl_dist.cli.app import main

__all__ = ["dataset", "main", "results", "stages"]
