"""One audit as the product would do it: plant errors into the labels as they are, fit, find.

The labels that are audited hold errors already. What is planted on top of them serves to fit;
nothing here looks at the truth, which is only compared with the findings in findings.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from edit_settings import (
    AuditedVideo,
    EmissionCache,
    PlantedRow,
    Trajectories,
    audited,
    planting_of,
    statistics_without,
    temperatures_of,
)

from csl_dist.data.mistakes import PlantedKind, plant_mix
from csl_dist.flag.edit_findings import with_doubt
from csl_dist.flag.edits.findings import Finding, log_odds_of, resolved
from csl_dist.flag.edits.fitting import FIT_MIX, FIT_SEED, MAX_VIDEOS, FixExamples
from csl_dist.flag.edits.lists import ListName
from csl_dist.flag.edits.probability import EditModel
from csl_dist.flag.edits.surprise import moves_by_surprise, surprise_of
from csl_dist.types import EditKind, FloatArray

TOLERANCE_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """The videos as audited, the fitted models, log-odds of all candidates, and the findings."""

    videos: list[AuditedVideo]
    models: dict[EditKind, EditModel]
    log_odds: list[FloatArray]
    findings: list[list[Finding]]
    """Surprise is part of the log-odds of steps."""
    moves: dict[str, float]
    """What surprise added to these, by video."""


def tolerance_seconds(data: Trajectories) -> float:
    """Two seconds, or less than a frame where frames are further apart."""
    return min(TOLERANCE_SECONDS, 0.9 / data.fps) if data.fps < 0.5 else TOLERANCE_SECONDS


def run_audit(
    data: Trajectories,
    planted: Mapping[str, PlantedRow],
    caches: dict[tuple[float, ...], EmissionCache],
    *,
    mix: Mapping[PlantedKind, float] = FIT_MIX,
) -> Audit:
    """Fits on errors planted on top of the labels, and finds what is wrong in the labels."""
    labels = {video: row.labels_T for video, row in planted.items()}
    temperatures = tuple(temperatures_of(data, labels))
    cache = caches.setdefault(temperatures, EmissionCache(data, temperatures))
    statistics = statistics_without(data, labels)
    videos = audited(data, planted, cache, statistics=statistics)
    fitted_on = [
        video
        for k in range(2 if len(data.ids) < MAX_VIDEOS else 1)
        for video in audited(
            data,
            planted_on_top(data, planted, mix, FIT_SEED + k),
            cache,
            statistics=statistics,
            videos=fitting_videos(data, FIT_SEED + k),
        )
    ]
    models = fit_models(fitted_on)
    tolerance = tolerance_seconds(data)
    log_odds = [log_odds_of(v.edits, v.evidence_NK, models) for v in videos]
    found = [
        [
            with_doubt(f, statistics[v.id])
            for f in resolved(
                v.edits, v.evidence_NK, odds, fps=data.fps, tolerance_seconds=tolerance
            )
        ]
        for v, odds in zip(videos, log_odds, strict=True)
    ]
    surprises = {v.id: surprise_of(v.emission.logp_TC, v.labels_T) for v in videos}
    moves = moves_by_surprise(surprises, data.groups)
    moved = [
        [
            replace(f, log_odds=f.log_odds + moves[v.id]) if f.list_name is ListName.STEPS else f
            for f in own
        ]
        for v, own in zip(videos, found, strict=True)
    ]
    return Audit(videos=videos, models=models, log_odds=log_odds, findings=moved, moves=moves)


def fitting_videos(data: Trajectories, seed: int) -> list[str]:
    """At most MAX_VIDEOS, drawn by (seed, id)."""

    def drawn(video: str) -> float:
        return float(np.random.default_rng([seed, 8, *video.encode()]).random())

    return sorted(data.ids, key=drawn)[:MAX_VIDEOS]


def planted_on_top(
    data: Trajectories,
    planted: Mapping[str, PlantedRow],
    mix: Mapping[PlantedKind, float],
    seed: int,
) -> dict[str, PlantedRow]:
    """The audited labels with one more kind of error in every video that has room for it."""
    labels = {video: row.labels_T for video, row in planted.items()}
    planting = planting_of(data, 0.1, kinds=mix, labels=labels)
    result = {}
    for video, row in planted.items():
        on_top = plant_mix(row.labels_T, planting, video=video, seed=seed)
        if on_top is None:
            result[video] = row._replace(errors=())
            continue
        moved_T = on_top.order_T if row.moved_T is None else row.moved_T[on_top.order_T]
        result[video] = row._replace(
            labels_T=on_top.labels_T, errors=on_top.errors, moved_T=moved_T
        )
    return result


def fit_models(fitted_on: Sequence[AuditedVideo]) -> dict[EditKind, EditModel]:
    """Weights of every kind of edit from candidates that are, or are not, the right fix."""
    examples = FixExamples()
    for video in fitted_on:
        examples.add(video.edits, video.evidence_NK, video.errors)
    return examples.models()
