"""Surprise: how badly models know somebody's videos, where what they say against labels is worth
less.

It is told by the other audited videos of the same person, so that an error does not count against
itself. What somebody labels wrong in all their videos does: such a habit hides itself a little.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from csl_dist.types import UNLABELLED, FloatArray, IntArray

SHARE = 0.8
"""Of the frames, which surprise models less than the number says. The highest ones tell of errors,
and the lowest of nothing."""
USUAL = 2.0
"""Surprise, in nats, by which log-odds stay as they are."""
WEIGHT = 0.5
"""Log-odds that a finding of steps loses by each nat above that: chosen on planted errors in five
datasets (docs/findings_study.md)."""


@dataclass(frozen=True, slots=True)
class Surprise:
    """Of a video's labels, to models that never saw it."""

    nats: float
    """-log p of the label, at SHARE of the frames or less."""
    num_frames: int
    """That have a label."""


def surprise_of(logp_TC: FloatArray, labels_T: IntArray) -> Surprise:
    """By the committee's log-probabilities; of a video without labels it is of no frame."""
    known = np.flatnonzero(labels_T != UNLABELLED)
    if not len(known):
        return Surprise(0.0, 0)
    return Surprise(float(np.quantile(-logp_TC[known, labels_T[known]], SHARE)), len(known))


def moves_by_surprise(
    surprises: Mapping[str, Surprise], groups: Mapping[str, str]
) -> dict[str, float]:
    """What log-odds of each video's findings are moved by: for the other videos of its group, or
    all other videos where its group has no other one. 0 where there is a single video."""
    by_group: dict[str, _Sum] = defaultdict(_Sum)
    everyone = _Sum()
    for video, own in surprises.items():
        everyone.add(own)
        by_group[groups[video]].add(own)
    moves = {}
    for video, own in surprises.items():
        others = (by_group[groups[video]].mean_without(own), everyone.mean_without(own))
        nats = next((mean for mean in others if mean is not None), USUAL)
        moves[video] = WEIGHT * (USUAL - nats)
    return moves


@dataclass(slots=True)
class _Sum:
    """Over frames."""

    nats: float = 0.0
    num_frames: int = 0

    def add(self, one: Surprise) -> None:
        self.nats += one.nats * one.num_frames
        self.num_frames += one.num_frames

    def mean_without(self, one: Surprise) -> float | None:
        num_frames = self.num_frames - one.num_frames
        if not num_frames:
            return None
        return (self.nats - one.nats * one.num_frames) / num_frames
