"""Planted label errors with their ground truth.

A corruption never changes a frame: it renames labels, or moves frames together with their labels,
and says exactly where. The same generator state gives the same corruption. Unlabelled frames are
left alone.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from csl_dist.config import CorruptConfig
from csl_dist.data.mistakes import PLANTERS, PlantedKind, Planting
from csl_dist.data.placing import Amount, free_spans
from csl_dist.errors import DataError
from csl_dist.types import (
    Annotation,
    ErrorKind,
    IntArray,
    Span,
    Split,
    fingerprint,
    rate_of,
    runs_of,
    spans_where,
)

MAX_VIDEOS = 40
"""About so many videos get errors for calibration; more would tell little more."""
CALIBRATION_SEED = 1_000_003
"""Added to `corrupt.seed`, so that these errors are others than those of an experiment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Corruption:
    """A corrupted video: frame t shows what the original showed at `order_T[t]`."""

    kind: ErrorKind
    order_T: IntArray
    labels_T: IntArray
    spans: tuple[Span, ...]
    """Where the labels are now wrong, in frames of the corrupted video."""

    @property
    def moves_frames(self) -> bool:
        return self.kind is ErrorKind.DISORDER


def mislabel(
    labels_T: IntArray, rng: np.random.Generator, *, num_classes: int, amount: Amount
) -> Corruption:
    """Renames spans, each within one segment, to another class."""

    def wrong_class(span: Span) -> int:
        others = np.setdiff1d(np.arange(num_classes), labels_T[span.start])
        return int(rng.choice(others))

    spans = free_spans(labels_T, rng, amount, margin=0)
    return _relabelled(ErrorKind.MISLABEL, labels_T, {span: wrong_class(span) for span in spans})


def insert(
    labels_T: IntArray, rng: np.random.Generator, *, num_classes: int, amount: Amount
) -> Corruption:
    """Puts a step inside another: one that the video does not have, where there is such a class."""
    absent = np.setdiff1d(np.arange(num_classes), labels_T)

    def wrong_class(span: Span) -> int:
        others = np.setdiff1d(np.arange(num_classes), labels_T[span.start])
        return int(rng.choice(absent if len(absent) else others))

    spans = free_spans(labels_T, rng, amount, margin=1)
    return _relabelled(ErrorKind.INSERT, labels_T, {span: wrong_class(span) for span in spans})


def disorder(
    labels_T: IntArray, rng: np.random.Generator, *, num_classes: int = 0, amount: object = None
) -> Corruption:
    """Swaps two neighbouring segments, frames and labels together; both are then out of order."""
    first, second = _neighbours(labels_T, rng, 2)
    order_T = np.arange(len(labels_T))
    order_T[first.start : second.stop] = np.r_[second.start : second.stop, first.start : first.stop]
    return Corruption(
        kind=ErrorKind.DISORDER,
        order_T=order_T,
        labels_T=labels_T[order_T],
        spans=(Span(first.start, second.stop),),
    )


def reorder(
    labels_T: IntArray, rng: np.random.Generator, *, num_classes: int = 0, amount: object = None
) -> Corruption:
    """Rotates the names of three neighbouring segments; frames stay."""
    segments = _neighbours(labels_T, rng, 3)
    names = [int(labels_T[segment.start]) for segment in segments]
    rotated = names[1:] + names[:1]
    return _relabelled(ErrorKind.REORDER, labels_T, dict(zip(segments, rotated, strict=True)))


def duplicate(
    labels_T: IntArray, rng: np.random.Generator, *, num_classes: int = 0, amount: object = None
) -> Corruption:
    """Repeats a segment's name over the segment after it."""
    first, second = _neighbours(labels_T, rng, 2)
    return _relabelled(ErrorKind.DUPLICATE, labels_T, {second: int(labels_T[first.start])})


