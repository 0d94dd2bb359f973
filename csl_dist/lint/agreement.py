"""How well annotators of the same videos agree: by pair, by class, and at starts of steps.

Shares are of the time that at least one of the two labelled; they lie in 0 to 1, higher is better.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from csl_dist.lint.corpus import Corpus
from csl_dist.lint.findings import Finding, Kind, TimeUnit, length_text
from csl_dist.types import FloatArray, IntArray

SHIFT_SECONDS = 2.0
"""Smaller differences of starts are never a habit."""
MIN_SHIFTED = 6
"""Videos in which an annotator must differ before it is a habit."""
SHIFT_SHARE = 0.9
"""Of these videos, at least so many must differ the same way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairAgreement:
    """Two annotators over all videos that both labelled."""

    first: str
    second: str
    num_videos: int
    seconds: float
    """Time that at least one of them labelled."""
    agreed: float
    """Share of that time with the same label."""
    start_median_seconds: float | None
    """Of the absolute differences between starts of matched steps; None where none match."""
    start_90_seconds: float | None
    unmatched_steps: int
    """Steps of either that the other has not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassAgreement:
    """One class over all pairs of annotators."""

    label: str
    seconds: float
    agreed: float
    """Time that both call so, of the time that either does."""
    start_median_seconds: float | None
    start_90_seconds: float | None
    unmatched_steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Nothing in it where no video has two annotators."""

    pairs: tuple[PairAgreement, ...] = ()
    classes: tuple[ClassAgreement, ...] = ()
    findings: tuple[Finding, ...] = ()
    """Annotators who start a step earlier or later than the others, told once each."""


@dataclass(slots=True)
class _Tally:
    seconds: float = 0.0
    same: float = 0.0
    unmatched: int = 0
    videos: int = 0
    starts: list[float] = field(default_factory=list)

    def quantile(self, share: float) -> float | None:
        return float(np.quantile(np.abs(self.starts), share)) if self.starts else None


def agreement_of(corpus: Corpus, unit: TimeUnit = TimeUnit.SECONDS) -> Agreement:
    """Compares all files of the same video, two by two."""
    pairs: dict[tuple[str, str], _Tally] = defaultdict(_Tally)
    classes: dict[int, _Tally] = defaultdict(_Tally)
    shifts: dict[tuple[str, int], list[float]] = defaultdict(list)
    for files in _files_of_videos(corpus):
        for first, second in combinations(files, 2):
            names = (_annotator(corpus, first), _annotator(corpus, second))
            tally = pairs[names]
            tally.videos += 1
            _compare_time(corpus, first, second, tally, classes)
            for label, difference in _start_differences(corpus, first, second):
                own = classes[label]
                if difference is None:
                    tally.unmatched += 1
                    own.unmatched += 1
                else:
                    tally.starts.append(difference)
                    own.starts.append(difference)
                    shifts[names[0], label].append(-difference)
                    shifts[names[1], label].append(difference)
    return Agreement(
        pairs=tuple(_pair(names, tally) for names, tally in sorted(pairs.items())),
        classes=tuple(_class(corpus.labels[c], tally) for c, tally in sorted(classes.items())),
        findings=tuple(_shifted(corpus, shifts, unit)),
    )


def _files_of_videos(corpus: Corpus) -> list[list[int]]:
    by_video: dict[str, list[int]] = defaultdict(list)
    for number, about in enumerate(corpus.about):
        by_video[about.video].append(number)
    annotator = {n: _annotator(corpus, n) for files in by_video.values() for n in files}
    return [
        sorted(files, key=annotator.__getitem__) for files in by_video.values() if len(files) > 1
    ]


def _annotator(corpus: Corpus, file: int) -> str:
    return corpus.about[file].annotator or corpus.about[file].file


