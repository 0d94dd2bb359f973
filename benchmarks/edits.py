"""Findings as edits against all rivals, on five real datasets with planted errors.

.venv/bin/python benchmarks/edits.py run --trajectories /tmp/findings/traj --work /tmp/findings/runs
.venv/bin/python benchmarks/edits.py report --work /tmp/findings/runs
.venv/bin/python benchmarks/edits.py files --trajectories /tmp/findings/traj

`run` audits every dataset under every setting, going on from what is there; edit_trajectories.py
writes the trajectories first. Half of the videos of a setting have errors. `report` prints tables
of every second person's videos, on which nothing was chosen (`--half choosing` prints the others').
Constants of the calibration are fitted on the other four datasets, on the choosing half.
"""

import argparse
import pickle
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from edit_audit import Audit, run_audit, tolerance_seconds
from edit_rivals import margin, rival_scores, standardised
from edit_settings import EmissionCache, Trajectories, load, planted_labels, planting_of
from real_data import DATASETS
from sklearn.metrics import average_precision_score, roc_auc_score

from csl_dist.data.mistakes import PlantedKind, foreign_labels, mixed_up_files
from csl_dist.data.segments import segments_of
from csl_dist.flag.edits.candidates import EditKind
from csl_dist.flag.edits.emission import late_half
from csl_dist.flag.edits.files import file_matches
from csl_dist.flag.edits.findings import (
    LIST_OF,
    RIGHT_KINDS,
    ListName,
    frame_log_odds,
    is_found,
    is_right_fix,
    log_odds_of,
)
from csl_dist.flag.edits.probability import SHIPPED, fit_curve, with_reviews
from csl_dist.flag.edits.rehearsal import FIT_MIX
from csl_dist.types import FloatArray

STUDY_KINDS = (
    *(PlantedKind.MISLABEL, PlantedKind.RENAME, PlantedKind.PLAUSIBLE, PlantedKind.INSERT),
    *(PlantedKind.MERGE, PlantedKind.SHIFT, PlantedKind.JITTER, PlantedKind.SWAP),
)
"""Columns of RESEARCH.md's table: `missing` there is `merge` here, `disorder` is `swap`."""
OTHER_KINDS = (PlantedKind.CONFUSABLE, PlantedKind.MISSING)
SEVEN = tuple(kind for kind in STUDY_KINDS if kind is not PlantedKind.PLAUSIBLE)
RELATED = {
    PlantedKind.RENAME: (PlantedKind.RENAME,),
    PlantedKind.CONFUSABLE: (PlantedKind.CONFUSABLE, PlantedKind.PLAUSIBLE),
    PlantedKind.MERGE: (PlantedKind.MERGE, PlantedKind.MISSING),
    PlantedKind.MISLABEL: (PlantedKind.MISLABEL, PlantedKind.INSERT),
    PlantedKind.SHIFT: (PlantedKind.SHIFT,),
}
"""Kinds that the fitted mix lacks where the first is audited."""
FEW = "few"
"""A mix as real datasets may have it: one error in one video of seven."""
MIXED = ("mix", "none", FEW)
AUM_WEIGHT = 0.3
"""Of the standardised AUM of single frames, which ranks frames that no edit tells apart."""
OURS = ("ours, one list", "ours, steps", "ours, boundaries", "ours, order")


class Setting(NamedTuple):
    """What is planted where: the key of a stored run."""

    dataset: str
    kind: str
    rate: float
    seed: int
    lacks: bool


def settings_of(dataset: str) -> Iterator[Setting]:
    """The first planting seed of everything comes first, so that a report can be had early."""
    for seed in (0, 1, 2):
        for kind in STUDY_KINDS:
            yield Setting(dataset, kind, 0.1, seed, False)
        if seed < 2:
            for rate in (0.02, 0.05, 0.1, 0.2):
                yield Setting(dataset, "mix", rate, seed, False)
        yield Setting(dataset, FEW, 0.02, seed, False)
        if seed == 0:
            yield Setting(dataset, "none", 0.1, 0, False)
            for kind in RELATED:
                yield Setting(dataset, kind, 0.1, 0, True)
            for kind in OTHER_KINDS:
                yield Setting(dataset, kind, 0.1, 0, False)


