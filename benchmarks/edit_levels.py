"""From which log-odds on flags of boundaries and of order are right, on stored trajectories.

    python benchmarks/edit_trajectories.py --data ../shared/data --out /tmp/findings/traj
    python benchmarks/edit_levels.py --trajectories /tmp/findings/traj [--half reporting]

For each list and band of log-odds by the shipped weights: right findings of all findings, by
dataset, over audits with no errors, mixes at three rates, few errors, and errors of the list's own
kind. `LEVELS` of flag/edit_findings.py were chosen by it.
"""

from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from edit_audit import run_audit, tolerance_seconds
from edit_settings import EmissionCache, Trajectories, load, planted_labels, planting_of

from csl_dist.data.mistakes import PlantedKind
from csl_dist.flag.edits.findings import ListName, is_found
from csl_dist.flag.edits.probability import SHIPPED
from csl_dist.flag.edits.rehearsal import FIT_MIX

DATASETS = ("knot_tying", "needle_passing", "50salads", "gtea", "cholec80")
MIXES = [
    (None, 0.1, 0.0),
    (None, 0.05, 0.5),
    (None, 0.1, 0.5),
    (None, 0.2, 0.5),
    (None, 0.02, 0.15),
]
SETTINGS: dict[ListName, list[tuple[PlantedKind | None, float, float]]] = {
    ListName.BOUNDARIES: [*MIXES, (PlantedKind.SHIFT, 0.1, 0.5), (PlantedKind.JITTER, 0.1, 0.5)],
    ListName.ORDER: [*MIXES, (PlantedKind.SWAP, 0.1, 0.5)],
}
"""What is planted, the share of frames, and the share of videos."""
BANDS = (-2.0, -1.5, -1.0, -0.5, 0.0)

Found = tuple[ListName, float, bool]
"""A finding's list, its log-odds by the shipped weights, and whether it is right."""


def findings(
    data: Trajectories,
    setting: tuple[PlantedKind | None, float, float],
    caches: dict[tuple[float, ...], EmissionCache],
    *,
    reporting: bool,
) -> Iterator[Found]:
    kind, rate, share = setting
    planting = planting_of(data, rate, kinds=FIT_MIX)
    audit = run_audit(data, planted_labels(data, kind, 0, planting, share=share), caches)
    tolerance = tolerance_seconds(data) * data.fps
    for video, own in zip(audit.videos, audit.findings, strict=True):
        if (video.id in data.reporting()) == reporting:
            for finding in own:
                edit = finding.edit
                log_odds = SHIPPED[edit.kind].log_odds(finding.evidence_K[None])
                right = any(is_found(edit, e, tolerance_frames=tolerance) for e in video.errors)
                yield finding.list_name, float(log_odds[0]), right


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--trajectories", type=Path, required=True)
    parser.add_argument("--datasets", nargs="+", default=DATASETS, choices=DATASETS)
    parser.add_argument("--half", choices=("choosing", "reporting"), default="choosing")
    given = parser.parse_args()
    counts: Counter[tuple[str, ListName, float, bool]] = Counter()
    for name in given.datasets:
        data = load(given.trajectories, name)
        caches: dict[tuple[float, ...], EmissionCache] = {}
        for setting in {one for own in SETTINGS.values() for one in own}:
            found = findings(data, setting, caches, reporting=given.half == "reporting")
            for list_name, log_odds, right in found:
                if setting in SETTINGS.get(list_name, ()):
                    for band in [low for low in BANDS if low <= log_odds][-1:]:
                        counts[name, list_name, band, right] += 1
    for list_name in SETTINGS:
        for low in BANDS:
            shown = [
                f"{name} {counts[name, list_name, low, True]} of "
                f"{sum(counts[name, list_name, low, right] for right in (True, False))}"
                for name in given.datasets
            ]
            print(f"{list_name} from {low:g} on: {', '.join(shown)}")


if __name__ == "__main__":
    main()
