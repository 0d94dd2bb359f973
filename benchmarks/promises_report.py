"""Tables of stored audits: what probabilities promise, beside what is true.

Constants that a dataset is promised by are fitted on the other datasets, on the half of the people
that is not told about.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from findings_report import Report, findings_of, judged_odds, markdown, mean_of, surest_first
from findings_runs import FEW, FRAME_SEEDS, MIXED, RELATED, Setting

from csl_dist.data.mistakes import PlantedKind
from csl_dist.flag.edit_calibration import SHOWN
from csl_dist.flag.edit_rule import Belief
from csl_dist.flag.edits.findings import RIGHT_KINDS
from csl_dist.flag.edits.lists import LIST_OF, ListName
from csl_dist.flag.edits.probability import (
    CORRECTION,
    DATASET_DEVIATION,
    ProbabilityCurve,
    expected_right,
    fit_curve,
)
from csl_dist.types import FloatArray


class Promises:
    """What the audits of a report promise."""

    def __init__(self, report: Report):
        self._report = report

    def reliability_table(self, list_name: ListName) -> str:
        """Promised and true precision of the 10 surest findings, and of those above a half."""
        lines = [
            [
                *("", "setting", "surest 10: promised", "true", "above a half", "promised", "true"),
                *("next 10 after 5 reviews: promised", "true"),
            ]
        ]
        for dataset in self._report.datasets:
            for label, wanted in RELIABILITY.items():
                if label in OTHERS_ERRORS[list_name]:
                    continue
                columns = [
                    _reliability(belief, odds_N, right_N)
                    for belief, odds_N, right_N in self.of_audits(dataset, wanted, list_name)
                ]
                if columns:
                    with np.errstate(all="ignore"):
                        mean = np.nanmean(np.array(columns), axis=0)
                    lines.append(
                        [dataset, label, *("-" if np.isnan(x) else f"{x:.2f}" for x in mean)]
                    )
        return markdown(lines)

    def pooled_table(self) -> str:
        """Promised and true precision of all findings of similar probability, of all audits."""
        lines = [["", *(f"{low:g} to {high:g}" for low, high in pairwise(BINS))]]
        for list_name in ListName:
            pairs = [
                (belief.probability(odds_N), right_N)
                for dataset in self._report.datasets
                for label, wanted in RELIABILITY.items()
                if label not in OTHERS_ERRORS[list_name]
                for belief, odds_N, right_N in self.of_audits(dataset, wanted, list_name)
            ]
            probability_N, right_N = (np.concatenate(part) for part in zip(*pairs, strict=True))
            cells = []
            for low, high in pairwise(BINS):
                inside = (probability_N >= low) & (probability_N < high)
                promised, true = probability_N[inside].mean(), right_N[inside].mean()
                cells.append(f"{promised:.2f}, {true:.2f} of {inside.sum()}")
            lines.append([list_name, *cells])
        return markdown(lines)

    def interval_table(self, list_name: ListName) -> str:
        """How often "of the first 20 flags about 8 to 17 are right" holds, which is promised four
        times in five; by dataset, and of it where errors are few."""
        lines = [["", "statements", "hold", "too high", "too low", "few errors", "hold", "width"]]
        total: list[Statement] = []
        for dataset in [*self._report.datasets, None]:
            made = total
            if dataset is not None:
                made = [
                    Statement.of(probability_N, right_N, is_few=label in FEW_ERRORS)
                    for label, wanted in RELIABILITY.items()
                    if label not in OTHERS_ERRORS[list_name]
                    for belief, odds_N, right_N in self.of_audits(dataset, wanted, list_name)
                    for probability_N in [belief.probability(odds_N)]
                    if (probability_N >= 0.5).any()
                ]
                total += made
            few = [one for one in made if one.is_few]
            lines.append(
                [
                    dataset or "all",
                    str(len(made)),
                    f"{mean_of([one.holds for one in made]):.2f}",
                    str(sum(one.right < one.low for one in made)),
                    str(sum(one.right > one.high for one in made)),
                    str(len(few)),
                    f"{mean_of([one.holds for one in few]):.2f}",
                    f"{mean_of([one.width for one in made]):.2f}",
                ]
            )
        return markdown(lines)

    def of_audits(
        self, dataset: str, wanted: Callable[[Setting], bool], list_name: ListName
    ) -> Iterator[tuple[Belief, FloatArray, Any]]:
        """Of each audit, what is believed by the other datasets' constants, log-odds of findings,
        and which are right; surest first."""
        calibration = self._curve_without(dataset, list_name)
        for s, run in self._report.runs.items():
            if s.dataset != dataset or not wanted(s):
                continue
            # An audit counts all its findings; promises are checked on the half alone.
            every_N, _ = _planted_odds(run, list_name, list(range(len(run["videos"]))))
            excess = calibration.excess(every_N)
            odds_N, right_N = judged_odds(run, list_name, self._report.videos(run))
            if len(odds_N) >= LEAST_FINDINGS[list_name]:
                yield Belief(curve=calibration, excess=excess), odds_N, right_N

    def _curve_without(self, dataset: str | None, list_name: ListName) -> ProbabilityCurve:
        """Constants fitted on the other datasets, on the half that is not told about."""
        pairs = [
            _planted_odds(run, list_name, self._report.videos(run, other=True))
            for s, run in self._report.runs.items()
            if s.dataset != dataset and self._is_calibrated_on(s, list_name)
        ]
        known = [pair for pair in pairs if len(pair[0]) >= LEAST_FINDINGS[list_name] // 2]
        fitted = fit_curve(known, counts=list_name is ListName.STEPS)
        return replace(fitted, offset=fitted.offset + CORRECTION[list_name])

    def shipped_curves(self) -> str:
        """Constants from all datasets, on the half that is not told about."""
        return "\n".join(f"{name}: {self._curve_without(None, name)}" for name in ListName)

    @staticmethod
    def _is_calibrated_on(setting: Setting, list_name: ListName) -> bool:
        """Mixes, nothing, and runs that hold errors of the list; of the first planting seeds, so
        that audits with many errors do not outweigh those with few."""
        if setting.seed >= (1 if setting.lacks else FITTED_SEEDS.get(setting.kind, FRAME_SEEDS)):
            return False
        if setting.kind in MIXED:
            return True
        kind = PlantedKind(setting.kind)
        belongs = LIST_OF[RIGHT_KINDS[kind][0]] is list_name
        return belongs and (setting.lacks or list_name is not ListName.STEPS)


FITTED_SEEDS = {"mix": 2}
"""Of the first planting seeds, how many constants are fitted on; FRAME_SEEDS of other kinds."""
BINS = (0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
"""Of probabilities that are looked at together."""
STEPS_ALONE = tuple(f"{kind}, not fitted on" for kind in RELATED if kind is not PlantedKind.SHIFT)
RELIABILITY: dict[str, Callable[[Setting], bool]] = {
    "few": lambda s: s.kind == FEW,
    "mix, a fifth of the rate": lambda s: s.kind == "mix" and s.rate == 0.02,
    "mix, half the rate": lambda s: s.kind == "mix" and s.rate == 0.05,
    "mix": lambda s: s.kind == "mix" and s.rate == 0.1,
    "mix, double": lambda s: s.kind == "mix" and s.rate == 0.2,
    **{
        f"{kind}, not fitted on": (lambda s, kind=kind: s.kind == kind and s.lacks)  # type: ignore[misc]
        for kind in RELATED
    },
    "shift": lambda s: s.kind == PlantedKind.SHIFT and not s.lacks,
    "swap": lambda s: s.kind == PlantedKind.SWAP,
    "no errors": lambda s: s.kind == "none",
}


OTHERS_ERRORS = {
    ListName.STEPS: ("shift", "swap"),
    ListName.BOUNDARIES: ("swap", *STEPS_ALONE),
    ListName.ORDER: ("shift", *STEPS_ALONE),
}
"""Settings whose errors are all of other lists."""
LEAST_FINDINGS = {ListName.STEPS: 20, ListName.BOUNDARIES: 4, ListName.ORDER: 4}
"""Of a list in an audit, below which it says nothing; half of it to fit on."""
FEW_ERRORS = ("few", "mix, a fifth of the rate", "no errors")


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What an audit says of the first flags of a list, as rounded numbers, and what is true."""

    num_flags: int
    low: int
    high: int
    right: int
    is_few: bool

    @classmethod
    def of(cls, probability_N: FloatArray, right_N: Any, *, is_few: bool) -> "Statement":
        num_flags = min(SHOWN, int((probability_N >= 0.5).sum()))
        _, low, high = expected_right([(probability_N[:num_flags], DATASET_DEVIATION)])
        return cls(
            num_flags=num_flags,
            low=round(low),
            high=round(high),
            right=int(right_N[:num_flags].sum()),
            is_few=is_few,
        )

    @property
    def holds(self) -> bool:
        return self.low <= self.right <= self.high

    @property
    def width(self) -> float:
        """Of the interval, as a share of the flags."""
        return (self.high - self.low) / self.num_flags


def _reliability(belief: Belief, odds_N: FloatArray, right_N: Any) -> list[float]:
    """Of findings in falling order; promises are checked on the same findings."""
    probability_N = belief.probability(odds_N)
    above = probability_N >= 0.5
    decisions = list(zip(odds_N[:5].tolist(), right_N[:5].tolist(), strict=True))
    after = belief.reviewed(decisions).probability(odds_N)
    return [
        probability_N[:10].mean(),
        right_N[:10].mean(),
        above.sum(),
        mean_of(probability_N[above].tolist()),
        mean_of(right_N[above].tolist()),
        mean_of(after[5:15].tolist()),
        mean_of(right_N[5:15].tolist()),
    ]


def _planted_odds(run: Mapping[str, Any], name: ListName, rows: list[int]) -> tuple[Any, Any]:
    """Log-odds of findings and whether each is a planted error, surest first.

    Constants are fitted on these: unchanged labels count as right, as they do in datasets that
    nobody has labelled again. CORRECTION makes up for a part of that.
    """
    return surest_first(
        (f["log_odds"], f["error"] is not None) for f in findings_of(run, name, rows)
    )