def run_setting(
    data: Trajectories, setting: Setting, caches: dict[tuple[float, ...], EmissionCache]
) -> dict[str, Any]:
    """Audits one setting; returns what the report needs, as plain arrays."""
    planting = planting_of(data, setting.rate, kinds=FIT_MIX)
    kind = None if setting.kind in MIXED else PlantedKind(setting.kind)
    share = {"none": 0.0, FEW: 0.15}.get(setting.kind, 0.5)
    planted = planted_labels(data, kind, setting.seed, planting, share=share)
    lacking = RELATED[kind] if setting.lacks and kind else ()
    mix = {name: part for name, part in FIT_MIX.items() if name not in lacking}
    audit = run_audit(data, planted, caches, mix=mix)
    single = kind in STUDY_KINDS + OTHER_KINDS and not setting.lacks
    scores = rival_scores(data, audit.videos) | our_scores(data, audit) if single else {}
    reporting = data.reporting()
    return {
        "fps": data.fps,
        "scores": {name: [s.astype(np.float32) for s in row] for name, row in scores.items()},
        "videos": [
            {
                "id": v.id,
                "reporting": v.id in reporting,
                "labelled_T": v.labels_T >= 0,
                "segments": [(s.start, s.stop) for s in segments_of(v.labels_T) if s.label >= 0],
                "wrong_T": wrong_frames(v.errors, len(v.labels_T)),
                "errors": v.errors,
                "findings": findings_table(data, row, v.errors),
            }
            for v, row in zip(audit.videos, audit.findings, strict=True)
        ],
    }


def our_scores(data: Trajectories, audit: Audit) -> dict[str, list[FloatArray]]:
    """Frames by the surest edit that covers them, in one list and in the three lists apart."""
    labels = [v.labels_T for v in audit.videos]
    aum = [
        np.mean([margin(late_half(logp), v.labels_T) for logp in data.logp(v.id, v.swap_seed)], 0)
        for v in audit.videos
    ]
    plain = [np.clip(z_T, -3, 3) for z_T in standardised(aum, labels)]
    members: dict[str, set[EditKind]] = {
        "ours, one list": set(EditKind) - {EditKind.SWAP},
        **{
            f"ours, {name}": {kind for kind, own in LIST_OF.items() if own is name}
            for name in ListName
        },
    }
    members["shipped constants, one list"] = members["ours, one list"]
    members["shipped constants, order"] = members["ours, order"]
    shipped = [log_odds_of(v.edits, v.evidence_NK, SHIPPED) for v in audit.videos]
    result: dict[str, list[FloatArray]] = {}
    for name, kinds in members.items():
        own = name.startswith("ours")
        weight = AUM_WEIGHT if own and kinds != {EditKind.SWAP} else 0.0
        odds = audit.log_odds if own else shipped
        result[name] = []
        for video, odds_N, z_T in zip(audit.videos, odds, plain, strict=True):
            rows = [i for i, edit in enumerate(video.edits) if edit.kind in kinds]
            edits = [video.edits[i] for i in rows]
            frames_T = frame_log_odds(edits, odds_N[rows], len(z_T))
            result[name].append(frames_T + weight * z_T)
    return result


def wrong_frames(errors: Any, num_frames: int) -> Any:
    wrong_T = np.zeros(num_frames, dtype=bool)
    for error in errors:
        wrong_T[error.start : error.stop] = True
    return wrong_T


def findings_table(data: Trajectories, findings: Any, errors: Any) -> list[dict[str, Any]]:
    """Findings of a video, with the error that each points at, if any."""
    tolerance = tolerance_seconds(data) * data.fps
    rows = []
    for finding in findings:
        edit = finding.edit
        found = [i for i, e in enumerate(errors) if is_found(edit, e, tolerance_frames=tolerance)]
        rows.append(
            {
                "list": finding.list_name,
                "kind": edit.kind,
                "start": edit.start,
                "stop": edit.stop,
                "place": edit.place,
                "new_label": edit.new_label,
                "log_odds": finding.log_odds,
                "error": found[0] if found else None,
                "right_fix": bool(found) and is_right_fix(edit, errors[found[0]]),
            }
        )
    return rows


