"""Findings as edits against all rivals, on five real datasets with planted errors.

.venv/bin/python benchmarks/findings.py run --trajectories TRAJ --work RUNS
.venv/bin/python benchmarks/findings.py report --work RUNS
.venv/bin/python benchmarks/findings.py files --trajectories TRAJ

`run` audits every dataset under every setting, going on from what is there; edit_trajectories.py
writes the trajectories first. Half of the videos of a setting have errors. `report` prints tables
of every second person's videos, on which nothing was chosen (`--half choosing` prints the others',
`--half both` all). Constants of the calibration are fitted on the other four datasets, on the half
that is not told about; of both halves, on all their videos.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from edit_settings import EmissionCache, load
from findings_report import Report, markdown
from findings_runs import run_all
from promises_report import Promises
from real_data import DATASETS
from sklearn.metrics import average_precision_score, roc_auc_score

from csl_dist.data.mistakes import labels_for_length
from csl_dist.flag.edits.files import best_files, file_gains
from csl_dist.flag.edits.lists import ListName


def files_table(trajectories: Path, datasets: list[str]) -> str:
    """Two pairs of label files changed places: is the gain by another file highest for these?"""
    lines: list[list[Any]] = [["", "AUC of videos", "AP", "right file", "named, no pair"]]
    for name in datasets:
        data = load(trajectories, name)
        logp = {v: EmissionCache(data, [1.0] * 3).of(v, None, None).logp_TC for v in data.ids}
        values = []
        for seed in range(5):
            lengths = {v: len(data.labels[v]) for v in data.ids}
            swapped = mixed_up_files(lengths, num_pairs=2, seed=seed)
            labels = {
                v: labels_for_length(data.labels[swapped.get(v, v)], lengths[v]) for v in data.ids
            }
            gains = {v: file_gains(v, logp[v], labels) for v in data.ids}
            matches = best_files(gains)
            wrong = [v in swapped for v in matches]
            gain = [gains[v][m.other] for v, m in matches.items()]
            named = [m for m in matches.values() if m.takes_back]
            values.append(
                [
                    100 * roc_auc_score(wrong, gain),
                    100 * average_precision_score(wrong, gain),
                    100
                    * np.mean([matches[v].other == swapped[v] for v in swapped if v in matches]),
                    sum(m.video not in swapped for m in named),
                ]
            )
        lines.append([name, *(f"{x:.1f}" for x in np.mean(values, axis=0))])
    return markdown(lines)


def mixed_up_files(lengths: Mapping[str, int], *, num_pairs: int, seed: int) -> dict[str, str]:
    """Videos that get another one's label file: pairs of like length, each video in one at most.

    Labels of a longer file are cut, those of a shorter one end early; see `labels_for_length`.
    """
    rng = np.random.default_rng(seed)
    left = set(lengths)
    taken: dict[str, str] = {}
    for video in rng.permutation(sorted(lengths)).tolist():
        if len(taken) == 2 * num_pairs or len(left) < 2:
            break
        if video not in left:
            continue
        left.remove(video)
        other = min(sorted(left), key=lambda v: abs(lengths[v] - lengths[video]))
        left.remove(other)
        taken |= {video: other, other: video}
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("run", "report", "files"))
    parser.add_argument("--trajectories", type=Path)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--half", choices=("reporting", "choosing", "both"), default="reporting")
    parser.add_argument("--datasets", nargs="+", default=DATASETS, choices=DATASETS)
    arguments = parser.parse_args()
    if arguments.command == "run":
        run_all(arguments.trajectories, arguments.work, arguments.datasets)
        return
    if arguments.command == "files":
        print(files_table(arguments.trajectories, arguments.datasets))
        return
    report = Report(arguments.work, arguments.half)
    print(f"\nFrames, AUC / AP, {arguments.half} half\n\n{report.frame_table()}")
    for dataset in report.datasets:
        print(f"\n{dataset}\n\n{report.frame_table(dataset=dataset)}")
    print(f"\nBehind a rival by more than 2 points\n\n{report.behind_table()}")
    print(f"\nPrecision in the worst frames\n\n{report.budget_table()}")
    print(f"\nFindings, %\n\n{report.findings_report()}")
    print(f"\nFindings beside rivals, AP in %\n\n{report.rival_findings()}")
    print(f"\nFalse findings\n\n{report.false_flags()}")
    print(f"\nUnchanged labels beside a second opinion\n\n{report.second_opinions()}")
    promises = Promises(report)
    print(f"\nConstants\n\n{promises.shipped_curves()}")
    print(f"\nPromised and true, all audits\n\n{promises.pooled_table()}")
    for name in ListName:
        print(f"\nIntervals that are promised, {name}\n\n{promises.interval_table(name)}")
        print(f"\nReliability, {name}\n\n{promises.reliability_table(name)}")


if __name__ == "__main__":
    main()
