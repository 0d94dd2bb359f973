"""Planted label errors of the kinds that people make, with their truth.

A planting depends on (seed, video id) and the video's own labels alone: a dataset that grows by one
video is planted as before elsewhere. Frames without a label are never touched. All kinds change
labels only, except `swap`, which moves frames with their labels: `order_T` says from where.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from csl_dist.data.placing import Amount, free_spans
from csl_dist.data.segments import Segment, neighbour_pairs, segments_of
from csl_dist.errors import DataError
from csl_dist.types import UNLABELLED, FloatArray, IntArray


class PlantedKind(StrEnum):
    """What is done to the labels."""

    MISLABEL = "mislabel"
    """A span within a segment gets any other name."""
    RENAME = "rename"
    """A whole segment gets any other name."""
    CONFUSABLE = "confusable"
    """A whole segment gets a name that models mistake for its own."""
    PLAUSIBLE = "plausible"
    """A whole segment gets a name that often stands between its neighbours."""
    OCCURRENCE = "occurrence"
    """A whole segment gets the name of a step that the video has elsewhere."""
    INSERT = "insert"
    """A short step stands inside another one."""
    MERGE = "merge"
    """A forgotten boundary: a segment goes under the name of its neighbour."""
    MISSING = "missing"
    """A forgotten step: its frames are divided between both neighbours."""
    SHIFT = "shift"
    """Some boundaries are off, most by a second, a tenth by more than 20."""
    JITTER = "jitter"
    """Every boundary is off by up to half of the shorter segment."""
    SWAP = "swap"
    """Two neighbouring segments have changed places, frames and labels together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedSpan:
    """Frames [start, stop) whose labels are wrong, and what would be right."""

    kind: PlantedKind
    start: int
    stop: int
    label: int | None
    """The right label; None for a swap, whose labels fit their frames."""
    boundary: int | None = None
    """Of a moved boundary: the frame at which it should be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedLabels:
    """A video's labels with errors in them: frame t shows what was at `order_T[t]`."""

    labels_T: IntArray
    order_T: IntArray
    errors: tuple[PlantedSpan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Planting:
    """How much is planted, and what is known of the classes."""

    num_classes: int
    fps: float
    rate: float = 0.1
    """Share of a video's labelled frames to be wrong, about; at least one error is planted."""
    span_seconds: tuple[float, float] = (2.0, 12.0)
    """Shortest and longest planted span of `mislabel` and `insert`."""
    shift_median_seconds: float = 1.0
    shift_tenth_seconds: float = 20.0
    """A tenth of moved boundaries is off by more than this, where segments are long enough."""
    boundary_share: float = 0.2
    """Share of the boundaries that `shift` moves."""
    confusion_CC: FloatArray | None = None
    """Row: the right class; column: how often models take it for another. Not negative."""
    bigram_CC: FloatArray | None = None
    """Log-probability that the column's class follows the row's."""
    kinds: Mapping[PlantedKind, float] = field(default_factory=dict)
    """Share of each kind in a mix."""


def plant(
    labels_T: IntArray, kind: PlantedKind, planting: Planting, *, video: str, seed: int
) -> PlantedLabels:
    """A video with errors of one kind; DataError where it has no room for them."""
    rng = np.random.default_rng([seed, *video.encode()])
    try:
        return PLANTERS[kind](labels_T, planting, rng)
    except DataError as error:
        raise DataError(f"no {kind} can be planted in video {video!r}: {error}") from None


def plant_mix(
    labels_T: IntArray, planting: Planting, *, video: str, seed: int
) -> PlantedLabels | None:
    """A video with errors of one kind drawn from the mix, or None where it has no room for them."""
    rng = np.random.default_rng([seed, 1, *video.encode()])
    kinds = list(planting.kinds)
    share = np.array([planting.kinds[kind] for kind in kinds], dtype=float)
    # Where the drawn kind finds no room the next one is tried, in a drawn order.
    for i in rng.choice(
        len(kinds), size=int((share > 0).sum()), replace=False, p=share / share.sum()
    ):
        try:
            return plant(labels_T, kinds[i], planting, video=video, seed=seed)
        except DataError:
            continue
    return None


def untouched(labels_T: IntArray) -> PlantedLabels:
    """A video without any planted error."""
    return PlantedLabels(labels_T=labels_T, order_T=np.arange(len(labels_T)), errors=())


def labels_for_length(labels_T: IntArray, num_frames: int) -> IntArray:
    """Another video's labels for `num_frames` frames: cut, or the last one held to the end."""
    if len(labels_T) >= num_frames:
        return labels_T[:num_frames].copy()
    return np.pad(labels_T, (0, num_frames - len(labels_T)), mode="edge")


def mislabel(labels_T: IntArray, planting: Planting, rng: np.random.Generator) -> PlantedLabels:
    """Spans within segments get another name, drawn evenly."""
    spans = _free_spans(labels_T, planting, rng, margin=0)
    names = {span: _other_class(span.label, planting, rng) for span in spans}
    return _renamed(labels_T, names, PlantedKind.MISLABEL)


def insert(labels_T: IntArray, planting: Planting, rng: np.random.Generator) -> PlantedLabels:
    """Short spans inside segments get the name of a step, one that the video lacks if there is."""
    absent = np.setdiff1d(np.arange(planting.num_classes), labels_T)
    spans = _free_spans(labels_T, planting, rng, margin=1)
    names = {
        span: int(rng.choice(absent)) if len(absent) else _other_class(span.label, planting, rng)
        for span in spans
    }
    return _renamed(labels_T, names, PlantedKind.INSERT)


def rename(labels_T: IntArray, planting: Planting, rng: np.random.Generator) -> PlantedLabels:
    """Whole segments get another name than their own and their neighbours', drawn evenly."""
    return _rename_segments(
        labels_T, planting, rng, PlantedKind.RENAME, lambda *_: np.ones(planting.num_classes)
    )


def confusable(labels_T: IntArray, planting: Planting, rng: np.random.Generator) -> PlantedLabels:
    """Whole segments get a name drawn by how often models confuse it with theirs."""
    if planting.confusion_CC is None:
        raise DataError("the confusions of the classes are not given")
    confusion_CC = planting.confusion_CC
    return _rename_segments(
        labels_T, planting, rng, PlantedKind.CONFUSABLE, lambda label, *_: confusion_CC[label]
    )


def plausible(labels_T: IntArray, planting: Planting, rng: np.random.Generator) -> PlantedLabels:
    """Whole segments get a name drawn by how well it stands between their neighbours."""
    if planting.bigram_CC is None:
        raise DataError("the grammar of the classes is not given")
    bigram_CC = planting.bigram_CC

    def share_C(label: int, before: int | None, after: int | None) -> FloatArray:
        log_C = np.zeros(planting.num_classes)
        log_C = log_C if before is None else log_C + bigram_CC[before]
        log_C = log_C if after is None else log_C + bigram_CC[:, after]
        weight_C: FloatArray = np.exp(log_C - log_C.max())
        return weight_C

    return _rename_segments(labels_T, planting, rng, PlantedKind.PLAUSIBLE, share_C)


def occurrence(labels_T: IntArray, planting: Planting, rng: np.random.Generator) -> PlantedLabels:
    """Whole segments get the name of a step that the video has elsewhere."""
    present_C = np.isin(np.arange(planting.num_classes), labels_T).astype(float)
    return _rename_segments(labels_T, planting, rng, PlantedKind.OCCURRENCE, lambda *_: present_C)


def merge(labels_T: IntArray, planting: Planting, rng: np.random.Generator) -> PlantedLabels:
    """Segments go under the name of the one before or after them."""
    segments = segments_of(labels_T)
    names: dict[Segment, int] = {}
    for i in _segments_in_turn(segments, planting, rng):
        around = [
            segments[k]
            for k in (i - 1, i + 1)
            if 0 <= k < len(segments) and segments[k].label != UNLABELLED
        ]
        # Neighbours that keep their own name, so that the truth stays one segment.
        around = [segment for segment in around if segment not in names]
        if around and _is_short_of(names, labels_T, planting):
            names[segments[i]] = around[int(rng.integers(len(around)))].label
    return _renamed(labels_T, names, PlantedKind.MERGE)


def missing(labels_T: IntArray, planting: Planting, rng: np.random.Generator) -> PlantedLabels:
    """Steps are forgotten; a random cut divides their frames between both neighbours."""
    segments = segments_of(labels_T)
    wrong_T = labels_T.copy()
    taken: set[int] = set()
    errors: list[PlantedSpan] = []
    done: dict[Segment, int] = {}
    for i in _segments_in_turn(segments, planting, rng):
        inside = 0 < i < len(segments) - 1
        if not inside or {i - 1, i, i + 1} & taken or not _is_short_of(done, labels_T, planting):
            continue
        before, own, after = segments[i - 1 : i + 2]
        if UNLABELLED in (before.label, after.label):
            continue
        cut = int(rng.integers(own.start, own.stop + 1))
        wrong_T[own.start : cut] = before.label
        wrong_T[cut : own.stop] = after.label
        taken |= {i - 1, i, i + 1}
        done[own] = own.label
        errors.append(
            PlantedSpan(kind=PlantedKind.MISSING, start=own.start, stop=own.stop, label=own.label)
        )
    return _planted(labels_T, wrong_T, errors)


def shift(labels_T: IntArray, planting: Planting, rng: np.random.Generator) -> PlantedLabels:
    """Some boundaries move by a draw with a long tail, bounded by their segments."""
    pairs = neighbour_pairs(segments_of(labels_T))
    count = max(1, round(planting.boundary_share * len(pairs)))
    chosen = rng.permutation(pairs)[:count].tolist()
    spread = np.log(planting.shift_tenth_seconds / planting.shift_median_seconds) / 1.2816

    def frames() -> int:
        seconds = planting.shift_median_seconds * np.exp(spread * rng.standard_normal())
        return max(1, round(seconds * planting.fps))

    return _moved_boundaries(
        labels_T, sorted(chosen), rng, PlantedKind.SHIFT, lambda room: min(room, frames()), 0.8
    )


def jitter(labels_T: IntArray, planting: Planting, rng: np.random.Generator) -> PlantedLabels:
    """Every boundary moves by up to the shortest span, and half of the segment that it enters."""
    pairs = neighbour_pairs(segments_of(labels_T))
    longest = max(1, round(planting.span_seconds[0] * planting.fps))
    return _moved_boundaries(
        labels_T,
        pairs,
        rng,
        PlantedKind.JITTER,
        lambda room: int(rng.integers(0, min(room, longest) + 1)),
        0.5,
    )


def swap(labels_T: IntArray, planting: Planting, rng: np.random.Generator) -> PlantedLabels:
    """Two random neighbouring segments change places, frames and labels together."""
    segments = segments_of(labels_T)
    pairs = neighbour_pairs(segments)
    if not pairs:
        raise DataError("it has no two neighbouring labelled segments")
    i = pairs[int(rng.integers(len(pairs)))]
    first, second = segments[i], segments[i + 1]
    order_T = np.arange(len(labels_T))
    order_T[first.start : second.stop] = np.r_[second.start : second.stop, first.start : first.stop]
    error = PlantedSpan(kind=PlantedKind.SWAP, start=first.start, stop=second.stop, label=None)
    return PlantedLabels(labels_T=labels_T[order_T], order_T=order_T, errors=(error,))


PLANTERS: dict[PlantedKind, Callable[[IntArray, Planting, np.random.Generator], PlantedLabels]] = {
    PlantedKind.MISLABEL: mislabel,
    PlantedKind.RENAME: rename,
    PlantedKind.CONFUSABLE: confusable,
    PlantedKind.PLAUSIBLE: plausible,
    PlantedKind.OCCURRENCE: occurrence,
    PlantedKind.INSERT: insert,
    PlantedKind.MERGE: merge,
    PlantedKind.MISSING: missing,
    PlantedKind.SHIFT: shift,
    PlantedKind.JITTER: jitter,
    PlantedKind.SWAP: swap,
}


def _rename_segments(
    labels_T: IntArray,
    planting: Planting,
    rng: np.random.Generator,
    kind: PlantedKind,
    weight_C: Callable[[int, int | None, int | None], FloatArray],
) -> PlantedLabels:
    """Renames segments in a drawn order until enough frames are wrong."""
    segments = segments_of(labels_T)
    names: dict[Segment, int] = {}

    def name_at(k: int) -> int | None:
        if not 0 <= k < len(segments) or segments[k].label == UNLABELLED:
            return None
        return names.get(segments[k], segments[k].label)

    for i in _segments_in_turn(segments, planting, rng):
        if not _is_short_of(names, labels_T, planting):
            break
        own, before, after = segments[i], name_at(i - 1), name_at(i + 1)
        share_C = np.array(weight_C(own.label, before, after), dtype=float)
        share_C[[c for c in (own.label, before, after) if c is not None]] = 0.0
        if share_C.sum() > 0:
            names[own] = int(rng.choice(len(share_C), p=share_C / share_C.sum()))
    return _renamed(labels_T, names, kind)


def _segments_in_turn(
    segments: list[Segment], planting: Planting, rng: np.random.Generator
) -> list[int]:
    """Labelled segments in a drawn order, those that alone would be far too much last."""
    labelled = [i for i, s in enumerate(segments) if s.label != UNLABELLED]
    total = sum(segments[i].num_frames for i in labelled)
    drawn = rng.permutation(labelled).tolist()
    return sorted(drawn, key=lambda i: segments[i].num_frames > 3 * planting.rate * total)


def _is_short_of(names: Mapping[Segment, int], labels_T: IntArray, planting: Planting) -> bool:
    wanted = planting.rate * int((labels_T != UNLABELLED).sum())
    return sum(segment.num_frames for segment in names) < wanted


def _other_class(label: int, planting: Planting, rng: np.random.Generator) -> int:
    return int(rng.choice(np.setdiff1d(np.arange(planting.num_classes), label)))


def _free_spans(
    labels_T: IntArray, planting: Planting, rng: np.random.Generator, *, margin: int
) -> list[Segment]:
    """Spans that never become one: a free frame is on either side."""
    low, high = (max(1, round(s * planting.fps)) for s in planting.span_seconds)
    amount = Amount(rate=planting.rate, lengths=(low, high))
    spans = free_spans(labels_T, rng, amount, margin=margin, gap=1)
    return [Segment(span.start, span.stop, int(labels_T[span.start])) for span in spans]


def _moved_boundaries(
    labels_T: IntArray,
    pairs: list[int],
    rng: np.random.Generator,
    kind: PlantedKind,
    frames: Callable[[int], int],
    most: float,
) -> PlantedLabels:
    """Moves the boundary after each named segment by `frames(room)` to a drawn side."""
    segments = segments_of(labels_T)
    wrong_T = labels_T.copy()
    errors: list[PlantedSpan] = []
    end_of_last = 0
    for i in pairs:
        first, second = segments[i], segments[i + 1]
        place = second.start
        forward = bool(rng.integers(2))
        room = int(most * (second.num_frames if forward else first.num_frames))
        if not forward:  # what the boundary before has taken is no longer there
            room = min(room, place - max(first.start, end_of_last) - 1)
        length = frames(room) if room > 0 else 0
        if length <= 0:
            continue
        start, stop = (place, place + length) if forward else (place - length, place)
        wrong_T[start:stop] = first.label if forward else second.label
        end_of_last = stop
        errors.append(
            PlantedSpan(
                kind=kind,
                start=start,
                stop=stop,
                label=second.label if forward else first.label,
                boundary=place,
            )
        )
    return _planted(labels_T, wrong_T, errors)


def _renamed(labels_T: IntArray, names: Mapping[Segment, int], kind: PlantedKind) -> PlantedLabels:
    wrong_T = labels_T.copy()
    for segment, name in names.items():
        wrong_T[segment.start : segment.stop] = name
    errors = [
        PlantedSpan(kind=kind, start=s.start, stop=s.stop, label=s.label) for s in sorted(names)
    ]
    return _planted(labels_T, wrong_T, errors)


def _planted(labels_T: IntArray, wrong_T: IntArray, errors: list[PlantedSpan]) -> PlantedLabels:
    if not errors:
        raise DataError("it has no room for such an error")
    return PlantedLabels(
        labels_T=wrong_T,
        order_T=np.arange(len(labels_T)),
        errors=tuple(sorted(errors, key=lambda e: e.start)),
    )
