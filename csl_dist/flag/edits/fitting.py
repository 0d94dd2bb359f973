"""Fitting: errors planted on top of the labels as they are, to learn what their fixes look like.

The labels hold errors already; nothing here looks for them. At most MAX_VIDEOS are read, one at a
time, twice: for temperatures and confusions of the classes, and for candidates with their evidence.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from csl_dist.data.mistakes import PlantedKind, PlantedSpan, Planting, plant_mix, untouched
from csl_dist.data.segments import segments_of
from csl_dist.flag.edits.candidates import candidate_edits
from csl_dist.flag.edits.edit import Edit
from csl_dist.flag.edits.emission import (
    TEMPERATURES,
    Emission,
    LateView,
    Preference,
    emission_of,
    margin,
    permuted,
    temperature_likelihoods,
)
from csl_dist.flag.edits.evidence import evidence_rows
from csl_dist.flag.edits.findings import is_right_fix
from csl_dist.flag.edits.labelled import LabelledVideo, OtherLabels
from csl_dist.flag.edits.probability import EditModel, fitted_models
from csl_dist.flag.edits.statistics import Statistics, usual_log_seconds
from csl_dist.types import UNLABELLED, BoolArray, EditKind, FloatArray, IntArray

FIT_MIX: dict[PlantedKind, float] = {
    PlantedKind.MISLABEL: 1,
    PlantedKind.RENAME: 1,
    PlantedKind.CONFUSABLE: 1,
    PlantedKind.PLAUSIBLE: 1,
    PlantedKind.OCCURRENCE: 0.5,
    PlantedKind.INSERT: 1,
    PlantedKind.MERGE: 1,
    PlantedKind.MISSING: 1,
    PlantedKind.SHIFT: 2,
    PlantedKind.SWAP: 1,
}
FIT_SEED = 1_000
MAX_VIDEOS = 40
"""Videos that errors are planted in for fitting; more would tell little more."""
SPAN_SHARES = (0.25, 1.0)
"""Shortest and longest planted span, of the usual segment."""

ReadFamilies = Callable[[str], Sequence[LateView]]
"""From a video's id to what each family says of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt:
    """What was learnt: a temperature for each family, and a model for each kind of edit."""

    temperatures: tuple[float, ...]
    models: dict[EditKind, EditModel]
    preference: Preference
    num_videos: int
    num_errors: int
    """Planted."""


class FixExamples:
    """Candidates of planted videos: their evidence, and which are the right fix; by kind."""

    def __init__(self) -> None:
        self._evidence: dict[EditKind, list[FloatArray]] = {}
        self._right: dict[EditKind, list[bool]] = {}

    def add(
        self, edits: Sequence[Edit], evidence_NK: FloatArray, errors: Sequence[PlantedSpan]
    ) -> None:
        for edit, row in zip(edits, evidence_NK, strict=True):
            self._evidence.setdefault(edit.kind, []).append(row)
            self._right.setdefault(edit.kind, []).append(
                any(is_right_fix(edit, error) for error in errors)
            )

    def arrays(self) -> tuple[dict[EditKind, FloatArray], dict[EditKind, BoolArray]]:
        """Evidence (N, K) and which are right (N,), by kind."""
        return (
            {kind: np.array(rows) for kind, rows in self._evidence.items()},
            {kind: np.array(values) for kind, values in self._right.items()},
        )

    def models(self) -> dict[EditKind, EditModel]:
        """Weights of every kind of edit."""
        return fitted_models(*self.arrays())


def learnt_from_planted(
    videos: Sequence[LabelledVideo],
    families_of: ReadFamilies,
    others: OtherLabels,
    *,
    num_classes: int,
    mix: Mapping[PlantedKind, float] = FIT_MIX,
) -> Learnt:
    """Plants errors in videos whose labels are taken as they are, and fits on them."""
    chosen = fitting_videos(videos, FIT_SEED)
    temperatures, confusion_CC = _read_once(chosen, families_of, num_classes)
    planting = _planting(others.everyone(), confusion_CC, mix)
    examples, num_errors, margins = FixExamples(), 0, []
    for video in chosen:
        emission = emission_of(families_of(video.id), temperatures)
        known_T = video.labels_T != UNLABELLED
        margins.append(margin(emission.logp_TC, video.labels_T)[known_T])
        for k in range(2 if len(videos) < MAX_VIDEOS else 1):
            planted = plant_mix(
                video.labels_T, replace(planting, fps=video.fps), video=video.id, seed=FIT_SEED + k
            )
            if planted is None:  # no room for an error: all its candidates are wrong
                planted = untouched(video.labels_T)
            edits, evidence_NK = weighed_edits(
                planted.labels_T,
                permuted(emission, planted.order_T),
                others.about(video.id),
                fps=video.fps,
            )
            examples.add(edits, evidence_NK, planted.errors)
            num_errors += len(planted.errors)
    return Learnt(
        temperatures=temperatures,
        models=examples.models(),
        preference=Preference.over(margins),
        num_videos=len(chosen),
        num_errors=num_errors,
    )


def weighed_edits(
    labels_T: IntArray, emission: Emission, statistics: Statistics, *, fps: float
) -> tuple[list[Edit], FloatArray]:
    """All candidates of a video, and their evidence (N, K)."""
    segments = segments_of(labels_T)
    edits = candidate_edits(segments, emission, statistics, fps=fps)
    return edits, evidence_rows(edits, segments, emission, statistics, fps=fps)


def fitting_videos(videos: Sequence[LabelledVideo], seed: int) -> list[LabelledVideo]:
    """At most MAX_VIDEOS, drawn by (seed, id)."""

    def drawn(video: LabelledVideo) -> float:
        return float(np.random.default_rng([seed, 8, *video.id.encode()]).random())

    return sorted(videos, key=drawn)[:MAX_VIDEOS]


def _read_once(
    videos: Sequence[LabelledVideo], families_of: ReadFamilies, num_classes: int
) -> tuple[tuple[float, ...], FloatArray]:
    """The best temperature of each family, and what models see where a class is labelled (C, C)."""
    likelihoods: list[FloatArray] = []
    confusion_CC = np.zeros((num_classes, num_classes))
    for video in videos:
        means = [family.mean_TC for family in families_of(video.id)]
        likelihoods.append(
            np.stack([temperature_likelihoods(logp_TC, video.labels_T) for logp_TC in means])
        )
        probability_TC = np.mean([np.exp(logp_TC) for logp_TC in means], axis=0)
        known_T = video.labels_T != UNLABELLED
        np.add.at(confusion_CC, video.labels_T[known_T], probability_TC[known_T])
    np.fill_diagonal(confusion_CC, 0.0)
    best_F = np.sum(likelihoods, axis=0).argmax(axis=1)
    return tuple(TEMPERATURES[i] for i in best_F), confusion_CC


def _planting(
    statistics: Statistics, confusion_CC: FloatArray, mix: Mapping[PlantedKind, float]
) -> Planting:
    """How errors are planted; `fps` is set for each video."""
    C = statistics.num_classes
    usual_seconds = float(np.exp(usual_log_seconds(statistics)))
    shortest, longest = SPAN_SHARES
    return Planting(
        num_classes=C,
        fps=1.0,
        span_seconds=(shortest * usual_seconds, longest * usual_seconds),
        kinds=mix,
        confusion_CC=confusion_CC,
        bigram_CC=statistics.bigram_CC[:C, :C],
    )
