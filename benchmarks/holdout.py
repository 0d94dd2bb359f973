"""Which score and scorer half of the people would choose, and what it has on the other half.

.venv/bin/python benchmarks/holdout.py --work DIR

Reads the runs that `frame_scores.py` left in DIR. The choice is made on every other person's videos
(Cholec80: every other video) with the errors of `--seed 1`, by the mean average precision over
datasets and kinds of error; reported are the others' videos with the errors of `--seed 0`.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from real_data import DATASETS

from csl_dist.audit.revision import AuditStore
from csl_dist.config import ENSEMBLE
from csl_dist.evaluate.metrics import measured, truth_of_kind
from csl_dist.evaluate.paper_tables import markdown
from csl_dist.measures import SCORE_NAMES
from csl_dist.score.store import ScoreStore
from csl_dist.score.table import ScoreTable, read_score_tables
from csl_dist.storage.run_file import read_run_config
from csl_dist.training.inputs import Inputs, open_inputs
from csl_dist.types import ErrorKind, Split, Video

KINDS = (ErrorKind.MISLABEL, ErrorKind.DISORDER)
METRICS = {"auc_micro": "AUC", "average_precision": "AP"}
HALVES = ("choosing", "reporting")
SHOWN = 8


def half(videos: list[Video], which: str) -> set[str]:
    """Ids of the videos of every other person, from the first or from the second on."""
    people = sorted({video.group or video.id for video in videos})[HALVES.index(which) :: 2]
    return {video.id for video in videos if (video.group or video.id) in people}


def audit_table(inputs: Inputs, score: str) -> ScoreTable:
    """One score of the newest audit of a run."""
    _, record = AuditStore(inputs.run.paths).newest_of_dataset()
    assert record is not None, "the run is not finished"
    annotations = {split: inputs.labels.in_split(split) for split in (Split.AUDIT, Split.VAL)}
    store = ScoreStore(inputs.run.paths.scores)
    tables = read_score_tables(store, record.scores, annotations, record.settings, score)
    return tables[Split.AUDIT]


def run_metrics(inputs: Inputs, which: str) -> Iterator[tuple[str, str, str, str, float]]:
    """Scorer, score, kind, metric and its value on one half of a run's audited videos."""
    run = inputs.run
    chosen = half(run.dataset.in_split(Split.AUDIT), which)
    errors = [error for error in inputs.labels.known_errors() if error.video in chosen]
    for score in SCORE_NAMES:
        table = audit_table(inputs, score)
        labels = {a.video: a.labels_T for a in table.annotations if a.video in chosen}
        num_frames = {video: len(labels_T) for video, labels_T in labels.items()}
        for scorer in (*run.config.scorers, ENSEMBLE):
            scores = {video: table.scores[scorer][video] for video in labels}
            for kind in KINDS:
                truth = truth_of_kind(kind, errors, num_frames)
                values = measured(truth, scores, labels, num_resamples=0)
                for metric, heading in METRICS.items():
                    if metric in values:
                        yield scorer, score, kind.value, heading, 100 * values[metric][0]


def mean_metrics(work: Path, seed: int, which: str) -> pd.DataFrame:
    """Scorers and scores in rows, kinds and metrics in columns: means over the datasets."""
    columns = ["scorer", "score", "kind", "metric", "value"]
    runs = [open_inputs(read_run_config(str(work / name / f"seed{seed}"))) for name in DATASETS]
    rows = [row for inputs in runs for row in run_metrics(inputs, which)]
    frame = pd.DataFrame(rows, columns=columns)
    return frame.pivot_table(
        index=["scorer", "score"], columns=["kind", "metric"], values="value", aggfunc="mean"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    arguments = parser.parse_args()
    choosing = mean_metrics(arguments.work, 1, "choosing")
    reporting = mean_metrics(arguments.work, 0, "reporting")
    precision = pd.DataFrame(choosing.xs("AP", axis=1, level="metric")).mean(axis=1)
    order = precision.sort_values(ascending=False).index
    rows = [*order[:SHOWN], ("transformer", "csl_smoothed"), ("transformer", "csl")]
    table = pd.DataFrame(rows, columns=["scorer", "score"])
    for heading, metrics in (("choosing", choosing), ("reporting", reporting)):
        for kind in KINDS:
            values = metrics.loc[rows, kind.value]
            table[f"{heading}: {kind} AUC / AP"] = [
                f"{auc:.1f} / {ap:.1f}" for auc, ap in values[["AUC", "AP"]].to_numpy()
            ]
    print(markdown(table))


if __name__ == "__main__":
    main()
