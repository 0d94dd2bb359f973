"""The `csl` command, one module per group of commands."""

from csl_dist.cli import bench, dataset, features, results, stages
from csl_dist.cli.app import main

__all__ = ["bench", "dataset", "features", "main", "results", "stages"]
