"""The report of an audit: one HTML file that works offline (page), and figures for print."""

from csl_dist.report.page import current_report, write_report

__all__ = ["current_report", "write_report"]
