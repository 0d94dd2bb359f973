"""Swapped steps in five real datasets: the score `order`, flags of swaps, and what came before.

.venv/bin/python benchmarks/order.py --trajectories TRAJ [--half choosing]

edit_trajectories.py writes the trajectories first. Half of the videos have two neighbouring steps
swapped, background among them, in the labels that give the statistics, too. AUC / average precision
of frames and average precision of swaps as findings, mean of three planting seeds, on the half of
the people on which nothing was chosen. Then the weights of swaps, fitted on the other half: without
each dataset, by which the table's "fitted elsewhere" is told, and with all of them, as shipped.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from edit_settings import (
    AuditedVideo,
    EmissionCache,
    Trajectories,
    audited,
    load,
    planted_labels,
    planting_of,
)
from findings_report import markdown
from findings_runs import wrong_frames
from real_data import DATASETS
from sklearn.metrics import average_precision_score, roc_auc_score

from csl_dist.data.mistakes import PlantedKind
from csl_dist.flag.edits.evidence import COLUMNS
from csl_dist.flag.edits.findings import Finding, frame_log_odds, is_right_fix, resolved
from csl_dist.flag.edits.fitting import FIT_MIX
from csl_dist.flag.edits.labelled import LabelledVideo
from csl_dist.flag.edits.order import order_scores
from csl_dist.flag.edits.probability import SHIPPED, EditModel, fit_edit_model, shipped_model
from csl_dist.types import BoolArray, EditKind, FloatArray

BY_BIGRAM = shipped_model(-8.88, bigram=0.489, log_size=1.087)
"""Of RESEARCH.md."""
FITTED = ("bigram", "trigram", "precedence")
DRAW = 0.001
SEEDS = (0, 1, 2)


class SwappedDataset:
    """A dataset with swaps in half of its videos, once for each planting seed."""

    def __init__(self, data: Trajectories):
        self.name = data.name
        self._data = data
        cache = EmissionCache(data, [1.0] * len(data.families))
        planting = planting_of(data, 0.1, kinds=FIT_MIX)
        self._planted = [planted_labels(data, PlantedKind.SWAP, s, planting) for s in SEEDS]
        self._audited = [audited(data, planted, cache) for planted in self._planted]

    def videos(self, seed: int, *, reporting: bool) -> list[AuditedVideo]:
        """Of one half."""
        wanted = self._data.reporting()
        return [v for v in self._audited[seed] if (v.id in wanted) == reporting]

    def order(self, seed: int) -> dict[str, FloatArray]:
        return order_scores(
            [
                LabelledVideo(
                    id=v, group=self._data.groups[v], labels_T=row.labels_T, fps=self._data.fps
                )
                for v, row in self._planted[seed].items()
            ]
        )


def swaps(video: AuditedVideo) -> list[int]:
    return [i for i, edit in enumerate(video.edits) if edit.kind is EditKind.SWAP]


def fitted(datasets: Sequence[SwappedDataset], *, reporting: bool) -> EditModel:
    """Weights of FITTED, drawn to none, from swaps that are, or are not, the right fix."""
    rows, right = [], []
    for data in datasets:
        for seed in SEEDS:
            for video in data.videos(seed, reporting=reporting):
                for found in swap_findings(video, BY_BIGRAM):
                    rows.append(np.where(np.isin(COLUMNS, FITTED), found.evidence_K, 0.0))
                    right.append(is_right(found, video))
    return fit_edit_model(np.array(rows), np.array(right), shipped_model(0.0), draw=DRAW)


def swap_findings(video: AuditedVideo, model: EditModel) -> list[Finding]:
    """Swaps of a video, of two that overlap the surer."""
    rows = swaps(video)
    edits, evidence_NK = [video.edits[i] for i in rows], video.evidence_NK[rows]
    odds_N = model.log_odds(evidence_NK)
    # The tolerance is one of boundaries, which swaps are not.
    return resolved(edits, evidence_NK, odds_N, fps=1.0, tolerance_seconds=0.0)


def is_right(found: Finding, video: AuditedVideo) -> bool:
    return any(is_right_fix(found.edit, error) for error in video.errors)


def frames_by(videos: Sequence[AuditedVideo], model: EditModel) -> list[FloatArray]:
    """Each frame's best swap."""
    result = []
    for video in videos:
        rows = swaps(video)
        edits = [video.edits[i] for i in rows]
        odds_N = model.log_odds(video.evidence_NK[rows])
        result.append(frame_log_odds(edits, odds_N, len(video.labels_T)))
    return result


def findings_by(videos: Sequence[AuditedVideo], model: EditModel) -> float:
    """Average precision of swaps as findings, percent; a swap that no finding shows counts."""
    found = [
        (one.log_odds, is_right(one, video))
        for video in videos
        for one in swap_findings(video, model)
    ]
    log_odds, right = zip(*found, strict=True)
    found_share = sum(right) / sum(len(video.errors) for video in videos)
    return 100 * found_share * float(average_precision_score(right, log_odds))


def table(datasets: Sequence[SwappedDataset], *, reporting: bool) -> Iterator[list[str]]:
    """A row a dataset: frames by four scores, findings by two models."""
    yield ["", "order", "best swap", "by bigram", "surprise", "swaps", "fitted elsewhere", "bigram"]
    for data in datasets:
        others = [other for other in datasets if other is not data]
        elsewhere = fitted(others, reporting=not reporting) if others else SHIPPED[EditKind.SWAP]
        frames, findings = [], []
        for seed in SEEDS:
            order, videos = data.order(seed), data.videos(seed, reporting=reporting)
            views = (
                [order[v.id] for v in videos],
                frames_by(videos, SHIPPED[EditKind.SWAP]),
                frames_by(videos, BY_BIGRAM),
                [v.surprise_T for v in videos],
            )
            frames.append([_frame_figures(scores, videos) for scores in views])
            models = (SHIPPED[EditKind.SWAP], elsewhere, BY_BIGRAM)
            findings.append([findings_by(videos, model) for model in models])
        cells = (f"{auc:.1f} / {ap:.1f}" for auc, ap in np.mean(frames, axis=0))
        yield [data.name, *cells, *(f"{ap:.1f}" for ap in np.mean(findings, axis=0))]


def _frame_figures(
    scores: Sequence[FloatArray], videos: Sequence[AuditedVideo]
) -> tuple[float, float]:
    """AUC and average precision over labelled frames, percent."""
    known: list[BoolArray] = [v.labels_T >= 0 for v in videos]
    wrong = [wrong_frames(v.errors, len(v.labels_T)) for v in videos]
    score = np.concatenate([s[k] for s, k in zip(scores, known, strict=True)])
    truth = np.concatenate([w[k] for w, k in zip(wrong, known, strict=True)])
    return 100 * roc_auc_score(truth, score), 100 * average_precision_score(truth, score)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trajectories", type=Path, required=True)
    parser.add_argument("--datasets", nargs="+", default=DATASETS, choices=DATASETS)
    parser.add_argument("--half", choices=("choosing", "reporting"), default="reporting")
    given = parser.parse_args()
    datasets = [SwappedDataset(load(given.trajectories, name)) for name in given.datasets]
    model = fitted(datasets, reporting=False)
    weights = zip(COLUMNS, model.weights_K, strict=True)
    shown = ", ".join(f"{name} {weight:.3f}" for name, weight in weights if name in FITTED)
    print(f"weights of swaps, choosing half: offset {model.offset:.2f}, {shown}", flush=True)
    print(markdown(list(table(datasets, reporting=given.half == "reporting"))))


if __name__ == "__main__":
    main()
