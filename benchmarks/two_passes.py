"""Does a second training without the spans that the first audit doubts find more?

    python benchmarks/two_passes.py --data ../shared/data [--datasets knot_tying gtea]

Errors are planted in all videos, and models are trained on labels with errors in them. The second
pass trains anew with every step that is likelier wrong than right taken for unlabelled. Both passes
audit the same labels. AUC / average precision of frames by suspicion, and the share of wrong frames
among those left out of the second training.
"""

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from edit_audit import Audit, run_audit
from edit_settings import PlantedRow, Trajectories, planted_labels, planting_of
from edit_trajectories import (
    EVERY,
    FAMILIES,
    LoadedVideo,
    fold_of_groups,
    load_dataset,
    predict,
    trained_models,
)
from findings_runs import our_scores, wrong_frames
from real_data import DATASETS, fps
from sklearn.metrics import average_precision_score, roc_auc_score

from csl_dist.flag.edits.fitting import FIT_MIX
from csl_dist.flag.edits.lists import ListName
from csl_dist.flag.edits.probability import SHIPPED_CURVES
from csl_dist.training.models import ModelSpec
from csl_dist.types import UNLABELLED, IntArray

RATES = (0.05, 0.1, 0.2)
NUM_FOLDS = 3


def trajectories(
    name: str,
    videos: list[LoadedVideo],
    num_classes: int,
    labels: Mapping[str, IntArray],
    left_out: dict[str, npt.NDArray[np.bool_]],
) -> Trajectories:
    """Held-out predictions of models trained on labels, but for frames that are left out."""
    seen = [replace(v, labels_T=np.where(left_out[v.id], UNLABELLED, labels[v.id])) for v in videos]
    folds = fold_of_groups([v.group for v in videos], NUM_FOLDS)
    arrays: dict[str, npt.NDArray[np.float16]] = {}
    for family, arguments in FAMILIES.items():
        spec = ModelSpec(
            name=family,
            arguments=arguments,
            num_features=videos[0].features_TD.shape[1],
            num_classes=num_classes,
        )
        kept: dict[str, list[npt.NDArray[np.float16]]] = {}
        for fold in range(NUM_FOLDS):
            train = [v for v in seen if folds[v.group] != fold]
            for model in trained_models(train, spec, batch=1, seed=fold):
                for v in seen:
                    if folds[v.group] == fold:
                        kept.setdefault(v.id, []).append(predict(model, v.features_TD))
        arrays |= {f"logp__{family}__{video}": np.stack(rows) for video, rows in kept.items()}
    return Trajectories(
        name=name,
        ids=tuple(v.id for v in videos),
        groups={v.id: v.group for v in videos},
        fps=fps(name) / EVERY.get(name, 1),
        num_classes=num_classes,
        families=tuple(FAMILIES),
        labels={v.id: v.labels_T for v in videos},
        arrays=arrays,
    )


def doubted(audit: Audit) -> dict[str, npt.NDArray[np.bool_]]:
    """Frames (T,) of steps that are likelier wrong than right, by video."""
    steps = [[f for f in own if f.list_name is ListName.STEPS] for own in audit.findings]
    every_N = np.array([f.log_odds for own in steps for f in own])
    curve = SHIPPED_CURVES[ListName.STEPS]
    excess = curve.excess(every_N)
    result = {}
    for video, own in zip(audit.videos, steps, strict=True):
        mask_T = np.zeros(len(video.labels_T), dtype=bool)
        for f in own:
            if curve.probability(np.array([f.log_odds]), excess=excess)[0] >= 0.5:
                mask_T[f.edit.start : f.edit.stop] = True
        result[video.id] = mask_T
    return result


def figures(data: Trajectories, audit: Audit) -> tuple[float, float]:
    """AUC and average precision of frames, in percent."""
    scores = our_scores(data, audit)["ours, one list"]
    known = [v.labels_T >= 0 for v in audit.videos]
    wrong = [wrong_frames(v.errors, len(v.labels_T)) for v in audit.videos]
    wrong_N = np.concatenate([w[k] for w, k in zip(wrong, known, strict=True)])
    score_N = np.concatenate([s[k] for s, k in zip(scores, known, strict=True)])
    return 100 * roc_auc_score(wrong_N, score_N), 100 * average_precision_score(wrong_N, score_N)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--datasets", nargs="+", default=["knot_tying", "gtea"], choices=DATASETS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print("| dataset | wrong frames | one pass | two passes | left out | of these wrong |")
    print("|---|---|---|---|---|---|")
    for name in arguments.datasets:
        videos, classes = load_dataset(name, arguments.data)
        nothing = {v.id: np.zeros(len(v.labels_T), dtype=bool) for v in videos}
        clean = {v.id: v.labels_T for v in videos}
        first = trajectories(name, videos, len(classes), clean, nothing)
        for rate in RATES:
            planting = planting_of(first, rate, kinds=FIT_MIX)
            planted = planted_labels(first, None, 0, planting, share=1.0)
            labels = {video: row.labels_T for video, row in planted.items()}
            cells, left_out = [], nothing
            for _ in range(2):
                data = trajectories(name, videos, len(classes), labels, left_out)
                audit = run_audit(data, planted, {})
                cells.append("{:.1f} / {:.1f}".format(*figures(data, audit)))
                left_out = doubted(audit) if left_out is nothing else left_out
            print("|", name, "|", *_shares(planted, left_out, cells), flush=True)


def _shares(
    planted: dict[str, PlantedRow],
    left_out: dict[str, npt.NDArray[np.bool_]],
    cells: list[str],
) -> list[str]:
    wrong = np.concatenate([wrong_frames(r.errors, len(r.labels_T)) for r in planted.values()])
    out = np.concatenate([left_out[video] for video in planted])
    right = f"{wrong[out].mean():.0%}" if out.any() else "-"
    return [f"{wrong.mean():.0%} | {' | '.join(cells)} | {out.mean():.0%} | {right} |"]


if __name__ == "__main__":
    main()
