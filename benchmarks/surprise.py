"""How much findings should count by how well models know the person: the choice of a weight.

.venv/bin/python benchmarks/surprise.py --work RUNS [--half choosing|reporting|both]

From the audits that `findings.py run` stored, with other weights of the surprise and another
correction of the curve of steps. Constants are fitted on the other four datasets, as `findings.py
report` does. Of the ten surest findings of steps: by how much promised and true precision
differ in the mean, and in how many settings by at most .1; of the forty surest the log-loss; of
intervals, how many hold; of flags, how many there are in an audit and the share of right ones.
"""

import argparse
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
from findings_report import Report, markdown
from promises_report import FEW_ERRORS, OTHERS_ERRORS, RELIABILITY, Promises, Statement

from csl_dist.flag.edit_rule import Belief
from csl_dist.flag.edits.lists import ListName
from csl_dist.flag.edits.probability import CORRECTION
from csl_dist.flag.edits.surprise import WEIGHT
from csl_dist.types import BoolArray, FloatArray

WEIGHTS = (0.0, 0.3, 0.4, 0.5, 0.6)
CORRECTIONS = (0.5, 0.75, 1.0)
MIXES = ("mix, half the rate", "mix", "mix, double")
GROUPS = ("mixes", "kinds that the mix lacks", "few errors", "no errors")
FAR = 1e-4
"""Probabilities count as no nearer to 0 or 1."""


def group_of(label: str) -> str | None:
    """In which column of the table a setting counts; None where its errors are of other lists."""
    if label in MIXES:
        return "mixes"
    if label == "no errors":
        return "no errors"
    if label in FEW_ERRORS:
        return "few errors"
    return None if label.startswith("shift") else "kinds that the mix lacks"


def reweigh(report: Report, weight: float, before: float) -> None:
    """Changes the log-odds of all stored findings of steps."""
    for run in report.runs.values():
        for video in run["videos"]:
            for finding in video["findings"]:
                if finding["list"] is ListName.STEPS:
                    finding["log_odds"] += (weight - before) / WEIGHT * video["move"]


def line_of(promises: Promises, datasets: list[str], correction: float) -> list[str]:
    """What promises are worth, by group of settings and in all."""
    off: dict[str, list[float]] = defaultdict(list)
    losses, statements, flags = [], [], []
    for dataset in datasets:
        for label, wanted in RELIABILITY.items():
            if label in OTHERS_ERRORS[ListName.STEPS]:
                continue
            pairs = []
            for belief, odds_N, right_N in promises.of_audits(dataset, wanted, ListName.STEPS):
                probability_N = _corrected(belief, correction).probability(odds_N)
                pairs.append((probability_N[:10].mean(), right_N[:10].mean()))
                losses.append(_log_loss(probability_N[:40], right_N[:40]))
                flagged_N = probability_N >= 0.5
                flags.append((flagged_N.sum(), right_N[flagged_N].sum()))
                if flagged_N.any():
                    few = label in FEW_ERRORS
                    statements.append(Statement.of(probability_N, right_N, is_few=few))
            group = group_of(label)
            if pairs and group is not None:
                promised, true = np.mean(pairs, axis=0)
                off[group].append(abs(promised - true))
    num_flags, num_right = np.sum(flags, axis=0)
    return [
        *(
            f"{np.mean(off[g]):.3f}, {(np.array(off[g]) <= 0.1).sum()}/{len(off[g])}"
            for g in GROUPS
        ),
        f"{np.mean(losses):.3f}",
        f"{np.mean([one.holds for one in statements]):.3f}",
        f"{num_flags / len(flags):.1f}",
        f"{num_right / num_flags:.2f}",
    ]


def _corrected(belief: Belief, correction: float) -> Belief:
    moved = belief.curve.offset + correction - CORRECTION[ListName.STEPS]
    return replace(belief, curve=replace(belief.curve, offset=moved))


def _log_loss(probability_N: FloatArray, right_N: BoolArray) -> float:
    p_N = np.clip(probability_N, FAR, 1 - FAR)
    return float(-np.mean(np.where(right_N, np.log(p_N), np.log(1 - p_N))))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--half", choices=("reporting", "choosing", "both"), default="choosing")
    arguments = parser.parse_args()
    report, before = Report(arguments.work, arguments.half), WEIGHT
    lines = [["weight", "correction", *GROUPS, "log-loss", "hold", "flags", "right"]]
    for weight in WEIGHTS:
        reweigh(report, weight, before)
        before = weight
        promises = Promises(report)
        for correction in CORRECTIONS:
            line = line_of(promises, report.datasets, correction)
            lines.append([f"{weight:g}", f"{correction:g}", *line])
    print(markdown(lines))


if __name__ == "__main__":
    main()
