"""Tables of stored audits: what frames and findings are worth beside rivals."""

import pickle
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from findings_runs import OTHER_KINDS, SEVEN, STUDY_KINDS, Setting, settings_of
from real_data import DATASETS
from second_opinion import verdict_of
from sklearn.metrics import average_precision_score, roc_auc_score

from csl_dist.data.mistakes import PlantedKind
from csl_dist.flag.edits.findings import RIGHT_KINDS
from csl_dist.flag.edits.lists import LIST_OF, ListName


class Report:
    """Stored runs, and the half of the people that is told about."""

    def __init__(self, work: Path, half: str):
        self._half = half
        self.runs: dict[Setting, dict[str, Any]] = {}
        for name in DATASETS:
            for setting in settings_of(name):
                path = work / f"{'-'.join(map(str, setting))}.pkl"
                if path.exists():
                    self.runs[setting] = with_verdicts(name, pickle.loads(path.read_bytes()))
        self.datasets = [d for d in DATASETS if any(s.dataset == d for s in self.runs)]

    def videos(self, run: Mapping[str, Any], *, other: bool = False) -> list[int]:
        """Rows of the videos of the half; of the other half if asked. Of both halves, all."""
        wanted = (self._half == "reporting") != other
        return [
            i
            for i, v in enumerate(run["videos"])
            if self._half == "both" or v["reporting"] == wanted
        ]

    def of(self, dataset: str, kind: str, *, lacks: bool = False) -> list[dict[str, Any]]:
        return [
            run
            for s, run in self.runs.items()
            if (s.dataset, s.kind, s.lacks) == (dataset, kind, lacks)
        ]

    def frame_table(self, *, dataset: str | None = None) -> str:
        """AUC / AP of frames by method and kind, mean over planting seeds and datasets."""
        names = list(next(r for r in self.runs.values() if r["scores"])["scores"])
        kinds = [*STUDY_KINDS, *OTHER_KINDS]
        lines = [["", *kinds, "AP of 7"]]
        cells: dict[tuple[str, str], tuple[float, float]] = {}
        for name in names:
            for kind in kinds:
                cells[name, kind] = self._mean_over_datasets(kind, name, dataset)
            lines.append(self._line(name, {kind: cells[name, kind] for kind in kinds}))
        by_list = {kind: cells[f"ours, {LIST_OF[RIGHT_KINDS[kind][0]]}", kind] for kind in kinds}
        lines.append(self._line("**ours, each kind in its list**", by_list))
        ours = dict(by_list)
        for kind in kinds:
            if kind is not PlantedKind.SWAP:
                ours[kind] = cells["ours, one list", kind]
        lines.append(self._line("**ours, one list and order**", ours))
        return markdown(lines)

    def behind_table(self) -> str:
        """Where a rival is more than two points of AP before the list that ours is in."""
        lines = [["dataset", "kind", "ours", "best rival", "AP"]]
        names = list(next(r for r in self.runs.values() if r["scores"])["scores"])
        rivals = [name for name in names if not name.startswith(("ours", "shipped"))]
        for dataset in self.datasets:
            for kind in [*STUDY_KINDS, *OTHER_KINDS]:
                own = f"ours, {LIST_OF[RIGHT_KINDS[kind][0]]}"
                ours = self._mean_over_datasets(kind, own, dataset)[1]
                best = {name: self._mean_over_datasets(kind, name, dataset)[1] for name in rivals}
                first = max(best, key=lambda name: best[name])
                if best[first] > ours + 2:
                    lines.append([dataset, kind, f"{ours:.0f}", first, f"{best[first]:.0f}"])
        return markdown(lines)

    def _line(self, name: str, cells: Mapping[Any, tuple[float, float]]) -> list[str]:
        seven = np.mean([cells[kind][1] for kind in SEVEN])
        return [name, *(f"{auc:.0f}/{ap:.0f}" for auc, ap in cells.values()), f"{seven:.1f}"]

    def _mean_over_datasets(self, kind: str, name: str, only: str | None) -> tuple[float, float]:
        values = [
            np.mean([self._frame_metrics(run, name) for run in self.of(dataset, kind)], axis=0)
            for dataset in ([only] if only else self.datasets)
            if self.of(dataset, kind)
        ]
        auc, ap = np.mean(values, axis=0) if values else (np.nan, np.nan)
        return float(auc), float(ap)

    def _frame_metrics(self, run: Mapping[str, Any], name: str) -> tuple[float, float]:
        wrong_N, score_N = self._frames(run, name)
        return (
            100 * roc_auc_score(wrong_N, score_N),
            100 * average_precision_score(wrong_N, score_N),
        )

    def _frames(self, run: Mapping[str, Any], name: str) -> tuple[Any, Any]:
        rows = self.videos(run)
        masks = [run["videos"][i]["labelled_T"] for i in rows]
        wrong = [run["videos"][i]["wrong_T"][m] for i, m in zip(rows, masks, strict=True)]
        score = [run["scores"][name][i][m] for i, m in zip(rows, masks, strict=True)]
        return np.concatenate(wrong), np.concatenate(score)

    def budget_table(self) -> str:
        """Precision in the worst 1 and 2 % of frames, mean over the seven kinds."""
        names = list(next(r for r in self.runs.values() if r["scores"])["scores"])
        lines = [["", "worst 1 %", "worst 2 %"]]
        for name in names:
            shares = []
            for share in (0.01, 0.02):
                values = []
                for s, run in self.runs.items():
                    if s.kind in SEVEN and run["scores"]:
                        wrong_N, score_N = self._frames(run, name)
                        top = np.argsort(-score_N, kind="stable")[
                            : max(1, int(share * len(score_N)))
                        ]
                        values.append(100 * wrong_N[top].mean())
                shares.append(f"{np.mean(values):.1f}")
            lines.append([name, *shares])
        return markdown(lines)

    def findings_report(self) -> str:
        """By kind: AP of findings, and what is right about those found among the surest."""
        lines = [
            [
                *("", "AP of findings", "found", "kind right", "label right"),
                *("boundary within 2 s", "boundary nearer"),
            ]
        ]
        for kind in [*STUDY_KINDS, *OTHER_KINDS]:
            stats = [
                self._finding_stats(run, PlantedKind(kind))
                for dataset in self.datasets
                for run in self.of(dataset, kind)
            ]
            with np.errstate(all="ignore"):
                mean = np.nanmean(np.array(stats, dtype=float), axis=0)
            lines.append([kind, *("-" if np.isnan(x) else f"{100 * x:.0f}" for x in mean)])
        return markdown(lines)

    def rival_findings(self) -> str:
        """AP of findings by kind, in percent: ours beside rivals, whose findings are segments.

        A rival has no edits: each labelled segment is a finding with the mean score of its frames.
        """
        names = list(next(r for r in self.runs.values() if r["scores"])["scores"])
        rivals = [name for name in names if not name.startswith(("ours", "shipped"))]
        kinds = [*STUDY_KINDS, *OTHER_KINDS]
        lines = [["", *kinds, "mean"]]
        for name in ["ours", *rivals]:
            row = []
            for kind in kinds:
                values = [
                    self._finding_stats(run, PlantedKind(kind))[0]
                    if name == "ours"
                    else self._segment_ap(run, name)
                    for dataset in self.datasets
                    for run in self.of(dataset, kind)
                ]
                row.append(100 * float(np.nanmean(values)))
            lines.append([name, *(f"{x:.0f}" for x in row), f"{np.mean(row):.1f}"])
        return markdown(lines)

    def _segment_ap(self, run: Mapping[str, Any], name: str) -> float:
        """Average precision of segments as findings, by a rival's score."""
        tolerance = 2.0 * run["fps"] if run["fps"] >= 0.5 else 0.9
        rows: list[tuple[float, Any]] = []
        num_errors = 0
        for i in self.videos(run):
            video = run["videos"][i]
            big = [e for e in video["errors"] if e.boundary is None or e.stop - e.start > tolerance]
            num_errors += len(big)
            for start, stop in video["segments"]:
                hit = next((k for k, e in enumerate(big) if _shared(start, stop, e) >= 0.5), None)
                score = float(np.nanmean(run["scores"][name][i][start:stop]))
                rows.append((score, None if hit is None else (i, hit)))
        rows.sort(key=lambda row: -row[0])
        seen: set[Any] = set()
        precisions = []
        for rank, (_, hit) in enumerate(rows, start=1):
            if hit is not None and hit not in seen:
                seen.add(hit)
                precisions.append(len(seen) / rank)
        return sum(precisions) / num_errors if num_errors else float("nan")

    def _finding_stats(self, run: Mapping[str, Any], kind: PlantedKind) -> list[float]:
        """Among as many findings as there are errors, of the list (order) or lists (others)."""
        order = kind is PlantedKind.SWAP
        tolerance = 2.0 * run["fps"] if run["fps"] >= 0.5 else 0.9
        rows, num_errors = [], 0
        for i in self.videos(run):
            video = run["videos"][i]
            big = {
                k
                for k, e in enumerate(video["errors"])
                if e.boundary is None or e.stop - e.start > tolerance
            }
            num_errors += len(big)
            for f in video["findings"]:
                # An error within the tolerance is none, and pointing at it is no mistake.
                if (f["list"] is ListName.ORDER) == order and (
                    f["error"] is None or f["error"] in big
                ):
                    error = None if f["error"] is None else video["errors"][f["error"]]
                    rows.append((f["log_odds"], f, error, (i, f["error"])))
        rows.sort(key=lambda row: -row[0])
        seen: set[Any] = set()
        hits = []
        for _, f, error, key in rows:
            new = error is not None and key not in seen
            seen.add(key)
            hits.append((new, f, error))
        if not num_errors:
            return [np.nan] * 6
        precision = np.cumsum([h for h, _, _ in hits]) / np.arange(1, len(hits) + 1)
        ap = float(sum(p for p, (h, _, _) in zip(precision, hits, strict=True) if h) / num_errors)
        top = [(f, e) for h, f, e in hits[: max(num_errors, 5)] if h and e is not None]
        moved = [(f, e) for f, e in top if e.boundary is not None and f["kind"] == "boundary"]
        off = [abs(f["place"] - e.boundary) / run["fps"] for f, e in moved]
        was = [(e.stop - e.start) / run["fps"] for _, e in moved]
        return [
            ap,
            len(top) / num_errors,
            mean_of([f["kind"] in RIGHT_KINDS[kind] for f, _ in top]),
            mean_of([f["new_label"] == e.label for f, e in top if e.label is not None]),
            mean_of([x <= 2.0 for x in off]),
            mean_of([x < y for x, y in zip(off, was, strict=True)]),
        ]

    def second_opinions(self) -> str:
        """What an independent annotation says of findings of steps in unchanged labels."""
        lines: list[list[Any]] = [
            ["", "log-odds from", "findings", "right", "wrong", "unclear", "not looked at"]
        ]
        for dataset in self.datasets:
            findings = [
                f
                for run in self.of(dataset, "none")
                for f in findings_of(run, ListName.STEPS, self.videos(run))
            ]
            if not any(f["verdict"] for f in findings):
                continue
            for level in (-1.0, -2.0, -3.0):
                own = [f["verdict"] for f in findings if f["log_odds"] >= level]
                counts = [own.count(word) for word in ("right", "wrong", "unclear", None)]
                lines.append([dataset, level, len(own), *counts])
        return markdown(lines)

    def false_flags(self) -> str:
        """Findings an hour of clean footage, where a fifth of planted renames' would be missed."""
        lines = [["", "findings an hour without errors above log-odds -1", "0"]]
        for dataset in self.datasets:
            for run in self.of(dataset, "none"):
                rows = self.videos(run)
                hours = sum(len(run["videos"][i]["labelled_T"]) for i in rows) / run["fps"] / 3600
                odds_N, right_N = judged_odds(run, ListName.STEPS, rows)
                wrong_N = odds_N[~right_N]
                lines.append(
                    [dataset, *(f"{(wrong_N > level).sum() / hours:.1f}" for level in (-1.0, 0.0))]
                )
        return markdown(lines)


