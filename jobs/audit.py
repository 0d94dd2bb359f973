"""`ray job submit -- python jobs/audit.py CONFIG`, for `csl audit CONFIG`."""

from csl_dist.cli import main

main("audit")
