"""Emission: what a committee of model families makes of every frame, from stored trajectories."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from csl_dist.types import UNLABELLED, FloatArray, IntArray

FLOOR = -5.0
"""Log-probability below which a class is no less likely: one frame must not decide a segment."""
TEMPERATURES = (0.7, 1.0, 1.2, 1.4, 1.7, 2.0, 2.5, 3.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Emission:
    """Log-probabilities of one video; sums over frames are kept, to read any span at once."""

    logp_TC: FloatArray
    """The committee's, at least FLOOR."""
    sum_TC: FloatArray
    """(T + 1, C): sums of `logp_TC` over the frames before."""
    family_sum_FTC: FloatArray
    """(F, T + 1, C): the same of each family, at its temperature."""
    late_sum_ETC: FloatArray
    """(E, T + 1, C): the same of some later checkpoints of every family."""


MOST_DEVIATIONS = 3.0
"""A frame's preference counts as at most so much, so that a few frames can't outweigh an edit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference:
    """The scale on which models' preference for another label is told: that of all frames."""

    mean: float
    deviation: float

    @classmethod
    def over(cls, margins: Sequence[FloatArray]) -> "Preference":
        """From `margin` of labelled frames, some arrays of them."""
        pooled = np.concatenate([np.zeros(1), *margins])
        return cls(mean=float(pooled.mean()), deviation=float(pooled.std()) + 1e-6)

    def of(self, logp_TC: FloatArray, labels_T: IntArray) -> FloatArray:
        """(T,) in deviations; higher where another label is preferred."""
        z_T = (margin(logp_TC, labels_T) - self.mean) / self.deviation
        return np.clip(z_T, -MOST_DEVIATIONS, MOST_DEVIATIONS)


def margin(logp_TC: FloatArray, labels_T: IntArray) -> FloatArray:
    """(T,): the best other class's log-probability minus the label's; means nothing without one."""
    rows, label_T = np.arange(len(labels_T)), np.maximum(labels_T, 0)
    others_TC = logp_TC.copy()
    others_TC[rows, label_T] = -np.inf
    result_T: FloatArray = largest(others_TC) - logp_TC[rows, label_T]
    return result_T


MOST_LATE = 8
"""Later checkpoints of a family that are asked one by one; the mean is over all of them."""


@dataclass(frozen=True, slots=True)
class LateView:
    """What the later half of a family's checkpoints say of a video, in little memory."""

    mean_TC: FloatArray
    some_ETC: FloatArray
    """At most MOST_LATE of them, evenly spread."""


def late_view(blocks: Iterable[FloatArray], first: int) -> LateView:
    """From log-probabilities (E, frames, C) of all checkpoints, block after block of frames.

    `first`: the row from which on checkpoints are late ones.
    """
    means, parts = [], []
    for logp_ETC in blocks:
        late_ETC = logp_ETC[first:]
        rows = np.unique(np.linspace(0, len(late_ETC) - 1, MOST_LATE).round().astype(int))
        means.append(late_ETC.mean(axis=0, dtype=np.float64))
        parts.append(late_ETC[rows])
    return LateView(np.concatenate(means), np.concatenate(parts, axis=1))


def largest(values_TC: FloatArray) -> FloatArray:
    """The largest of each frame's few classes; across rows it takes a fifth of the time."""
    result_T: FloatArray = np.ascontiguousarray(np.moveaxis(values_TC, -1, 0)).max(axis=0)
    return result_T


def normalised(logp_TC: FloatArray) -> FloatArray:
    """Log-probabilities that add up to 1 over the last axis."""
    shifted = logp_TC - largest(logp_TC)[..., None]
    result: FloatArray = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return result


def temperature_likelihoods(logp_NC: FloatArray, labels_N: IntArray) -> FloatArray:
    """Sum of the labels' log-probabilities at each of TEMPERATURES, over labelled frames."""
    rows = np.flatnonzero(labels_N != UNLABELLED)
    return np.array(
        [
            normalised(logp_NC[rows] / temperature)[np.arange(len(rows)), labels_N[rows]].sum()
            for temperature in TEMPERATURES
        ]
    )


def emission_of(families: Sequence[LateView], temperatures: Sequence[float]) -> Emission:
    """The emission of one video from what its families say, and their temperatures."""
    family_FTC = np.stack(
        [normalised(f.mean_TC / k) for f, k in zip(families, temperatures, strict=True)]
    )
    some_ETC = np.concatenate([f.some_ETC for f in families]).astype(np.float64)
    logp_TC = np.maximum(normalised(family_FTC.mean(axis=0)), FLOOR)
    return Emission(
        logp_TC=logp_TC,
        sum_TC=_sums(logp_TC),
        family_sum_FTC=_sums(np.maximum(family_FTC, 2 * FLOOR)),
        late_sum_ETC=_sums(np.maximum(some_ETC, 2 * FLOOR)),
    )


def permuted(emission: Emission, order_T: IntArray) -> Emission:
    """The emission of frames in another order, as if models had not looked at their neighbours."""
    if (order_T == np.arange(len(order_T))).all():
        return emission

    def moved(sum_TC: FloatArray) -> FloatArray:
        return _sums(np.diff(sum_TC, axis=-2)[..., order_T, :])

    return Emission(
        logp_TC=emission.logp_TC[order_T],
        sum_TC=moved(emission.sum_TC),
        family_sum_FTC=moved(emission.family_sum_FTC),
        late_sum_ETC=moved(emission.late_sum_ETC),
    )


def _sums(values_TC: FloatArray) -> FloatArray:
    """Sums over the frames before each, along the last axis but one; one row longer."""
    zero = np.zeros_like(values_TC[..., :1, :])
    return np.concatenate([zero, values_TC.cumsum(axis=-2)], axis=-2)
