"""`ray job submit -- python jobs/evaluate.py CONFIG`, for `csl evaluate CONFIG`."""

from csl_dist.cli import main

main("evaluate")
