"""Videos with another one's labels: each video under every label file of like length."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from csl_dist.flag.edits.planted import foreign_labels
from csl_dist.flag.edits.segments import UNLABELLED, FloatArray, IntArray

LIKE = 0.2
"""Files whose lengths differ by more than this share can't have been mixed up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMatch:
    """The best other label file of a video; `gain` is higher where the own one fits worse."""

    video: str
    other: str
    gain: float
    """Mean log-probability per frame under the other file minus that under the own one."""
    takes_back: bool
    """Whether the other video in turn gains by this one's file: two files changed places."""


def file_matches(
    logp: Mapping[str, FloatArray], labels: Mapping[str, IntArray]
) -> dict[str, FileMatch]:
    """The best other file of each video that has one of like length; `logp` are (T, C)."""
    gains = {
        (video, other): _fit(logp[video], labels[other]) - _fit(logp[video], labels[video])
        for video in labels
        for other in labels
        if video != other and _is_like(len(labels[video]), len(labels[other]))
    }
    matches = {}
    for video in labels:
        others = {other: gain for (v, other), gain in gains.items() if v == video}
        if others:
            best = max(others, key=lambda other: others[other])
            matches[video] = FileMatch(
                video=video,
                other=best,
                gain=float(others[best]),
                takes_back=bool(gains[best, video] > 0 and others[best] > 0),
            )
    return matches


def _fit(logp_TC: FloatArray, labels_T: IntArray) -> float:
    """Mean log-probability of labels, cut or held to the video's length; unlabelled left out."""
    fitted_T = foreign_labels(labels_T, len(logp_TC))
    known = np.flatnonzero(fitted_T != UNLABELLED)
    if len(known) == 0:
        return -np.inf
    return float(logp_TC[known, fitted_T[known]].mean())


def _is_like(a: int, b: int) -> bool:
    return abs(a - b) <= LIKE * max(a, b)
