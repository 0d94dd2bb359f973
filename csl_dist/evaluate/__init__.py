"""Scores and flags beside known errors and rival methods; the paper's tables."""
