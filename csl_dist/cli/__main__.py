"""`python -m csl_dist.cli` is `csl`, for machines where only the package is at hand."""

from csl_dist.cli import main

main()
