"""Findings as edits: what change of an annotation explains most, and how likely it is an error.

Everything here is plain functions on arrays. Shapes: T frames, C classes, E checkpoints, F model
families, S segments, N candidates, K columns of evidence. Labels are class numbers, -1 where a
frame has none. Scores, gains and log-odds: higher is more suspicious.
"""
