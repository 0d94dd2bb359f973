"""The HTML report of an audit: one file that opens offline."""

from csl_dist.report.page import write_report

__all__ = ["write_report"]