def with_verdicts(dataset: str, run: dict[str, Any]) -> dict[str, Any]:
    """A run whose findings of steps know what a second opinion says, where no error was planted."""
    for video in run["videos"]:
        for f in video["findings"]:
            seconds = f["start"] / run["fps"], f["stop"] / run["fps"]
            is_open = f["error"] is None and f["list"] is ListName.STEPS
            f["verdict"] = verdict_of(dataset, video["id"], *seconds) if is_open else None
    return run


def findings_of(run: Mapping[str, Any], name: ListName, rows: list[int]) -> list[dict[str, Any]]:
    """Those of a list in some videos."""
    return [f for i in rows for f in run["videos"][i]["findings"] if f["list"] is name]


def judged_odds(run: Mapping[str, Any], name: ListName, rows: list[int]) -> tuple[Any, Any]:
    """Log-odds of findings and whether each is an error, surest first.

    Real errors count by the second opinion; what it leaves unclear is left out.
    """
    return surest_first(
        (f["log_odds"], f["error"] is not None or f["verdict"] == "right")
        for f in findings_of(run, name, rows)
        if f["verdict"] != "unclear"
    )


def surest_first(pairs: Iterable[tuple[float, bool]]) -> tuple[Any, Any]:
    rows = sorted(pairs, reverse=True)
    return np.array([p[0] for p in rows]), np.array([p[1] for p in rows], dtype=bool)


def _shared(start: int, stop: int, error: Any) -> float:
    """Frames that a span and an error share, over frames of either."""
    shared = max(0, min(stop, error.stop) - max(start, error.start))
    return float(shared / (stop - start + error.stop - error.start - shared))


def mean_of(values: list[Any]) -> float:
    return float(np.mean(values)) if values else float("nan")


def markdown(lines: list[list[Any]]) -> str:
    rule = [["---"] * len(lines[0])]
    return "\n".join(f"| {' | '.join(map(str, x))} |" for x in lines[:1] + rule + lines[1:])
