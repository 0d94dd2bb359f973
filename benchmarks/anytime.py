"""How soon the first flags are there when checkpoints are predicted in sweeps.

    python benchmarks/anytime.py --root runs/demo [--root /tmp/first/gtea/quick-0.5-0-0 ...]
    python benchmarks/edit_trajectories.py --data ../shared/data --out /tmp/traj --epochs 30
    python benchmarks/anytime.py --trajectories /tmp/traj [--datasets gtea knot_tying]

Of a finished run (`--root`), or of stored trajectories with planted errors (`--trajectories`), the
rule flags what the checkpoints of each sweep show. By sweep: the share of the evaluations that it
has taken, the share of the first 50 flags of all checkpoints that are among its first 50 (`found`),
and whether its top is settled. `settled at` is where `predict.stop: settled` stops. A run that took
15 % of the evaluations has the flags of the last sweep that is done by then, if any is: of 12
checkpoints the first sweep takes 17 %.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from edit_rule import SETTINGS, audit_of
from edit_settings import load, planted_labels, planting_of
from figures import parser_of, print_figures

from csl_dist.flag.decide import decide_by_edits
from csl_dist.flag.edits.fitting import FIT_MIX
from csl_dist.flag.rules import ranked
from csl_dist.flag.settled import TOP, is_settled, num_changed
from csl_dist.flag.stage import labels_in, settings_of
from csl_dist.strategies import SWEEPS, swept_epochs

FlagsOf = Callable[[list[int]], pd.DataFrame]
"""Flags, worst first, by the checkpoints of some epochs."""
EARLY = 0.15
"""Share of the evaluations after which flags are asked for."""


def sweep_figures(num_checkpoints: int, flags_of: FlagsOf) -> dict[str, Any]:
    """Figures of one audit, by its sweeps."""
    epochs = range(1, num_checkpoints + 1)
    parts = [sorted(swept_epochs(epochs, sweep)) for sweep in range(len(SWEEPS))]
    lists = [flags_of(part) for part in parts]
    whole = lists[-1]
    figures: dict[str, Any] = {"checkpoints": num_checkpoints, "flags": len(whole)}
    settled_at = 1.0
    for i, (part, flags) in enumerate(zip(parts, lists, strict=True)):
        share = len(part) / num_checkpoints
        found = _found(whole, flags)
        settled = i > 0 and is_settled(lists[i - 1], flags)
        if settled:
            settled_at = min(settled_at, share)
        figures[f"{SWEEPS[i]}: share"] = round(share, 3)
        figures[f"{SWEEPS[i]}: found"] = round(found, 3)
        figures[f"{SWEEPS[i]}: settled"] = int(settled)
    at = next(i for i, part in enumerate(parts) if len(part) / num_checkpoints >= settled_at)
    return figures | {
        **_early(figures),
        "settled at": round(settled_at, 3),
        "found when settled": round(_found(whole, lists[at]), 3),
    }


def _found(whole: pd.DataFrame, flags: pd.DataFrame) -> float:
    """The share of the first flags of a list that are among the first of another."""
    return 1 - num_changed(whole, flags) / max(1, len(whole.head(TOP)))


def _early(figures: dict[str, Any]) -> dict[str, float]:
    """What the last sweep has found that ends in time; nothing where the first takes longer."""
    done = [name for name in SWEEPS if figures[f"{name}: share"] <= EARLY]
    return {"found after 15 %": figures[f"{done[-1]}: found"]} if done else {}


@dataclass(frozen=True, slots=True)
class SomeRows:
    """A trajectory of which only some checkpoints are there."""

    trajectory: Any
    epochs: list[int]

    @property
    def shape(self) -> tuple[int, int, int]:
        _, num_frames, num_classes = self.trajectory.shape
        return len(self.epochs), num_frames, num_classes

    def read(self, start: int = 0, stop: int | None = None) -> Any:
        return self.trajectory.read(start, stop)[[epoch - 1 for epoch in self.epochs]]


def run_figures(root: str) -> dict[str, Any]:
    """Those of a finished run by the rule `edits`, under its own labels."""
    from csl_dist.flag.edit_rule import learnt_edits
    from csl_dist.flag.edits.labelled import OtherLabels
    from csl_dist.predict.plan import trajectory_catalog
    from csl_dist.storage.run_file import read_run_config
    from csl_dist.training.inputs import open_inputs
    from csl_dist.types import Split

    inputs = open_inputs(read_run_config(root))
    run, settings = inputs.run, settings_of(inputs.run.config)
    whole = trajectory_catalog(inputs, settings.scorers)
    audited = inputs.labels.in_split(Split.AUDIT)
    trained = labels_in(inputs, Split.TRAIN)
    held_out = labels_in(inputs, Split.AUDIT, Split.VAL)
    num_classes = len(run.dataset.classes)
    others = OtherLabels([*trained, *held_out], num_classes=num_classes)

    def flags_of(epochs: list[int]) -> pd.DataFrame:
        def trajectory_of(scorer: str, video: str) -> Any:
            return SomeRows(whole(scorer, video), epochs)

        calibration = learnt_edits(
            held_out, others, trajectory_of, scorers=settings.scorers, num_classes=num_classes
        )
        return decide_by_edits(
            audited,
            held_out,
            others,
            trajectory_of,
            calibration,
            settings.flag,
            classes=run.dataset.classes,
        ).flags

    first = audited[0].video
    return sweep_figures(whole(settings.scorers[0], first).shape[0], flags_of)


def stored_figures(
    folder: Path, names: Sequence[str], settings: Sequence[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Those of stored trajectories of real videos, with errors planted in half of them."""
    for name in names:
        data = load(folder, name)
        num_checkpoints = len(data.arrays[f"logp__{data.families[0]}__{data.ids[0]}"])
        for setting in settings:
            kind, rate, share = SETTINGS[setting]
            planting = planting_of(data, rate, kinds=FIT_MIX)
            planted = planted_labels(data, kind, 0, planting, share=share)

            def flags_of(
                epochs: list[int], data: Any = data, planted: Any = planted
            ) -> pd.DataFrame:
                return ranked(audit_of(data, planted, epochs)[0])

            yield f"{name}, {setting}", sweep_figures(num_checkpoints, flags_of)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--root", action="append", default=[], help="a finished run")
    parser.add_argument("--trajectories", type=Path, help="a folder of edit_trajectories.py")
    parser.add_argument("--datasets", nargs="+", default=["gtea", "knot_tying", "needle_passing"])
    parser.add_argument("--settings", nargs="+", default=["mix", "mix, double"], choices=SETTINGS)
    given = parser.parse_args()
    for root in given.root:
        print_figures({root: run_figures(root)}, as_json=given.json)
    if given.trajectories is not None:
        for name, own in stored_figures(given.trajectories, given.datasets, given.settings):
            print_figures({name: own}, as_json=given.json)


if __name__ == "__main__":
    main()
