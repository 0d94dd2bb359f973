"""Which settings of training find most planted errors, by epochs and by seconds of one core.

.venv/bin/python benchmarks/recipe_choice.py --data ../shared/data --work DIR [--settings NAME …]

One process, no Ray, on five datasets of ready features (see real_data.py). Every setting is
trained once for each fold; figures after fewer epochs are those of its first checkpoints.
`defaults` are those before there were recipes; `quick` and `standard` are scorers and training as
`csl init` writes them for the dataset, on a machine without GPU. Printed for `choosing` are every
other person's videos with the errors of one planting, for `reporting` the others' with those of
another. Scores: `aum_late_segment` of the ensemble of a temporal and the framewise scorer, which
decided before there were recipes, and the present rule's own over all scorers (`edits`: `suspicion`
for mislabels, `order` for disorder). AUC / AP of both kinds, by dataset and their mean.
"""

import argparse
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from holdout import HALVES, KINDS, half
from real_data import DATASETS, write_real_dataset

from csl_dist.config import RunConfig, ScorerConfig, TrainConfig, load_config
from csl_dist.cost.recipes import RecipeName, chosen_settings, this_machine
from csl_dist.data.facts import dataset_facts
from csl_dist.data.layouts import open_dataset
from csl_dist.evaluate.metrics import measured, truth_of_kind
from csl_dist.evaluate.paper_tables import markdown
from csl_dist.features.source import FeatureReader
from csl_dist.flag.edit_rule import edit_flags, learnt_edits
from csl_dist.flag.edits.labelled import OtherLabels
from csl_dist.flag.stage import labels_in
from csl_dist.predict.forward import group_log_probabilities
from csl_dist.predict.trajectories import Group
from csl_dist.score.ensemble import ensemble_scores
from csl_dist.score.formulas import frame_scores, smooth_by_segment
from csl_dist.training.inputs import Inputs, open_inputs
from csl_dist.training.models import build_scorer
from csl_dist.training.stage import training_of
from csl_dist.training.train import train_epochs
from csl_dist.types import ErrorKind, FloatArray, Split

PLANTING_SEEDS = {"choosing": 1, "reporting": 0}
FRAMEWISE = "framewise"
TINY, SMALL = (
    ScorerConfig(arguments={"preset": "tiny"}),
    ScorerConfig(arguments={"preset": "small"}),
)
BOTH = {"transformer": TINY, FRAMEWISE: ScorerConfig()}
ALL = {**BOTH, "mstcn": ScorerConfig()}
NARROW = ScorerConfig(arguments={"stages": 2, "layers": 9, "width": 32})
SETTINGS: dict[str, tuple[dict[str, ScorerConfig], dict[str, Any]]] = {
    "defaults": (
        BOTH,
        {"epochs": 200, "learning_rate": 1e-4, "batch_frames": 8192, "weighted": True},
    ),
    "auto": (ALL, {"epochs": 30, "learning_rate": 1e-3, "weighted": True}),
    "auto plain": (ALL, {"epochs": 30, "learning_rate": 1e-3, "weighted": False}),
    "3e-3": (ALL, {"epochs": 30, "learning_rate": 3e-3, "weighted": False}),
    "64 steps": (ALL, {"epochs": 16, "learning_rate": 1e-3, "weighted": False, "steps": 64}),
    "small": (
        {"transformer": SMALL, FRAMEWISE: ScorerConfig(), "mstcn": NARROW},
        {"epochs": 12, "learning_rate": 1e-3, "weighted": False},
    ),
}
RECIPES = ("quick", "standard")
MOST_CHECKPOINTS = 30
"""Of a training with more epochs, every so many are looked at."""
PREFIXES = (4, 8, 12, 16, 20, 30, 50, 100, 200)
Trajectories = dict[str, npt.NDArray[np.float16]]


def setting_config(base: RunConfig, name: str, root: Path) -> RunConfig:
    scorers, train = recipe(base, RecipeName(name)) if name in RECIPES else SETTINGS[name]
    return replace(base, root=str(root), scorers=scorers, train=replace(TrainConfig(), **train))


