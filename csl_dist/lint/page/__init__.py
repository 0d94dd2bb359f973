"""Lint's findings as an HTML page."""