def run_all(trajectories: Path, work: Path, datasets: list[str]) -> None:
    work.mkdir(parents=True, exist_ok=True)
    loaded = {name: load(trajectories, name) for name in datasets}
    caches: dict[str, dict[tuple[float, ...], EmissionCache]] = {name: {} for name in datasets}
    for settings in zip(*map(settings_of, datasets), strict=True):
        for setting in settings:
            path = work / f"{'-'.join(map(str, setting))}.pkl"
            if path.exists():
                continue
            begun = time.perf_counter()
            result = run_setting(loaded[setting.dataset], setting, caches[setting.dataset])
            part = path.with_suffix(".part")
            part.write_bytes(pickle.dumps(result))
            part.rename(path)
            print(f"{path.stem}: {time.perf_counter() - begun:.1f} s", flush=True)


def files_table(trajectories: Path, datasets: list[str]) -> str:
    """Two pairs of label files changed places: is the gain by another file highest for these?"""
    lines: list[list[Any]] = [["", "AUC of videos", "AP", "right file", "named, no pair"]]
    for name in datasets:
        data = load(trajectories, name)
        logp = {v: EmissionCache(data, [1.0] * 3).of(v, None, None).logp_TC for v in data.ids}
        values = []
        for seed in range(5):
            lengths = {v: len(data.labels[v]) for v in data.ids}
            swapped = mixed_up_files(lengths, num_pairs=2, seed=seed)
            labels = {
                v: foreign_labels(data.labels[swapped.get(v, v)], lengths[v]) for v in data.ids
            }
            matches = file_matches(logp, labels)
            wrong = [v in swapped for v in matches]
            gain = [m.gain for m in matches.values()]
            named = [m for m in matches.values() if m.takes_back]
            values.append(
                [
                    100 * roc_auc_score(wrong, gain),
                    100 * average_precision_score(wrong, gain),
                    100
                    * np.mean([matches[v].other == swapped[v] for v in swapped if v in matches]),
                    sum(m.video not in swapped for m in named),
                ]
            )
        lines.append([name, *(f"{x:.1f}" for x in np.mean(values, axis=0))])
    return markdown(lines)


class Report:
    """Stored runs, and the half of the people that is told about."""

    def __init__(self, work: Path, half: str):
        self._reporting = half == "reporting"
        self.runs: dict[Setting, dict[str, Any]] = {}
        for name in DATASETS:
            for setting in settings_of(name):
                path = work / f"{'-'.join(map(str, setting))}.pkl"
                if path.exists():
                    self.runs[setting] = pickle.loads(path.read_bytes())
        self.datasets = [d for d in DATASETS if any(s.dataset == d for s in self.runs)]

    def videos(self, run: Mapping[str, Any], *, other: bool = False) -> list[int]:
        """Rows of the videos of the half; of the other half if asked."""
        wanted = self._reporting != other
        return [i for i, v in enumerate(run["videos"]) if v["reporting"] == wanted]

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
            _mean([f["kind"] in RIGHT_KINDS[kind] for f, _ in top]),
            _mean([f["new_label"] == e.label for f, e in top if e.label is not None]),
            _mean([x <= 2.0 for x in off]),
            _mean([x < y for x, y in zip(off, was, strict=True)]),
        ]

    def reliability_table(self, *, list_name: ListName = ListName.STEPS) -> str:
        """Promised and true precision of the 10 surest findings, and of those above a half."""
        lines = [
            [
                *("", "setting", "surest 10: promised", "true", "above a half", "promised", "true"),
                *("next 10 after 5 reviews: promised", "true"),
            ]
        ]
        for dataset in self.datasets:
            calibration = fit_curve(
                [
                    pair
                    for s, run in self.runs.items()
                    if s.dataset != dataset
                    and self._is_calibrated_on(s, list_name)
                    and len((pair := self._odds(run, list_name, self.videos(run, other=True)))[0])
                    >= 10
                ]
            )
            for label, wanted in RELIABILITY.items():
                columns: list[list[float]] = []
                for s, run in self.runs.items():
                    if s.dataset != dataset or not wanted(s):
                        continue
                    # An audit counts all its findings; promises are checked on the half alone.
                    every_N, _ = self._odds(run, list_name, list(range(len(run["videos"]))))
                    odds_N, right_N = self._odds(run, list_name, self.videos(run))
                    if len(odds_N) < 20:
                        continue
                    excess = calibration.excess(every_N)
                    columns.append(
                        _reliability(calibration.probability(odds_N, excess=excess), right_N)
                    )
                if columns:
                    with np.errstate(all="ignore"):
                        mean = np.nanmean(np.array(columns), axis=0)
                    lines.append(
                        [dataset, label, *("-" if np.isnan(x) else f"{x:.2f}" for x in mean)]
                    )
        return markdown(lines)

    @staticmethod
    def _is_calibrated_on(setting: Setting, list_name: ListName) -> bool:
        """Mixes, nothing, and runs that hold errors of the list."""
        if setting.kind in MIXED:
            return True
        kind = PlantedKind(setting.kind)
        belongs = LIST_OF[RIGHT_KINDS[kind][0]] is list_name
        return belongs and (setting.lacks or list_name is not ListName.STEPS)

    @staticmethod
    def _odds(run: Mapping[str, Any], name: ListName, rows: list[int]) -> tuple[Any, Any]:
        pairs = [
            (f["log_odds"], f["error"] is not None)
            for i in rows
            for f in run["videos"][i]["findings"]
            if f["list"] is name
        ]
        pairs.sort(reverse=True)
        return np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs], dtype=bool)

    def false_flags(self) -> str:
        """Findings an hour of clean footage, where a fifth of planted renames' would be missed."""
        lines = [["", "findings an hour without errors above log-odds -1", "0"]]
        for dataset in self.datasets:
            for run in self.of(dataset, "none"):
                rows = self.videos(run)
                hours = sum(len(run["videos"][i]["labelled_T"]) for i in rows) / run["fps"] / 3600
                odds_N, _ = self._odds(run, ListName.STEPS, rows)
                lines.append(
                    [dataset, *(f"{(odds_N > level).sum() / hours:.1f}" for level in (-1.0, 0.0))]
                )
        return markdown(lines)


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