def recipe(base: RunConfig, name: RecipeName) -> tuple[dict[str, ScorerConfig], dict[str, Any]]:
    facts = dataset_facts(open_dataset(base.dataset))
    sections = chosen_settings(name, facts, replace(this_machine(), gpus=0))
    chosen = {
        name: {key: choice.value for key, choice in own.items()} for name, own in sections.items()
    }
    scorers = {scorer: ScorerConfig(**own) for scorer, own in chosen["scorers"].items()}
    return scorers, chosen["train"]


def trajectories(runs: dict[str, Inputs], scorer: str) -> tuple[dict[str, Trajectories], float]:
    """By half, what every checkpoint makes of each audited video; and seconds of training."""
    kept: dict[str, dict[str, list[Any]]] = {which: {} for which in HALVES}
    first = next(iter(runs.values()))
    spec, cpu, seconds = first.model_spec(scorer), torch.device("cpu"), 0.0
    model = build_scorer(spec).eval()
    for fold in first.run.dataset.folds:
        task = training_of(first, scorer, fold).task
        train_reader = FeatureReader(first.seen_features(scorer, fold.index, Split.TRAIN))
        begun = time.process_time()
        for epoch in train_epochs(task, train_reader.read):
            seconds += time.process_time() - begun
            begun = time.process_time()
            if epoch.info.epoch % max(1, task.config.epochs // MOST_CHECKPOINTS):
                continue
            model.load_state_dict(epoch.weights)
            for which, inputs in runs.items():
                reader = FeatureReader(inputs.seen_features(scorer, fold.index, Split.AUDIT))
                for a in inputs.labels.in_split(Split.AUDIT):
                    if a.original in fold.held_out:
                        group = Group(
                            fold=0, videos=(a.video,), lengths=(a.num_frames,), features=("",)
                        )
                        logp_TC = group_log_probabilities(
                            model, group, reader.read, model=spec, batch_frames=1024, device=cpu
                        )
                        kept[which].setdefault(a.video, []).append(logp_TC.astype(np.float16))
            begun = time.process_time()
    stacked = {w: {v: np.stack(rows) for v, rows in own.items()} for w, own in kept.items()}
    return stacked, seconds


def scores(inputs: Inputs, found: Trajectories, epochs: int) -> dict[str, FloatArray]:
    """`aum_late_segment` of each audited video over the first checkpoints."""
    ones_C = np.ones(len(inputs.run.dataset.classes))
    by_video = {}
    for a in inputs.labels.in_split(Split.AUDIT):
        every = max(1, inputs.run.config.train.epochs // MOST_CHECKPOINTS)
        logp_ETC = found[a.video][: epochs // every].astype(np.float32)
        score_T = frame_scores(logp_ETC, a.labels_T, ones_C)["aum_late"]
        by_video[a.video] = smooth_by_segment(score_T, a.labels_T, inputs.run.config.score.window)
    return by_video


@dataclass(frozen=True, slots=True)
class InMemory:
    """A trajectory as the rule reads it."""

    epochs: list[int]
    logp_ETC: npt.NDArray[np.float16]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.logp_ETC.shape

    def read(self, start: int, stop: int) -> npt.NDArray[np.float32]:
        return self.logp_ETC[:, start:stop].astype(np.float32)


def rule_scores(
    inputs: Inputs, found: dict[str, Trajectories], epochs: int
) -> dict[ErrorKind, dict[str, FloatArray]]:
    """What the rule `edits` gives each frame over the first checkpoints, by kind of error."""
    run = inputs.run
    every = max(1, run.config.train.epochs // MOST_CHECKPOINTS)
    audited = inputs.labels.in_split(Split.AUDIT)
    videos = labels_in(inputs, Split.AUDIT)
    num_classes = len(run.dataset.classes)
    trained = labels_in(inputs, Split.TRAIN)
    others = OtherLabels([*trained, *videos], num_classes=num_classes)

    def trajectory_of(scorer: str, video: str) -> Any:
        logp_ETC = found[scorer][video][: epochs // every]
        return InMemory([every * (i + 1) for i in range(len(logp_ETC))], logp_ETC)

    learnt = learnt_edits(
        videos, others, trajectory_of, scorers=tuple(found), num_classes=num_classes
    )
    decided = edit_flags(
        audited,
        videos,
        others,
        trajectory_of,
        learnt,
        run.config.flag,
        classes=tuple(run.dataset.classes),
    )
    rows = dict(zip((ErrorKind.MISLABEL, ErrorKind.DISORDER), (0, 1), strict=True))
    return {kind: {v: own[row] for v, own in decided.frames.items()} for kind, row in rows.items()}


def figures(
    inputs: Inputs, by_kind: Mapping[ErrorKind, dict[str, FloatArray]], which: str
) -> dict[str, float]:
    """AUC and average precision of every kind by its own score, on one half of the people."""
    chosen = half(inputs.run.dataset.in_split(Split.AUDIT), which)
    annotations = [a for a in inputs.labels.in_split(Split.AUDIT) if a.video in chosen]
    labels = {a.video: a.labels_T for a in annotations}
    errors = [error for error in inputs.labels.known_errors() if error.video in chosen]
    lengths = {a.video: a.num_frames for a in annotations}
    found = {}
    for kind in KINDS:
        own = {video: by_kind[kind][video] for video in labels}
        values = measured(truth_of_kind(kind, errors, lengths), own, labels, num_resamples=0)
        found[f"{kind} AUC"] = 100 * values["auc_micro"][0]
        found[f"{kind} AP"] = 100 * values["average_precision"][0]
    return found


def rows_of(dataset: str, setting: str, data: Path, work: Path) -> list[dict[str, Any]]:
    """Figures of one setting on one dataset, kept in a file."""
    kept = work / dataset / f"{setting.replace(' ', '_')}.json"
    if kept.exists():
        return list(json.loads(kept.read_text()))
    config_file = work / dataset / "csl.yaml"
    if not config_file.exists():
        write_real_dataset(dataset, data, work / dataset)
    base = load_config(config_file)
    runs = {}
    for which, seed in PLANTING_SEEDS.items():
        corrupt = replace(base.corrupt, seed=seed)
        audit = replace(base.audit, swapped_copies=0)
        made = setting_config(base, setting, work / dataset / "scratch" / setting)
        runs[which] = open_inputs(replace(made, corrupt=corrupt, audit=audit))
    scorers, num_epochs = made.scorers, made.train.epochs
    found = {scorer: trajectories(runs, scorer) for scorer in scorers}
    rows = []
    every = max(1, num_epochs // MOST_CHECKPOINTS)
    for epochs in [n for n in PREFIXES if every <= n <= num_epochs]:
        for which, inputs in runs.items():
            for name, by_kind in scores_of(inputs, found, which, epochs).items():
                seconds = sum(found[scorer][1] for scorer in found) * epochs / num_epochs
                rows.append(
                    {"dataset": dataset, "setting": setting, "half": which, "epochs": epochs}
                    | {"score": name, "seconds": round(seconds, 1)}
                    | figures(inputs, by_kind, which)
                )
    kept.write_text(json.dumps(rows))
    return rows


def scores_of(
    inputs: Inputs, found: dict[str, tuple[dict[str, Trajectories], float]], which: str, epochs: int
) -> dict[str, Mapping[ErrorKind, dict[str, FloatArray]]]:
    """By name, scores of frames for each kind of error."""
    own = {scorer: scores(inputs, found[scorer][0][which], epochs) for scorer in found}
    former = {
        f"aum_late_segment, {name}": dict.fromkeys(
            KINDS, ensemble_scores(own[name], own[FRAMEWISE])
        )
        for name in own
        if name != FRAMEWISE
    }
    trajectories_of = {scorer: found[scorer][0][which] for scorer in found}
    return {**former, "edits": rule_scores(inputs, trajectories_of, epochs)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--datasets", nargs="+", default=DATASETS, choices=DATASETS)
    names = [*RECIPES, *SETTINGS]
    parser.add_argument("--settings", nargs="+", default=names, choices=names)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for setting in arguments.settings:
        for dataset in arguments.datasets:
            rows += rows_of(dataset, setting, arguments.data, arguments.work)
    frame = pd.DataFrame(rows)
    for metric in ("AUC", "AP"):
        frame[f"mean {metric}"] = frame[[f"{kind} {metric}" for kind in KINDS]].mean(axis=1)
    keys = ["half", "setting", "score", "epochs"]
    means = frame.drop(columns="dataset").groupby(keys, sort=False).mean().round(1)
    print(markdown(means.reset_index()))
    last = frame.groupby(["dataset", "setting"])["epochs"].transform("max") == frame["epochs"]
    print()
    print(markdown(frame[last & (frame["half"] == "reporting")].round(1)))


if __name__ == "__main__":
    main()
