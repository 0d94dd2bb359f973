"""`ray job submit -- python jobs/train.py CONFIG`, for `csl train CONFIG`."""

from csl_dist.cli import main

main("train")