def jitter(
    labels_T: IntArray, rng: np.random.Generator, *, num_classes: int = 0, amount: Amount
) -> Corruption:
    """Moves every boundary between labelled segments by up to the longest length of the amount."""
    labels = labels_T.copy()
    for first, second in _pairs(labels_T):
        # At most half of a segment goes, so that boundaries do not pass each other.
        room = min(amount.lengths[1], len(first) // 2, len(second) // 2)
        shift = int(rng.integers(-room, room + 1))
        if shift > 0:
            labels[second.start : second.start + shift] = labels_T[first.start]
        elif shift < 0:
            labels[second.start + shift : second.start] = labels_T[second.start]
    return _changed(ErrorKind.JITTER, labels_T, labels)


AS_PEOPLE_DO = {
    ErrorKind.RENAME: PlantedKind.RENAME,
    ErrorKind.OCCURRENCE: PlantedKind.OCCURRENCE,
    ErrorKind.MERGE: PlantedKind.MERGE,
    ErrorKind.MISSING: PlantedKind.MISSING,
    ErrorKind.BOUNDARY: PlantedKind.SHIFT,
}
"""Errors as people make them, which `mistakes.py` plants."""


def mistaken(
    kind: ErrorKind,
    labels_T: IntArray,
    rng: np.random.Generator,
    *,
    num_classes: int,
    amount: Amount,
) -> Corruption:
    """Errors of one of AS_PEOPLE_DO."""
    low, high = (frames / amount.fps for frames in amount.lengths)
    planting = Planting(
        num_classes=num_classes, fps=amount.fps, rate=amount.rate, span_seconds=(low, high)
    )
    planted = PLANTERS[AS_PEOPLE_DO[kind]](labels_T, planting, rng)
    return Corruption(
        kind=kind,
        order_T=planted.order_T,
        labels_T=planted.labels_T,
        spans=tuple(Span(error.start, error.stop) for error in planted.errors),
    )


KINDS: dict[ErrorKind, Callable[..., Corruption]] = {
    ErrorKind.MISLABEL: mislabel,
    ErrorKind.DISORDER: disorder,
    ErrorKind.REORDER: reorder,
    ErrorKind.DUPLICATE: duplicate,
    ErrorKind.INSERT: insert,
    ErrorKind.JITTER: jitter,
    **{kind: partial(mistaken, kind) for kind in AS_PEOPLE_DO},
}


def chosen_kinds(
    videos: Sequence[str], shares: Mapping[Any, float], *, seed: int
) -> dict[str, ErrorKind]:
    """Which videos get which kind: each by its own id, whatever other videos there are.

    Kinds take their shares in the order of ErrorKind, in whatever order a config names them.
    """
    if sum(shares.values()) > 1 + 1e-9:
        raise DataError(f"corrupt: shares of kinds add up to {sum(shares.values()):g}, above 1")
    kinds = [kind for kind in ErrorKind if kind in shares]
    bounds = np.cumsum([shares[kind] for kind in kinds])
    places = {video: int(np.searchsorted(bounds, _place(seed, video), "right")) for video in videos}
    # Shares that add up to all videos may do so but for rounding.
    last = len(kinds) - 1 if kinds and bounds[-1] > 1 - 1e-9 else len(kinds)
    places = {video: min(place, last) for video, place in places.items()}
    return {video: kinds[place] for video, place in places.items() if place < len(kinds)}


def _place(seed: int, video: str) -> float:
    """A number from 0 to 1 that looks random and follows from a video's id."""
    return int(fingerprint(seed, video), 16) / 16**16


def planted_kinds(
    audited: Sequence[str], trained: Sequence[str], config: CorruptConfig
) -> dict[Split, dict[str, ErrorKind]]:
    """Which videos get which planted error, by what they are used for."""
    return {
        Split.AUDIT: chosen_kinds(audited, config.audit, seed=config.seed),
        Split.TRAIN: chosen_kinds(trained, config.train, seed=config.seed + 1),
    }


def corrupted(
    labels_T: IntArray,
    kind: ErrorKind,
    video: str,
    config: CorruptConfig,
    *,
    num_classes: int,
    fps: float,
) -> Corruption:
    """The corruption of one video, seeded by the config's seed and the video's id alone."""
    rng = np.random.default_rng([config.seed, *video.encode()])
    if num_classes < 2:
        raise DataError("corrupt: a dataset of one class has no wrong labels to plant")
    try:
        amount = Amount(rate=config.rate, lengths=config.lengths, fps=fps)
        return KINDS[kind](labels_T, rng, num_classes=num_classes, amount=amount)
    except DataError as error:
        raise DataError(f"corrupt: no {kind} can be planted in video {video!r}: {error}") from None


def _relabelled(kind: ErrorKind, labels_T: IntArray, classes: dict[Span, int]) -> Corruption:
    labels = labels_T.copy()
    for span, label in classes.items():
        labels[span.start : span.stop] = label
    return _changed(kind, labels_T, labels, cuts=[span.start for span in classes])


def _changed(
    kind: ErrorKind, before_T: IntArray, after_T: IntArray, cuts: Sequence[int] = ()
) -> Corruption:
    """A corruption of labels alone; its spans are where they differ, cut at the given frames."""
    spans = []
    for span in spans_where(before_T != after_T):
        inner = sorted(cut for cut in cuts if span.start < cut < span.stop)
        spans += [Span(a, b) for a, b in pairwise([span.start, *inner, span.stop])]
    return Corruption(
        kind=kind, order_T=np.arange(len(before_T)), labels_T=after_T, spans=tuple(spans)
    )


def _pairs(labels_T: IntArray) -> list[tuple[Span, Span]]:
    """Neighbouring labelled segments."""
    return [
        (first, second)
        for first, second in pairwise(runs_of(labels_T))
        if labels_T[first.start] >= 0 and labels_T[second.start] >= 0
    ]


def _neighbours(labels_T: IntArray, rng: np.random.Generator, count: int) -> list[Span]:
    """A random run of neighbouring labelled segments."""
    segments = runs_of(labels_T)
    starts = [
        i
        for i in range(len(segments) - count + 1)
        if all(labels_T[segment.start] >= 0 for segment in segments[i : i + count])
    ]
    if not starts:
        raise DataError(f"it has no {count} neighbouring labelled segments")
    start = starts[int(rng.integers(len(starts)))]
    return segments[start : start + count]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedVideo:
    """A video before and after errors were planted in it."""

    clean: Annotation
    wrong: Annotation
    """A derived video with an id of its own where frames were moved."""
    spans: tuple[Span, ...]
    order_T: IntArray | None = None
    """Where frames were moved: frame t of `wrong` is frame `order_T[t]` of `clean`."""


def planted_videos(
    annotations: Sequence[Annotation],
    kind: ErrorKind,
    config: CorruptConfig,
    *,
    num_classes: int,
    most: int = MAX_VIDEOS,
) -> list[PlantedVideo]:
    """Wrong versions of some of the videos; those that give no room for the error are left out.

    A video is chosen by its own id: one more video adds at most itself.
    """
    chosen = calibration_ids([a.video for a in annotations], config, most)
    config = replace(config, seed=config.seed + CALIBRATION_SEED)
    videos: list[PlantedVideo] = []
    for annotation in annotations:
        if annotation.video not in chosen:
            continue
        try:
            corruption = corrupted(
                annotation.labels_T,
                kind,
                annotation.video,
                config,
                num_classes=num_classes,
                fps=rate_of(annotation),
            )
        except DataError:
            continue
        videos.append(
            PlantedVideo(
                clean=annotation,
                wrong=with_errors(annotation, corruption, video=copy_id(annotation.video)),
                spans=corruption.spans,
                order_T=corruption.order_T if corruption.moves_frames else None,
            )
        )
    return sorted(videos, key=lambda v: v.clean.video)


def calibration_ids(videos: Sequence[str], config: CorruptConfig, most: int) -> set[str]:
    """About `most` of the videos: those of which `planted_videos` makes wrong versions."""
    share = share_of(most, len(videos))
    return {v for v in videos if _place(config.seed + CALIBRATION_SEED, v) < share}


def share_of(most: int, num_videos: int) -> float:
    """The share of videos to choose for about `most` of them, at least half as many.

    It falls by halves as videos are added, so that those chosen before are a part of those after.
    """
    if num_videos <= most:
        return 1.0
    return most / 2 ** math.ceil(math.log2(num_videos))


def with_errors(annotation: Annotation, corruption: Corruption, *, video: str) -> Annotation:
    """An annotation with an error planted; where frames move it is of a derived video, `video`."""
    if not corruption.moves_frames:
        return replace(annotation, labels_T=corruption.labels_T)
    return replace(
        annotation,
        video=video,
        labels_T=corruption.labels_T,
        shown_T=annotation.source_times_T[corruption.order_T],
        derived_from=annotation.original,
    )


def copy_id(video: str) -> str:
    """The id of a video's copy with swapped steps."""
    return f"{video}~swapped"
