"""Recipes: settings of a run chosen by its data and the machine, each with its reason.

What a recipe chooses was tried on real datasets: see docs/LOG.md, "Recipes". Nothing here needs
torch, so that `csl init` works where only labels are looked at.
"""

import importlib.util
import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import yaml

from csl_dist.data.facts import DatasetFacts
from csl_dist.words import counted


class RecipeName(StrEnum):
    """How much time an audit is worth."""

    QUICK = "quick"
    STANDARD = "standard"
    PAPER = "paper"


FPS_CHOICES = (1, 2, 3, 5, 10, 15)
STEP_FRAMES = {RecipeName.QUICK: 5, RecipeName.STANDARD: 10}
"""Frames that all but the shortest quarter of the steps should have."""
FOLDS = {RecipeName.QUICK: 3, RecipeName.STANDARD: 5, RecipeName.PAPER: 5}
EPOCHS = {RecipeName.QUICK: 12, RecipeName.STANDARD: 30, RecipeName.PAPER: 200}
LEAST_VIDEOS = 32
"""With fewer to train on, an epoch of one video a step has too few steps."""
PAPER_FPS = 15
PAPER_WINDOW_SECONDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What an audit will run on."""

    cores: int
    memory_gb: float
    gpus: int

    def __str__(self) -> str:
        parts = [counted(self.gpus, "GPU")] if self.gpus else []
        return ", ".join([*parts, counted(self.cores, "core"), f"{self.memory_gb:.0f} GB"])


def this_machine() -> Machine:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Machine(cores=os.cpu_count() or 1, memory_gb=memory / 1e9, gpus=_num_gpus())


def _num_gpus() -> int:
    if importlib.util.find_spec("torch") is None:
        return 0
    import torch

    return torch.cuda.device_count()


@dataclass(frozen=True, slots=True)
class Choice:
    """A setting and why it was chosen."""

    value: Any
    why: str


Sections = dict[str, dict[str, Choice]]
"""Settings by section and key, in the order of the file."""


def chosen_settings(name: RecipeName, facts: DatasetFacts, machine: Machine) -> Sections:
    """The settings of a run; `dataset` has `folds` whether the dataset needs them or not."""
    made = _paper(facts) if name is RecipeName.PAPER else _chosen(name, facts, machine)
    folds = min(FOLDS[name], max(2, facts.num_groups))
    why = "models; each audits the videos that it did not see"
    made["dataset"]["folds"] = Choice(folds, why)
    return made


def _chosen(name: RecipeName, facts: DatasetFacts, machine: Machine) -> Sections:
    size = "small" if machine.gpus and name is RecipeName.STANDARD else "tiny"
    scorers = {
        "transformer": Choice(
            {"arguments": {"preset": size}},
            f"sees the whole video, so that it knows order; {size} suits {machine}",
        ),
        "framewise": Choice({}, "sees single frames; cheap"),
    }
    if name is RecipeName.STANDARD:
        scorers["mstcn"] = Choice({}, "sees neighbouring frames; the slowest on CPUs")
    train = {
        "epochs": Choice(EPOCHS[name], "checkpoints of each model"),
        "learning_rate": Choice(0.001, "found best with small models"),
        "batch_frames": Choice("auto", "some tens of steps an epoch, down to one video a step"),
        "weighted": Choice(False, "without class weights more errors are found"),
    }
    num_train = round(facts.num_videos * (1 - 1 / FOLDS[name]))
    if num_train < LEAST_VIDEOS:
        why = f"an epoch; a pass over about {num_train} videos would be too few"
        train["steps"] = Choice(LEAST_VIDEOS, why)
    fps = _sampling(facts, STEP_FRAMES[name])
    return {"dataset": {"fps": fps} if fps else {}, "scorers": scorers, "train": train}


def _sampling(facts: DatasetFacts, step_frames: int) -> Choice | None:
    """The rate of frames that steps need; None where ready frames have no more."""
    if not len(facts.step_seconds_S):
        return None
    short = float(np.quantile(facts.step_seconds_S, 0.25))
    needed = step_frames / max(short, 1e-6)
    fps = next((rate for rate in FPS_CHOICES if rate >= needed), FPS_CHOICES[-1])
    if facts.source_fps is not None and fps >= facts.source_fps:
        return None
    return Choice(fps, f"frames a second; a quarter of the steps is shorter than {short:.1f} s")


def _paper(facts: DatasetFacts) -> Sections:
    as_it_is = facts.source_fps is not None and facts.source_fps <= PAPER_FPS
    fps = facts.source_fps if facts.source_fps is not None and as_it_is else PAPER_FPS
    window = round(PAPER_WINDOW_SECONDS * fps) // 2 * 2 + 1
    return {
        "dataset": {} if as_it_is else {"fps": Choice(fps, "as in the paper")},
        "scorers": {
            "transformer": Choice(
                {"arguments": {"preset": "vit_b"}}, "86 million parameters; needs a GPU"
            ),
            "framewise": Choice({}, "its comparison without context"),
        },
        "train": {
            "epochs": Choice(EPOCHS[RecipeName.PAPER], "as in the paper"),
            "learning_rate": Choice(0.0001, "as in the paper"),
            "batch_frames": Choice(8192, "frames a step"),
            "weighted": Choice(True, "as in the paper"),
        },
        "score": {"window": Choice(window, f"{PAPER_WINDOW_SECONDS} seconds")},
        "flag": {
            "rule": Choice("validation", "as in the paper; without validation videos as `top`"),
            "scorer": Choice("transformer", "as in the paper"),
            "score": Choice("csl_smoothed", "as in the paper"),
        },
    }


def with_choices(lines: list[str], choices: Mapping[str, Choice]) -> list[str]:
    """Lines of a section's keys, each with its reason as a comment."""
    made = [f"  {key}: {_yaml(choice.value)}" for key, choice in choices.items()]
    width = max(map(len, made), default=0)
    whys = (choice.why for choice in choices.values())
    return lines + [f"{line:<{width}}  # {why}" for line, why in zip(made, whys, strict=True)]


def recipe_text(sections: Sections) -> str:
    """The YAML of all sections but the dataset's, which is drafted by its layout."""
    lines: list[str] = []
    for name, choices in sections.items():
        if name != "dataset":
            lines = with_choices([*lines, f"{name}:"], choices)
    return "\n".join([*lines, ""])


def _yaml(value: Any) -> str:
    text: str = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=1000)
    return text.removesuffix("...\n").strip()
