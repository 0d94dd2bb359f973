"""The report of an audit: one HTML file that opens offline, and figures for print."""

from csl_dist.report.figures import write_figures
from csl_dist.report.page import write_report

__all__ = ["write_figures", "write_report"]
