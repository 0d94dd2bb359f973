"""A background class: what fills the time between most steps, such as `background` or `idle`.

It says nothing about order, and hides which step follows which; so order leaves it out.
"""

import numpy as np

from csl_dist.lint.corpus import Corpus
from csl_dist.types import BoolArray, IntArray

MIN_VIDEOS = 5
"""Videos of a procedure before a class can be told to be its background."""
LEAST_SEGMENTS = 5
"""Segments of it that half of the videos have at least."""
LEAST_SHARE = 0.2
"""Of the segments of half of the videos, at least."""
LEAST_NEIGHBOURS = 0.75
"""Share of the other classes that come directly before it, and as many directly after it.

50Salads' and GTEA's background have 0.9 to 1, and no other class of any dataset of
benchmarks/lint.py meets two of the three limits, so that their values hardly matter there.
"""


def background(corpus: Corpus) -> BoolArray:
    """Whether each segment is of a class that is background in its procedure."""
    result = np.zeros(corpus.num_segments, bool)
    video_N = corpus.video_N()
    procedure_N = corpus.procedure_V[video_N]
    for procedure in range(len(corpus.procedures)):
        own = np.flatnonzero(procedure_N == procedure)
        counted = own[corpus.counted_V[video_N[own]]]
        label = background_label(corpus.label_N[counted], video_N[counted])
        if label is not None:
            result[own[corpus.label_N[own] == label]] = True
    return result


def background_label(label_N: IntArray, video_N: IntArray) -> int | None:
    """The background class of some videos' segments, where there is one."""
    _, video_N, lengths = np.unique(video_N, return_inverse=True, return_counts=True)
    if len(lengths) < MIN_VIDEOS:
        return None
    classes, code_N = np.unique(label_N, return_inverse=True)
    most = int(np.argmax(np.bincount(code_N)))
    num_V = np.bincount(video_N[code_N == most], minlength=len(lengths))
    if np.median(num_V) < LEAST_SEGMENTS or np.median(num_V / lengths) < LEAST_SHARE:
        return None
    first, second = code_N[:-1], code_N[1:]
    touching = (video_N[:-1] == video_N[1:]) & (first != second)
    before = len(np.unique(first[touching & (second == most)]))
    after = len(np.unique(second[touching & (first == most)]))
    if min(before, after) < LEAST_NEIGHBOURS * (len(classes) - 1):
        return None
    return int(classes[most])
