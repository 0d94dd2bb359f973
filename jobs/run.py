"""`ray job submit -- python jobs/run.py CONFIG`, for `csl run CONFIG`."""

from csl_dist.cli import main

main("run")
