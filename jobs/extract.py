"""`ray job submit -- python jobs/extract.py CONFIG`, for `csl extract CONFIG`."""

from csl_dist.cli import main

main("extract")
