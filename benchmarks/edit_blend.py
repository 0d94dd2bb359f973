"""How much of an edit's weights is fitted in the audit: AP of frames in one list, by share.

.venv/bin/python benchmarks/edit_blend.py --trajectories TRAJ [--half reporting]

A model of a kind of edit lies between the shipped one (share 0) and the one that is fitted on
errors planted in the audit (share 1). Two planting seeds; swaps are left out, as order is a list of
its own.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from edit_audit import fitting_videos, planted_on_top
from edit_settings import (
    AuditedVideo,
    EmissionCache,
    Trajectories,
    audited,
    load,
    planted_labels,
    planting_of,
    statistics_without,
    temperatures_of,
)
from findings_report import markdown
from findings_runs import OTHER_KINDS, STUDY_KINDS, wrong_frames
from real_data import DATASETS
from sklearn.metrics import average_precision_score

from csl_dist.data.mistakes import PlantedKind
from csl_dist.flag.edits.findings import frame_log_odds, is_swap, log_odds_of
from csl_dist.flag.edits.fitting import FIT_MIX, FIT_SEED, MAX_VIDEOS, FixExamples
from csl_dist.flag.edits.lists import LIST_OF, ListName
from csl_dist.flag.edits.probability import DRAW, SHIPPED, EditModel, fit_edit_model
from csl_dist.types import EditKind

KINDS = [kind for kind in (*STUDY_KINDS, *OTHER_KINDS) if kind is not PlantedKind.SWAP]
SEEDS = (0, 1)
SHARES = ((0.5, 0.5), (0.5, 0.0), (0.25, 0.0), (0.0, 0.0))
"""Of weights of steps, and of boundaries, that are fitted."""

Models = dict[EditKind, EditModel]


def blends(own: Models) -> Iterator[Models]:
    for steps, boundaries in SHARES:
        models = {}
        for kind, model in own.items():
            share, shipped = steps if LIST_OF[kind] is ListName.STEPS else boundaries, SHIPPED[kind]
            models[kind] = EditModel(
                offset=shipped.offset + share * (model.offset - shipped.offset),
                weights_K=shipped.weights_K + share * (model.weights_K - shipped.weights_K),
            )
        yield models


def audits(
    data: Trajectories, kind: PlantedKind, seed: int, caches: dict[tuple[float, ...], EmissionCache]
) -> tuple[list[AuditedVideo], Models]:
    """Videos with errors of a kind, and models that are fitted alone."""
    planted = planted_labels(data, kind, seed, planting_of(data, 0.1, kinds=FIT_MIX))
    labels = {video: row.labels_T for video, row in planted.items()}
    temperatures = tuple(temperatures_of(data, labels))
    cache = caches.setdefault(temperatures, EmissionCache(data, temperatures))
    statistics = statistics_without(data, labels)
    examples = FixExamples()
    for k in range(2 if len(data.ids) < MAX_VIDEOS else 1):
        on_top = planted_on_top(data, planted, FIT_MIX, FIT_SEED + k)
        chosen = fitting_videos(data, FIT_SEED + k)
        for video in audited(data, on_top, cache, statistics=statistics, videos=chosen):
            examples.add(video.edits, video.evidence_NK, video.errors)
    evidence, right = examples.arrays()
    own = {
        edit: fit_edit_model(evidence[edit], right[edit], SHIPPED[edit], draw=DRAW)
        for edit in evidence
    }
    return audited(data, planted, cache, statistics=statistics), own


def frame_ap(videos: list[AuditedVideo], models: Models) -> float:
    """Average precision of labelled frames, percent."""
    score, truth = [], []
    for video in videos:
        known_T = video.labels_T >= 0
        rows = [i for i, edit in enumerate(video.edits) if not is_swap(edit)]
        odds_N = log_odds_of(video.edits, video.evidence_NK, models)[rows]
        frames_T = frame_log_odds([video.edits[i] for i in rows], odds_N, len(known_T))
        score.append(frames_T[known_T])
        truth.append(wrong_frames(video.errors, len(known_T))[known_T])
    return 100 * float(average_precision_score(np.concatenate(truth), np.concatenate(score)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trajectories", type=Path, required=True)
    parser.add_argument("--datasets", nargs="+", default=DATASETS, choices=DATASETS)
    parser.add_argument("--half", choices=("choosing", "reporting"), default="choosing")
    given = parser.parse_args()
    figures_DKSM = np.zeros((len(given.datasets), len(KINDS), len(SEEDS), len(SHARES)))
    for d, name in enumerate(given.datasets):
        data = load(given.trajectories, name)
        caches: dict[tuple[float, ...], EmissionCache] = {}
        for k, kind in enumerate(KINDS):
            for seed in SEEDS:
                videos, own = audits(data, kind, seed, caches)
                half = [
                    v for v in videos if (v.id in data.reporting()) == (given.half == "reporting")
                ]
                figures_DKSM[d, k, seed] = [frame_ap(half, models) for models in blends(own)]
    lines = [["steps", "boundaries", *KINDS, "mean", *given.datasets]]
    for m, shares in enumerate(SHARES):
        own_DKS = figures_DKSM[..., m]
        values = [*own_DKS.mean(axis=(0, 2)), own_DKS.mean(), *own_DKS.mean(axis=(1, 2))]
        lines.append([*map(str, shares), *(f"{value:.1f}" for value in values)])
    print(markdown(lines))


if __name__ == "__main__":
    main()