def _compare_time(
    corpus: Corpus, first: int, second: int, tally: _Tally, classes: dict[int, _Tally]
) -> None:
    spans = corpus.span(first), corpus.span(second)
    times = np.unique(
        np.concatenate(
            [column[span] for span in spans for column in (corpus.start_N, corpus.stop_N)]
        )
    )
    if len(times) < 2:
        return
    seconds = np.diff(times)
    left, right = (labels_at(corpus, span, (times[:-1] + times[1:]) / 2) for span in spans)
    either = (left >= 0) | (right >= 0)
    tally.seconds += float(seconds[either].sum())
    tally.same += float(seconds[either & (left == right)].sum())
    for label in np.unique(np.concatenate([left[left >= 0], right[right >= 0]])).tolist():
        classes[label].seconds += float(seconds[(left == label) | (right == label)].sum())
        classes[label].same += float(seconds[(left == label) & (right == label)].sum())


def labels_at(corpus: Corpus, span: slice, times: FloatArray) -> IntArray:
    """The class at each time, -1 for none; of overlapping steps the one that started last."""
    labels = np.full(len(times), -1)
    for n in range(span.start, span.stop):
        inside = (times >= corpus.start_N[n]) & (times < corpus.stop_N[n])
        labels[inside] = corpus.label_N[n]
    return labels


def _start_differences(
    corpus: Corpus, first: int, second: int
) -> Iterator[tuple[int, float | None]]:
    """Seconds by which the second starts a step later than the first; None for unmatched steps.

    Steps of a class are matched closest starts first, each once.
    """
    spans = corpus.span(first), corpus.span(second)
    for label in np.unique(np.concatenate([corpus.label_N[span] for span in spans])).tolist():
        left, right = (corpus.start_N[span][corpus.label_N[span] == label] for span in spans)
        difference = right[None, :] - left[:, None]
        for _ in range(min(difference.shape)):
            row, column = np.unravel_index(np.nanargmin(np.abs(difference)), difference.shape)
            yield label, float(difference[row, column])
            difference[row, :] = np.nan
            difference[:, column] = np.nan
        for _ in range(abs(len(left) - len(right))):
            yield label, None


def _pair(names: tuple[str, str], tally: _Tally) -> PairAgreement:
    return PairAgreement(
        first=names[0],
        second=names[1],
        num_videos=tally.videos,
        seconds=tally.seconds,
        agreed=tally.same / tally.seconds if tally.seconds else 1.0,
        start_median_seconds=tally.quantile(0.5),
        start_90_seconds=tally.quantile(0.9),
        unmatched_steps=tally.unmatched,
    )


def _class(label: str, tally: _Tally) -> ClassAgreement:
    return ClassAgreement(
        label=label,
        seconds=tally.seconds,
        agreed=tally.same / tally.seconds if tally.seconds else 1.0,
        start_median_seconds=tally.quantile(0.5),
        start_90_seconds=tally.quantile(0.9),
        unmatched_steps=tally.unmatched,
    )


def _shifted(
    corpus: Corpus, shifts: dict[tuple[str, int], list[float]], unit: TimeUnit
) -> Iterator[Finding]:
    """Annotators whose starts of a class lie on one side of the others'."""
    for (annotator, label), values in sorted(shifts.items()):
        later = sum(value > SHIFT_SECONDS for value in values)
        earlier = sum(value < -SHIFT_SECONDS for value in values)
        most = max(later, earlier)
        if most < MIN_SHIFTED or most < SHIFT_SHARE * len(values):
            continue
        median = float(np.median(np.abs(values)))
        side = "later" if later > earlier else "earlier"
        yield Finding(
            kind=Kind.DEFINITION,
            video=None,
            label=corpus.labels[label],
            score=median,
            sentence=(
                f"Annotator {annotator} starts `{corpus.labels[label]}` {side} than another "
                f"annotator of the same video in {most} of {len(values)} comparisons, by "
                f"{length_text(median, unit)} (median)."
            ),
            evidence={"annotator": annotator, "comparisons": len(values), "seconds": median},
        )
