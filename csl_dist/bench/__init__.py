"""Benchmarks: each compares the product with something simple, in one run."""
