"""The report of an audit: one HTML file that works offline (page), and figures for print."""

from csl_dist.report.page import write_report

__all__ = ["write_report"]
