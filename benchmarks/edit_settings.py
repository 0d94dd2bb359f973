"""Audits with planted errors for benchmarks/findings.py: trajectories, labels, truth, candidates.

A setting is a dataset whose labels hold errors of one kind, or of a mix, planted by a seed at a
rate. Whoever looks at a setting sees its labels and trajectories, and nothing of the truth.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from csl_dist.data.mistakes import PlantedKind, PlantedSpan, Planting, plant, plant_mix
from csl_dist.data.segments import Segment, segments_of
from csl_dist.errors import DataError
from csl_dist.flag.edits.candidates import candidate_edits
from csl_dist.flag.edits.edit import Edit
from csl_dist.flag.edits.emission import (
    TEMPERATURES,
    Emission,
    emission_of,
    late_view,
    permuted,
    temperature_likelihoods,
)
from csl_dist.flag.edits.evidence import evidence_rows
from csl_dist.flag.edits.statistics import Counts, Statistics, counts_of, statistics_of
from csl_dist.types import UNLABELLED, FloatArray, IntArray

SPAN_FRAMES = {"50salads": (5, 30), "gtea": (5, 30)}
"""Planted spans as real_data.py has them; elsewhere 10 to 60."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectories:
    """One dataset as edit_trajectories.py wrote it."""

    name: str
    ids: tuple[str, ...]
    groups: Mapping[str, str]
    fps: float
    num_classes: int
    families: tuple[str, ...]
    labels: Mapping[str, IntArray]
    arrays: Mapping[str, Any]

    def logp(self, video: str, swap_seed: int | None = None) -> list[FloatArray]:
        """Trajectories (E, T, C) of every family, of the video or of its swapped version."""
        prefix = "logp" if swap_seed is None else f"swap{swap_seed}"
        return [
            self.arrays[f"{prefix}__{family}__{video}"].astype(np.float32)
            for family in self.families
        ]

    def reporting(self) -> set[str]:
        """Videos of every second person: no choice is made on these."""
        people = sorted(set(self.groups.values()))
        second = set(people[1::2])
        return {video for video in self.ids if self.groups[video] in second}


class PlantedRow(NamedTuple):
    """A video's labels with their errors; `order_T` of frames that models saw moved.

    `moved_T`: a further order, of frames that models did not see moved: predictions are permuted.
    """

    labels_T: IntArray
    errors: tuple[PlantedSpan, ...]
    swap_seed: int | None
    order_T: IntArray
    moved_T: IntArray | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedVideo:
    """One video of a setting: labels with errors, candidates with evidence, and the truth."""

    id: str
    labels_T: IntArray
    errors: tuple[PlantedSpan, ...]
    swap_seed: int | None
    order_T: IntArray
    edits: list[Edit]
    evidence_NK: FloatArray
    surprise_T: FloatArray
    emission: Emission


def load(folder: Path, name: str, seed: int = 0) -> Trajectories:
    arrays = dict(np.load(folder / name / f"seed{seed}.npz"))
    ids = tuple(str(v) for v in arrays["ids"])
    return Trajectories(
        name=name,
        ids=ids,
        groups=dict(zip(ids, map(str, arrays["groups"]), strict=True)),
        fps=float(arrays["fps"]),
        num_classes=len(arrays["classes"]),
        families=tuple(map(str, arrays["families"])),
        labels={v: arrays[f"labels__{v}"] for v in ids},
        arrays=arrays,
    )


def planting_of(
    data: Trajectories,
    rate: float,
    kinds: Mapping[PlantedKind, float] | None = None,
    *,
    labels: Mapping[str, IntArray] | None = None,
) -> Planting:
    """Spans, confusions and grammar of a dataset, by its own labels or by those that are given."""
    labels = data.labels if labels is None else labels
    low, high = SPAN_FRAMES.get(data.name, (10, 60))
    counts = [counts_of(labels[v], num_classes=data.num_classes, fps=data.fps) for v in data.ids]
    statistics = statistics_of(reduce(lambda a, b: a + b, counts))
    return Planting(
        num_classes=data.num_classes,
        fps=data.fps,
        rate=rate,
        span_seconds=(low / data.fps, high / data.fps),
        boundary_share=min(1.0, 2 * rate),
        kinds=kinds or {},
        confusion_CC=confusions(data, labels),
        bigram_CC=statistics.bigram_CC[: data.num_classes, : data.num_classes],
    )


def confusions(data: Trajectories, labels: Mapping[str, IntArray]) -> FloatArray:
    """Out-of-fold probability (C, C) of the column's class summed where the row's is labelled."""
    total_CC = np.zeros((data.num_classes, data.num_classes))
    for video in data.ids:
        probability_TC = np.mean(
            [
                np.exp(data.arrays[f"logp__{f}__{video}"][-1].astype(np.float32))
                for f in data.families
            ],
            axis=0,
        )
        known_T = labels[video] >= 0
        np.add.at(total_CC, labels[video][known_T], probability_TC[known_T])
    np.fill_diagonal(total_CC, 0.0)
    return total_CC


