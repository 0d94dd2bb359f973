"""Swapped steps in five real datasets: the score `order` beside what it took the place of.

.venv/bin/python benchmarks/order.py --trajectories TRAJ [--datasets gtea]

edit_trajectories.py writes the trajectories first. Half of the videos have two neighbouring steps
swapped, background among them, in the labels that give the statistics, too. AUC / average precision
of frames, mean of three planting seeds, on the half of the people on which nothing was chosen.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from edit_settings import EmissionCache, audited, load, planted_labels, planting_of
from findings_report import markdown
from findings_runs import wrong_frames
from real_data import DATASETS
from sklearn.metrics import average_precision_score, roc_auc_score

from csl_dist.data.mistakes import PlantedKind
from csl_dist.flag.edits.candidates import EditKind
from csl_dist.flag.edits.findings import frame_log_odds, log_odds_of
from csl_dist.flag.edits.labelled import LabelledVideo
from csl_dist.flag.edits.order import order_scores
from csl_dist.flag.edits.probability import SHIPPED
from csl_dist.flag.edits.rehearsal import FIT_MIX
from csl_dist.types import FloatArray


def order_table(trajectories: Path, datasets: list[str]) -> str:
    """A row a dataset, a column a score."""
    lines: list[list[Any]] = [["", "order", "best swap by bigram", "surprise"]]
    for name in datasets:
        data = load(trajectories, name)
        cache, figures = EmissionCache(data, [1.0] * len(data.families)), []
        for seed in (0, 1, 2):
            planting = planting_of(data, 0.1, kinds=FIT_MIX)
            planted = planted_labels(data, PlantedKind.SWAP, seed, planting)
            labelled = [
                LabelledVideo(id=v, group=data.groups[v], labels_T=row.labels_T, fps=data.fps)
                for v, row in planted.items()
            ]
            order = order_scores(labelled)
            videos = [v for v in audited(data, planted, cache) if v.id in data.reporting()]
            known = [v.labels_T >= 0 for v in videos]
            wrong = [wrong_frames(v.errors, len(v.labels_T)) for v in videos]
            views = (
                [order[v.id] for v in videos],
                [_swap_log_odds(v) for v in videos],
                [v.surprise_T for v in videos],
            )
            figures.append([_frame_figures(scores, wrong, known) for scores in views])
        cells = (f"{auc:.1f} / {ap:.1f}" for auc, ap in np.mean(figures, axis=0))
        lines.append([name, *cells])
    return markdown(lines)


def _swap_log_odds(video: Any) -> FloatArray:
    rows = [i for i, edit in enumerate(video.edits) if edit.kind is EditKind.SWAP]
    odds_N = log_odds_of([video.edits[i] for i in rows], video.evidence_NK[rows], SHIPPED)
    return frame_log_odds([video.edits[i] for i in rows], odds_N, len(video.labels_T))


def _frame_figures(
    scores: list[FloatArray], wrong: list[Any], known: list[Any]
) -> tuple[float, float]:
    """AUC and average precision over labelled frames, percent."""
    score = np.concatenate([s[k] for s, k in zip(scores, known, strict=True)])
    truth = np.concatenate([w[k] for w, k in zip(wrong, known, strict=True)])
    return 100 * roc_auc_score(truth, score), 100 * average_precision_score(truth, score)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trajectories", type=Path, required=True)
    parser.add_argument("--datasets", nargs="+", default=DATASETS, choices=DATASETS)
    arguments = parser.parse_args()
    print(order_table(arguments.trajectories, arguments.datasets))


if __name__ == "__main__":
    main()
