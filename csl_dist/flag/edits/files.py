"""Videos with another one's labels: each video under every label file of like length."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from csl_dist.data.mistakes import labels_for_length
from csl_dist.types import UNLABELLED, FloatArray, IntArray

LIKE = 0.2
"""Files whose lengths differ by more than this share can't have been mixed up."""
MOST_AGREE = 0.5
"""Share of frames in which models see the label; videos with more are not compared with others."""
LEAST_GAIN = 0.2
"""Of both videos of a pair, in nats a frame. Models that know little prefer some other file by
less, by chance; those that know more prefer the right one by 0.7 and more (docs/LOG.md)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMatch:
    """The best other label file of a video."""

    video: str
    other: str
    takes_back: bool
    """Whether the other video in turn gains most by this one's file: two files changed places."""


EXCHANGED = "videos that seem to have each other's labels"


class Exchange(NamedTuple):
    """Two videos that seem to have each other's labels, in the order of their names."""

    one: str
    other: str

    def sentence(self) -> str:
        return f"{EXCHANGED}: {self.one} and {self.other}"


def exchanges(mixed_up: Mapping[str, str]) -> list[Exchange]:
    """The pairs among videos that are told with the one whose labels each has."""
    return sorted({Exchange(*sorted(pair)) for pair in mixed_up.items()})


def file_gains(video: str, logp_TC: FloatArray, labels: Mapping[str, IntArray]) -> dict[str, float]:
    """What one video gains by each other file of like length: mean log-probability per frame.

    Higher where its own labels fit worse.
    """
    own = _fit(logp_TC, labels[video])
    return {
        other: _fit(logp_TC, labels_T) - own
        for other, labels_T in labels.items()
        if other != video and _is_like(len(labels[video]), len(labels_T))
    }


def best_files(gains: Mapping[str, Mapping[str, float]]) -> dict[str, FileMatch]:
    """The best other file of each video, by what each gains; a video without gains fits its own."""
    best = {video: max(own, key=lambda other: own[other]) for video, own in gains.items() if own}
    return {
        video: FileMatch(
            video=video,
            other=other,
            takes_back=best.get(other) == video
            and min(gains[video][other], gains[other][video]) >= LEAST_GAIN,
        )
        for video, other in best.items()
    }


def fits_badly(logp_TC: FloatArray, labels_T: IntArray) -> bool:
    """Whether models see another step in most labelled frames: worth a look at other files."""
    known_T = labels_T != UNLABELLED
    agrees_T = logp_TC.argmax(axis=1)[known_T] == labels_T[known_T]
    return bool(known_T.any() and agrees_T.mean() < MOST_AGREE)


def _fit(logp_TC: FloatArray, labels_T: IntArray) -> float:
    """Mean log-probability of labels, cut or held to the video's length; unlabelled left out."""
    fitted_T = labels_for_length(labels_T, len(logp_TC))
    known = np.flatnonzero(fitted_T != UNLABELLED)
    if len(known) == 0:
        return -np.inf
    return float(logp_TC[known, fitted_T[known]].mean())


def _is_like(a: int, b: int) -> bool:
    return abs(a - b) <= LIKE * max(a, b)