def planted_labels(
    data: Trajectories,
    kind: PlantedKind | None,
    seed: int,
    planting: Planting,
    *,
    share: float = 0.5,
) -> dict[str, PlantedRow]:
    """Labels and errors by video; of a mix, as the planting names it, where `kind` is None.

    A share of the videos gets errors, drawn by (seed, id); the others, and those without room for
    the kind, stay as they are.
    """
    result = {}
    for video in data.ids:
        labels_T = data.labels[video]
        order_T = np.arange(len(labels_T))
        result[video] = PlantedRow(labels_T, (), None, order_T)
        if np.random.default_rng([seed, 7, *video.encode()]).random() >= share:
            continue
        if kind is PlantedKind.SWAP and f"order{seed}__{video}" in data.arrays:
            order_T = data.arrays[f"order{seed}__{video}"]
            moved = np.flatnonzero(order_T != np.arange(len(order_T)))
            error = PlantedSpan(kind=kind, start=int(moved[0]), stop=int(moved[-1]) + 1, label=None)
            result[video] = PlantedRow(labels_T[order_T], (error,), seed, order_T)
            continue
        if kind is None:
            planted = plant_mix(labels_T, planting, video=video, seed=seed)
        else:
            try:
                planted = plant(labels_T, kind, planting, video=video, seed=seed)
            except DataError:
                planted = None
        if planted is not None:
            result[video] = PlantedRow(
                planted.labels_T, planted.errors, None, np.arange(len(labels_T)), planted.order_T
            )
    return result


def statistics_without(data: Trajectories, labels: Mapping[str, IntArray]) -> dict[str, Statistics]:
    """For each video the statistics of the labels of all other people."""
    counts = {v: counts_of(labels[v], num_classes=data.num_classes, fps=data.fps) for v in data.ids}
    total = reduce(lambda a, b: a + b, counts.values())
    by_group: dict[str, Counts] = {}
    for v in data.ids:
        group = data.groups[v]
        by_group[group] = by_group[group] + counts[v] if group in by_group else counts[v]
    of_group = {group: statistics_of(total - own) for group, own in by_group.items()}
    return {v: of_group[data.groups[v]] for v in data.ids}


def temperatures_of(data: Trajectories, labels: Mapping[str, IntArray]) -> list[float]:
    """Of every family, from one frame in three."""
    result = []
    for f in range(len(data.families)):
        means = [late_half(data.logp(v)[f]).mean(axis=0)[::3] for v in data.ids]
        result.append(
            best_temperature(
                np.concatenate(means), np.concatenate([labels[v][::3] for v in data.ids])
            )
        )
    return result


def late_half(logp_ETC: FloatArray) -> FloatArray:
    """The later half of the checkpoints, the middle one included."""
    return logp_ETC[len(logp_ETC) // 2 :]


def best_temperature(logp_NC: FloatArray, labels_N: IntArray) -> float:
    """Of TEMPERATURES the one under which held-out labels are likeliest."""
    return TEMPERATURES[int(temperature_likelihoods(logp_NC, labels_N).argmax())]


class EmissionCache:
    """Emissions of a dataset at fixed temperatures; a moved video is permuted unless predicted."""

    def __init__(self, data: Trajectories, temperatures: Sequence[float]):
        self._data = data
        self._temperatures = tuple(temperatures)
        self._known: dict[tuple[str, int | None], Emission] = {}

    def of(self, video: str, swap_seed: int | None, moved_T: IntArray | None) -> Emission:
        key = (video, swap_seed)
        if key not in self._known:
            families = [
                late_view([logp_ETC], len(logp_ETC) // 2)
                for logp_ETC in self._data.logp(video, swap_seed)
            ]
            self._known[key] = emission_of(families, self._temperatures)
        if moved_T is None:
            return self._known[key]
        return permuted(self._known[key], moved_T)


def audited(
    data: Trajectories,
    planted: Mapping[str, PlantedRow],
    cache: EmissionCache,
    *,
    statistics: Mapping[str, Statistics] | None = None,
    videos: Sequence[str] | None = None,
) -> list[AuditedVideo]:
    """Candidates and evidence of every video of a setting, or of some of them."""
    if statistics is None:
        statistics = statistics_without(data, {v: row[0] for v, row in planted.items()})
    result = []
    for video in data.ids if videos is None else videos:
        labels_T, errors, swap_seed, order_T, moved_T = planted[video]
        segments = segments_of(labels_T)
        emission = cache.of(video, swap_seed, moved_T)
        edits = candidate_edits(segments, emission, statistics[video], fps=data.fps)
        result.append(
            AuditedVideo(
                id=video,
                labels_T=labels_T,
                errors=errors,
                swap_seed=swap_seed,
                order_T=order_T,
                edits=edits,
                evidence_NK=evidence_rows(
                    edits, segments, emission, statistics[video], fps=data.fps
                ),
                surprise_T=surprise(segments, statistics[video]),
                emission=emission,
            )
        )
    return result


def surprise(segments: Sequence[Segment], statistics: Statistics) -> FloatArray:
    """U (T,): how little each frame's segment is expected by its neighbours; NaN unlabelled."""
    C = statistics.num_classes
    num_frames = segments[-1].stop if segments else 0
    result_T = np.full(num_frames, np.nan)
    names = [UNLABELLED, *(s.label for s in segments), UNLABELLED]
    for segment, before, after in zip(segments, names, names[2:], strict=False):
        if segment.label == UNLABELLED:
            continue
        p = C if before == UNLABELLED else before
        n = C + 1 if after == UNLABELLED else after
        into, out = statistics.bigram_CC[p, segment.label], statistics.bigram_CC[segment.label, n]
        result_T[segment.start : segment.stop] = -(into + out) / 2
    return result_T
