"""The rule `edits` as the product applies it, on stored trajectories with planted errors.

    python benchmarks/edit_trajectories.py --data ../shared/data --out /tmp/findings/traj
    python benchmarks/edit_rule.py --trajectories /tmp/findings/traj [--half choosing] [--json]

By dataset and setting, a row for each list: flags, the share of them that is right (half of the
frames of flag and error are shared, or the boundary is within two seconds, or a second opinion says
that the labels are wrong there; flags that it leaves unclear do not count), what was promised, how
many of the errors are flagged, of these how many with the right label; flags an hour.
"""

from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from edit_settings import PlantedRow, Trajectories, load, planted_labels, planting_of
from figures import print_figures
from second_opinion import verdict_of

from csl_dist.config import FlagConfig
from csl_dist.data.mistakes import PlantedKind, PlantedSpan
from csl_dist.flag.edit_rule import edit_flags, labelled_videos, learnt_edits
from csl_dist.flag.edits.fitting import FIT_MIX
from csl_dist.flag.edits.labelled import OtherLabels
from csl_dist.flag.edits.lists import ListName
from csl_dist.types import Annotation, Flag, FloatArray

DATASETS = ("knot_tying", "needle_passing", "50salads", "gtea", "cholec80")
SETTINGS: dict[str, tuple[PlantedKind | None, float, float]] = {
    "none": (None, 0.1, 0.0),
    "mix, half the rate": (None, 0.05, 0.5),
    "mix": (None, 0.1, 0.5),
    "mix, double": (None, 0.2, 0.5),
    "mislabel": (PlantedKind.MISLABEL, 0.1, 0.5),
    "confusable": (PlantedKind.CONFUSABLE, 0.1, 0.5),
    "merge": (PlantedKind.MERGE, 0.1, 0.5),
    "shift": (PlantedKind.SHIFT, 0.1, 0.5),
    "swap": (PlantedKind.SWAP, 0.1, 0.5),
}
"""Kind, rate, and share of the videos that get errors."""
LIST_OF_KIND = {
    PlantedKind.SHIFT: ListName.BOUNDARIES,
    PlantedKind.JITTER: ListName.BOUNDARIES,
    PlantedKind.SWAP: ListName.ORDER,
}
"""Of all other kinds: steps."""
TOLERANCE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class StoredTrajectory:
    """A trajectory (E, T, C) as the rule reads it."""

    logp_ETC: FloatArray
    epochs: Sequence[int]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.logp_ETC.shape

    def read(self, start: int, stop: int) -> FloatArray:
        return self.logp_ETC[:, start:stop]


def audit_of(
    data: Trajectories, planted: dict[str, PlantedRow], epochs: Sequence[int] | None = None
) -> tuple[list[Flag], dict[str, Any]]:
    """Flags of all videos, and the promise; by some epochs, or by all."""

    def trajectory_of(scorer: str, video: str) -> Any:
        row = planted[video]
        logp_ETC = data.logp(video, row.swap_seed)[data.families.index(scorer)]
        if row.moved_T is not None:
            logp_ETC = logp_ETC[:, row.moved_T]
        chosen = epochs or range(1, len(logp_ETC) + 1)
        return StoredTrajectory(logp_ETC[[epoch - 1 for epoch in chosen]], chosen)

    annotations = [
        Annotation(
            video=video,
            labels_T=planted[video].labels_T,
            times_T=np.arange(len(planted[video].labels_T)) / data.fps,
        )
        for video in data.ids
    ]
    num_classes = data.num_classes
    videos = labelled_videos(annotations, data.groups)
    others = OtherLabels(videos, num_classes=num_classes)
    calibration = learnt_edits(
        videos, others, trajectory_of, scorers=data.families, num_classes=num_classes
    )
    decision = edit_flags(
        annotations,
        videos,
        others,
        trajectory_of,
        calibration,
        FlagConfig(rule="edits"),
        classes=tuple(map(str, range(num_classes))),
    )
    return decision.flags, decision.calibration.as_json()["promise"]


def is_hit(flag: Flag, error: PlantedSpan, fps: float) -> bool:
    """Whether a flag shows an error of its list."""
    if flag.list != LIST_OF_KIND.get(error.kind, ListName.STEPS):
        return False
    shared = min(flag.span.stop, error.stop) - max(flag.span.start, error.start)
    if shared <= 0:
        return False
    if shared / (len(flag.span) + error.stop - error.start - shared) >= 0.5:
        return True
    if error.boundary is None or flag.fix is None:
        return False
    return abs(flag.fix.frames[-1] - error.boundary) <= TOLERANCE_SECONDS * fps


def list_figures(
    data: Trajectories, flags: Sequence[Flag], planted: dict[str, PlantedRow], name: ListName
) -> dict[str, float | None]:
    """Figures of one list over some videos; errors of a boundary within the tolerance are none."""
    verdicts = {
        id(f): verdict_of(data.name, f.video, f.start_seconds, f.stop_seconds)
        for f in flags
        if f.list == name == ListName.STEPS
    }
    own = [f for f in flags if f.list == name and verdicts.get(id(f)) != "unclear"]
    errors = [
        (video, error)
        for video, row in planted.items()
        for error in row.errors
        if LIST_OF_KIND.get(error.kind, ListName.STEPS) == name
        and (error.boundary is None or error.stop - error.start > TOLERANCE_SECONDS * data.fps)
    ]
    right = [
        any(f.video == v and is_hit(f, e, data.fps) for v, e in errors)
        or verdicts.get(id(f)) == "right"
        for f in own
    ]
    found = [[f for f in own if f.video == v and is_hit(f, e, data.fps)] for v, e in errors]
    labels = [
        hits[0].fix_label == str(e.label)
        for hits, (_, e) in zip(found, errors, strict=True)
        if hits and e.label is not None
    ]
    promised = [f.probability for f in own if f.probability is not None]
    hours = sum(len(row.labels_T) for row in planted.values()) / data.fps / 3600
    return {
        "flags": len(own),
        "right": _mean(right),
        "promised": _mean(promised),
        "errors": len(errors),
        "found": _mean([bool(hits) for hits in found]),
        "label right": _mean(labels),
        "flags an hour": round(len(own) / hours, 2),
    }


def _mean(values: Sequence[float]) -> float | None:
    return round(float(np.mean(values)), 3) if values else None


def rows(folder: Path, half: str, names: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name in names:
        data = load(folder, name)
        videos = data.reporting() if half == "reporting" else set(data.ids) - data.reporting()
        for setting, (kind, rate, share) in SETTINGS.items():
            planting = planting_of(data, rate, kinds=FIT_MIX)
            planted = planted_labels(data, kind, 0, planting, share=share)
            flags, _ = audit_of(data, planted)
            seen = [flag for flag in flags if flag.video in videos]
            own = {video: row for video, row in planted.items() if video in videos}
            for list_name in ListName:
                figures = list_figures(data, seen, own, list_name)
                if figures["flags"] or figures["errors"]:
                    yield f"{name}, {setting}: {list_name}", figures


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--trajectories", type=Path, required=True)
    parser.add_argument("--half", choices=("choosing", "reporting"), default="reporting")
    parser.add_argument("--datasets", nargs="+", default=DATASETS)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    found = dict(rows(arguments.trajectories, arguments.half, arguments.datasets))
    if arguments.json:
        print_figures(found, as_json=True)
        return
    columns = list(next(iter(found.values())))
    print("| |", " | ".join(columns), "|")
    print("|---" * (len(columns) + 1) + "|")
    for name, figures in found.items():
        cells = ("-" if value is None else f"{value:g}" for value in figures.values())
        print(f"| {name} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
