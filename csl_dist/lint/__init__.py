"""What labels alone give away, with no model: order, durations, names and files that look wrong.

`run.lint` goes from label sequences to findings. Nothing here reads files of a dataset, and nothing
imports torch, Ray or pandas.
"""
