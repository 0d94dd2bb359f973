"""Which rule makes the best ensemble: AUC and average precision over finished runs, as Markdown.

.venv/bin/python benchmarks/ensemble_rules.py [--half choosing|reporting] ROOT…

Give runs whose planted errors are others than those reported on: `frame_scores.py --seed 1`. With
`--half`, only the videos of half of the people count, as in `holdout.py`.
"""

import argparse
from collections.abc import Callable

import numpy as np
import pandas as pd
from holdout import HALVES, audit_table, half

from csl_dist.config import FlagConfig
from csl_dist.evaluate.metrics import measured, truth_of_kind
from csl_dist.evaluate.paper_tables import markdown
from csl_dist.score.ensemble import scale_of
from csl_dist.storage.run_file import read_run_config
from csl_dist.training.inputs import open_inputs
from csl_dist.training.scorers import framewise_scorer, temporal_scorer
from csl_dist.types import ErrorKind, FloatArray, Split

KINDS = (ErrorKind.MISLABEL, ErrorKind.DISORDER)
METRICS = ("auc_micro", "average_precision")
HIGHS = (0.0, 0.5, 1.0, 1.5, 2.0)

Rule = Callable[[FloatArray, FloatArray], FloatArray]


def above(high: float) -> Rule:
    return lambda t, f: t + np.maximum(f - high, 0)


RULES: dict[str, Rule] = {
    "temporal": lambda t, f: t,
    "framewise": lambda t, f: f,
    "mean": lambda t, f: (t + f) / 2,
    "maximum": np.maximum,
    **{f"temporal + framewise above {high:g} sd": above(high) for high in HIGHS},
}
"""Of both scores in standard deviations from their means."""


def rule_metrics(root: str, which: str | None) -> pd.DataFrame:
    """Rules in rows, kinds and metrics in columns, of one run and the default score."""
    inputs = open_inputs(read_run_config(root))
    scored = audit_table(inputs, FlagConfig().score)
    config = inputs.run.config
    temporal, framewise = temporal_scorer(config), framewise_scorer(config)
    assert framewise is not None
    standard = {}
    for scorer in (temporal, framewise):
        scale = scale_of(scored.scores[scorer].values())
        standard[scorer] = {v: scale.standard(x) for v, x in scored.scores[scorer].items()}
    audited = inputs.run.dataset.in_split(Split.AUDIT)
    chosen = half(audited, which) if which else {video.id for video in audited}
    labels = {a.video: a.labels_T for a in scored.annotations if a.video in chosen}
    errors = [error for error in inputs.labels.known_errors() if error.video in chosen]
    num_frames = {v: len(x) for v, x in labels.items()}
    rows = {}
    for name, rule in RULES.items():
        scores = {v: rule(standard[temporal][v], standard[framewise][v]) for v in labels}
        rows[name] = {
            (kind.value, metric): measured(
                truth_of_kind(kind, errors, num_frames), scores, labels, num_resamples=0
            )[metric][0]
            for kind in KINDS
            for metric in METRICS
        }
    return pd.DataFrame(rows).T


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("roots", nargs="+")
    parser.add_argument("--half", choices=HALVES)
    arguments = parser.parse_args()
    tables = [rule_metrics(root, arguments.half) for root in arguments.roots]
    mean = sum(tables[1:], tables[0]) / len(tables)
    shown = pd.DataFrame({"rule": mean.index})
    for kind in KINDS:
        auc, precision = (100 * mean[kind.value, metric].to_numpy() for metric in METRICS)
        shown[f"{kind} AUC / AP"] = [
            f"{a:.1f} / {p:.1f}" for a, p in zip(auc, precision, strict=True)
        ]
    print(markdown(shown))


if __name__ == "__main__":
    main()
