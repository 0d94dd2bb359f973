"""What a procedure usually looks like: its steps in usual order, durations and transitions."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from csl_dist.lint.corpus import Corpus
from csl_dist.types import IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class UsualStep:
    """A class in the videos of one procedure."""

    label: str
    num_videos: int
    """Videos that have it."""
    num_segments: int
    position: float
    """Median place in its videos, 0 (start) to 1 (end)."""
    median_seconds: float
    low_seconds: float
    """A tenth of its segments are shorter."""
    high_seconds: float
    """A tenth of its segments are longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """How often one class directly follows another; None is the start or the end of a video."""

    first: str | None
    second: str | None
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcedureSummary:
    """Steps in usual order, transitions by falling count."""

    name: str | None
    videos: tuple[str, ...]
    steps: tuple[UsualStep, ...]
    transitions: tuple[Transition, ...]
    hours: float


def procedure_summaries(corpus: Corpus) -> tuple[ProcedureSummary, ...]:
    """One for each procedure, by name."""
    return tuple(
        _summary(corpus, name, np.flatnonzero(corpus.counted_V & (corpus.procedure_V == number)))
        for number, name in enumerate(corpus.procedures)
    )


def _summary(corpus: Corpus, name: str | None, videos: IntArray) -> ProcedureSummary:
    mine = np.zeros(corpus.num_files, bool)
    mine[videos] = True
    video_N = corpus.video_N()
    segments = np.flatnonzero(mine[video_N])
    return ProcedureSummary(
        name=name,
        videos=tuple(corpus.about[video].video for video in videos.tolist()),
        steps=tuple(sorted(_usual_steps(corpus, segments, video_N), key=lambda s: s.position)),
        transitions=_transitions(corpus, segments, video_N),
        hours=sum(corpus.seconds(video) for video in videos.tolist()) / 3600,
    )


def _usual_steps(corpus: Corpus, segments: IntArray, video_N: IntArray) -> Iterator[UsualStep]:
    lengths = np.diff(corpus.offsets_V)[video_N[segments]]
    place = (segments - corpus.offsets_V[video_N[segments]] + 0.5) / lengths
    seconds = (corpus.stop_N - corpus.start_N)[segments]
    labels = corpus.label_N[segments]
    for label in np.unique(labels).tolist():
        own = labels == label
        low, median, high = np.quantile(seconds[own], [0.1, 0.5, 0.9]).tolist()
        yield UsualStep(
            label=corpus.labels[label],
            num_videos=len(np.unique(video_N[segments][own])),
            num_segments=int(own.sum()),
            position=float(np.median(place[own])),
            median_seconds=median,
            low_seconds=low,
            high_seconds=high,
        )


def _transitions(corpus: Corpus, segments: IntArray, video_N: IntArray) -> tuple[Transition, ...]:
    labels, videos = corpus.label_N[segments].astype(np.int64), video_N[segments]
    if not len(labels):
        return ()
    edge, base = len(corpus.labels), len(corpus.labels) + 1
    starts = np.concatenate([[True], videos[1:] != videos[:-1]])
    stops = np.concatenate([starts[1:], [True]])
    before = np.where(starts, edge, np.concatenate([[edge], labels[:-1]]))
    keys = np.concatenate([before * base + labels, labels[stops] * base + edge])
    keys, counts = np.unique(keys, return_counts=True)
    names = [*corpus.labels, None]
    return tuple(
        Transition(first=names[key // base], second=names[key % base], count=count)
        for count, key in sorted(
            zip(counts.tolist(), keys.tolist(), strict=True), key=lambda c: (-c[0], c[1])
        )
    )
