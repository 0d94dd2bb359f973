"""Runs of steps that two files share to the frame: labels that were copied, and then worked on.

Two performances never keep time. How unlikely it is that they do is counted from the dataset
itself: how many steps of a class last as long as this one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from csl_dist.lint.corpus import Corpus
from csl_dist.types import FloatArray

APART_SECONDS = 0.2
"""Boundaries that are further apart are different ones, unless a frame is longer."""
BY_CHANCE = 0.01
"""Runs that chance may give in a dataset of this size, at most."""
MOST_ALIKE = 8
"""Steps at one time in videos of more people than this are the habit of a dataset, not copies."""
MOST_CAMERAS = 8
"""Files of one performance; more of one person that keep time are a habit, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedRun:
    """Neighbouring segments of one file that stand in another, too."""

    videos: tuple[int, int]
    first: int
    """A segment of the first video."""
    num_steps: int
    apart: float
    """Seconds that two boundaries differ by, at most."""
    surprise: float
    """Negative log of how often chance would give it; higher is more suspicious."""


def copied_runs(corpus: Corpus) -> list[CopiedRun]:
    """The most surprising run of each pair of files, where chance does not explain it."""
    num_videos = corpus.num_videos
    num_places = corpus.num_segments / max(corpus.num_files, 1) * num_videos * (num_videos - 1) / 2
    enough = np.log(max(num_places, 1.0) / BY_CHANCE)
    tolerance_V = _tolerances(corpus)
    seconds_of = _durations(corpus)
    best: dict[tuple[int, int], CopiedRun] = {}
    within: set[tuple[int, int]] = set()
    for own, other in _meetings(corpus, tolerance_V):
        if (own, other) in within:
            continue
        run = _run_through(corpus, own, other, tolerance_V, seconds_of)
        within |= {(run.first + k, run.first + k + other - own) for k in range(run.num_steps)}
        known = best.get(run.videos)
        if run.surprise >= enough and (known is None or run.surprise > known.surprise):
            best[run.videos] = run
    return [best[videos] for videos in sorted(best)]


def _tolerances(corpus: Corpus) -> FloatArray:
    """Seconds (V,) within which two boundaries are the same."""
    frames_V = np.array([about.frame_seconds or 0.0 for about in corpus.about])
    return np.maximum(frames_V, APART_SECONDS)


def _meetings(corpus: Corpus, tolerance_V: FloatArray) -> Iterator[tuple[int, int]]:
    """Segments of counted files of two units that have, with the next one, one name and time."""
    video_N = corpus.video_N()
    here = np.flatnonzero(corpus.counted_N()[:-1] & (video_N[:-1] == video_N[1:]))
    grid = 2 * tolerance_V[video_N[here]]
    times = corpus.start_N[here], corpus.stop_N[here], corpus.stop_N[here + 1]
    unit_N = corpus.unit_V[video_N]
    for shift in (0.0, 0.5):  # a time on the other side of a line of one grid is not so in both
        cells = (np.floor(t / grid + shift) for t in times)
        keys = _hashes(corpus.label_N[here], corpus.label_N[here + 1], *cells)
        order = np.argsort(keys, kind="stable")
        _, first, size = np.unique(keys[order], return_index=True, return_counts=True)
        shared = (size > 1) & (size <= MOST_ALIKE * MOST_CAMERAS)
        for start, stop in zip(first[shared], (first + size)[shared], strict=True):
            members = np.sort(here[order[start:stop]])
            if len(np.unique(unit_N[members])) <= MOST_ALIKE:
                for own, other in combinations(members.tolist(), 2):
                    if unit_N[own] != unit_N[other]:
                        yield own, other


def _hashes(*columns: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """One number for each row; rows that differ hardly ever have the same."""
    result = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        result ^= column.astype(np.int64).astype(np.uint64)
        result *= np.uint64(0x9E3779B97F4A7C15)
        result ^= result >> np.uint64(29)
    return result


def _durations(corpus: Corpus) -> dict[int, FloatArray]:
    """Seconds of all counted steps of each class, sorted."""
    counted = np.flatnonzero(corpus.counted_N())
    label, seconds = corpus.label_N[counted], (corpus.stop_N - corpus.start_N)[counted]
    order = np.lexsort((seconds, label))
    parts = np.split(order, np.flatnonzero(np.diff(label[order])) + 1) if len(order) else []
    return {int(label[part[0]]): seconds[part] for part in parts}


def _run_through(
    corpus: Corpus,
    own: int,
    other: int,
    tolerance_V: FloatArray,
    seconds_of: dict[int, FloatArray],
) -> CopiedRun:
    """All neighbours of two segments that the two files share; the run may be empty."""
    video, second = (int(v) for v in np.searchsorted(corpus.offsets_V, [own, other], "right") - 1)
    span, second_span = corpus.span(video), corpus.span(second)
    before = min(own - span.start, other - second_span.start)
    after = min(span.stop - own, second_span.stop - other)
    a_K, b_K = (n + np.arange(-before, after) for n in (own, other))
    starts, stops = corpus.start_N, corpus.stop_N
    apart_K = np.maximum(np.abs(starts[a_K] - starts[b_K]), np.abs(stops[a_K] - stops[b_K]))
    tolerance = float(tolerance_V[video])
    differ = np.flatnonzero((apart_K > tolerance) | (corpus.label_N[a_K] != corpus.label_N[b_K]))
    first = int(differ[differ < before].max(initial=-1)) + 1
    last = int(differ[differ >= before].min(initial=len(a_K)))
    # That two files begin, or end, at one time is no wonder where clips are cut to a length.
    begin_alike = first == 0 and own - other == span.start - second_span.start
    end_alike = last == len(a_K) and own - other == span.stop - second_span.stop
    surprise = 0.0
    if not begin_alike:
        surprise -= np.log(min(2 * tolerance / max(corpus.seconds(video), tolerance), 1.0))
    for n in a_K[first : last - end_alike].tolist():
        known = seconds_of[int(corpus.label_N[n])]
        seconds = stops[n] - starts[n]
        low, high = np.searchsorted(known, [seconds - tolerance, seconds + tolerance])
        # The step and its copy are among them, and tell nothing.
        surprise -= np.log(max(high - low - 2, 1) / len(known))
    return CopiedRun(
        videos=(video, second),
        first=own - before + first,
        num_steps=last - first,
        apart=float(apart_K[first:last].max(initial=0.0)),
        surprise=float(surprise) if last > first else 0.0,
    )
