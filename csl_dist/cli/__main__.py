"""`python -m csl_dist.cli` is `csl`, for machines that have the package and no script."""

from csl_dist.cli import main

main()
