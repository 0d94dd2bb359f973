"""Which score finds planted errors in real data: a table of AUC and average precision.

.venv/bin/python benchmarks/frame_scores.py --data ../shared/data --work /tmp/frame_scores --seed 0

Runs `csl run` on five datasets of ready features (see real_data.py) with errors planted by
`corrupt.seed`, and prints one Markdown table for each kind of error. With `--seed 1` other errors
are planted in other videos: defaults were chosen there, and are reported with `--seed 0`.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
from real_data import DATASETS, write_real_dataset

from csl_dist.evaluate.baselines import BASELINES
from csl_dist.measures import SCORE_NAMES

METRICS = {"auc_micro": "AUC", "average_precision": "AP"}


def run_dataset(name: str, data: Path, work: Path, seed: int) -> Path:
    """Audits a dataset, going on from what is there; returns the run root."""
    config = work / name / "csl.yaml"
    if not config.exists():
        write_real_dataset(name, data, work / name)
    root = work / name / f"seed{seed}"
    command = [sys.executable, "-c", "from csl_dist.cli import main; main()", "run", str(config)]
    options = [f"root={root}", f"corrupt.seed={seed}"]
    subprocess.run(
        [*command, *(part for option in options for part in ("--set", option))],
        check=True,
        stdout=sys.stderr,
    )
    return root


def metrics_frame(roots: dict[str, Path]) -> pd.DataFrame:
    """One row for each dataset, scorer, kind, score and metric."""
    rows = []
    for dataset, root in roots.items():
        metrics = json.loads((root / "audits/0001/metrics.json").read_text())
        for scorer, kinds in metrics["scorers"].items():
            for kind, by_name in kinds.items():
                for score, values in by_name.items():
                    for metric, heading in METRICS.items():
                        if metric in values:
                            value = 100 * values[metric][0]
                            rows.append((dataset, scorer, kind, score, heading, value))
    columns = ["dataset", "scorer", "kind", "score", "metric", "value"]
    return pd.DataFrame(rows, columns=columns)


def kind_table(frame: pd.DataFrame, kind: str) -> pd.DataFrame:
    """Scores by scorer in rows; `AUC / AP` of each dataset, and their means, in columns."""
    wide = frame[frame.kind == kind].pivot_table(
        index=["scorer", "score"], columns=["dataset", "metric"], values="value", sort=False
    )
    for heading in METRICS.values():
        values = pd.DataFrame(wide.xs(heading, axis=1, level="metric"))
        wide["mean", heading] = values.mean(axis=1)
    datasets = list(dict.fromkeys(wide.columns.get_level_values("dataset")))
    order = {name: i for i, name in enumerate([*SCORE_NAMES, *BASELINES])}
    wide = wide.sort_index(level="score", key=lambda s: s.map(order), sort_remaining=False)
    wide = wide.sort_index(level="scorer", ascending=False, sort_remaining=False, kind="stable")
    return pd.DataFrame(
        {
            dataset: [
                f"{auc:.1f} / {ap:.1f}"
                for auc, ap in wide[dataset][list(METRICS.values())].to_numpy()
            ]
            for dataset in datasets
        },
        index=wide.index,
    )


def markdown(table: pd.DataFrame) -> str:
    """A Markdown table with the index as its first columns."""
    flat = table.reset_index()
    lines = [flat.columns.tolist(), ["---"] * flat.shape[1], *flat.to_numpy().tolist()]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--datasets", nargs="+", default=DATASETS, choices=DATASETS)
    arguments = parser.parse_args()
    roots = {
        name: run_dataset(name, arguments.data, arguments.work, arguments.seed)
        for name in arguments.datasets
    }
    frame = metrics_frame(roots)
    for kind in frame.kind.unique():
        print(f"\n{kind}: AUC / average precision, planting seed {arguments.seed}\n")
        print(markdown(kind_table(frame, kind)))


if __name__ == "__main__":
    main()