def _reliability(probability_N: FloatArray, right_N: Any) -> list[float]:
    """Of findings in falling order; promises are checked on the same findings."""
    above = probability_N >= 0.5
    after = with_reviews(probability_N, np.arange(5), right_N[:5])
    return [
        probability_N[:10].mean(),
        right_N[:10].mean(),
        above.sum(),
        _mean(probability_N[above].tolist()),
        _mean(right_N[above].tolist()),
        after[5:15].mean(),
        right_N[5:15].mean(),
    ]


def _shared(start: int, stop: int, error: Any) -> float:
    """Frames that a span and an error share, over frames of either."""
    shared = max(0, min(stop, error.stop) - max(start, error.start))
    return float(shared / (stop - start + error.stop - error.start - shared))


def _mean(values: list[Any]) -> float:
    return float(np.mean(values)) if values else float("nan")


def markdown(lines: list[list[Any]]) -> str:
    rule = [["---"] * len(lines[0])]
    return "\n".join(f"| {' | '.join(map(str, x))} |" for x in lines[:1] + rule + lines[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("run", "report", "files"))
    parser.add_argument("--trajectories", type=Path)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--half", choices=("reporting", "choosing"), default="reporting")
    parser.add_argument("--datasets", nargs="+", default=DATASETS, choices=DATASETS)
    arguments = parser.parse_args()
    if arguments.command == "run":
        run_all(arguments.trajectories, arguments.work, arguments.datasets)
        return
    if arguments.command == "files":
        print(files_table(arguments.trajectories, arguments.datasets))
        return
    report = Report(arguments.work, arguments.half)
    print(f"\nFrames, AUC / AP, {arguments.half} half\n\n{report.frame_table()}")
    for dataset in report.datasets:
        print(f"\n{dataset}\n\n{report.frame_table(dataset=dataset)}")
    print(f"\nBehind a rival by more than 2 points\n\n{report.behind_table()}")
    print(f"\nPrecision in the worst frames\n\n{report.budget_table()}")
    print(f"\nFindings, %\n\n{report.findings_report()}")
    print(f"\nFindings beside rivals, AP in %\n\n{report.rival_findings()}")
    print(f"\nFalse findings\n\n{report.false_flags()}")
    for name in ListName:
        print(f"\nReliability, {name}\n\n{report.reliability_table(list_name=name)}")


if __name__ == "__main__":
    main()
