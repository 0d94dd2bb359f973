"""Decisions of reviewers, and the labels as they corrected them."""
