"""Finds wrong labels in densely annotated video by the loss of held-out checkpoints.

Shape letters, used as name suffixes throughout (`logp_ETC`, `csl_T`):
T frames, D feature width, C classes, E checkpoints, B batch, V videos, N any count.
"""

__version__ = "0.1.0"
