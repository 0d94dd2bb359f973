"""The paper's tables from what its protocol's runs measured, as text, Markdown and LaTeX.

A table has our figures, the mean over seeds with its standard deviation, and the paper's beside
them where it has the dataset. All tables but those of training noise and of the other encoder come
from the same trajectories.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from csl_dist.evaluate.baselines import BASELINES
from csl_dist.evaluate.paper import STRATEGIES, Published
from csl_dist.evaluate.reproduce import ADAPTED, COMPARED, FROZEN
from csl_dist.measures import PAPERS_SCORE, SEGMENT, SMOOTHED, own_score
from csl_dist.types import ErrorKind

EDA = {ErrorKind.EXECUTION: "eda_egoper"}
"""Which EDA a kind is measured by; the top 10 % where there is no other."""

TITLES = {
    "dataset": "Table 1: the dataset",
    "main": "Tables 2 and 3: EDA, AUC and average precision of the temporal model's scores",
    "final_against_csl": "Table 4: AUC of the final epoch's loss and of CSL",
    "architectures": "Table 5: AUC of smoothed CSL by architecture",
    "training_noise": "Table 6: AUC of smoothed CSL after training on noisy labels",
    "sampling": "Table A1: AUC of CSL by checkpoint sampling",
    "frozen_against_adapted": "Table A2: AUC of smoothed CSL, encoder frozen and adapted",
    "other_noise": "Noise that the paper names without figures, in videos without errors",
    "flags": "Flags of this run's own rule",
}
"""What each table shows, and its number in the paper; in the order of printing."""

SMOOTHING_WORDS = {"": "as it is", SMOOTHED: "smoothed"}

Values = list[float]
"""A figure of every seed, 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedResults:
    """What the runs of one seed measured: their `metrics.json`, and more of their trajectories."""

    dataset: dict[str, float]
    main: dict[str, Any]
    sampling: dict[str, dict[str, dict[str, float]]]
    """AUC by kind, smoothing and strategy."""
    other_noise: dict[str, dict[str, dict[str, float]]]
    """Metrics by kind and score."""
    noise: dict[tuple[ErrorKind, int], dict[str, Any]]
    encoders: dict[str, dict[str, Any]]
    """`frozen` and `adapted`, where both were run."""


def paper_tables(seeds: Sequence[SeedResults], paper: Published) -> dict[str, pd.DataFrame]:
    """The paper's tables by name, cells as text."""
    first = seeds[0].main
    temporal = first["temporal_scorer"]
    kinds = [ErrorKind(kind) for kind in first["scorers"][temporal]]
    tables = {
        "dataset": _dataset_table(seeds[0].dataset, paper),
        "main": _main_table(seeds, kinds, paper),
        "final_against_csl": _final_table(seeds, temporal, kinds, paper),
        "architectures": _architectures_table(seeds, temporal, kinds, paper),
        "sampling": _sampling_table(seeds, kinds, paper),
    }
    if seeds[0].noise:
        tables["training_noise"] = _noise_table(seeds, temporal, paper)
    if any(seed.other_noise for seed in seeds):
        tables["other_noise"] = _other_noise_table(seeds)
    if seeds[0].encoders:
        tables["frozen_against_adapted"] = _encoders_table(seeds, temporal, kinds, paper)
    tables["flags"] = pd.DataFrame(
        [{name: cell(_values(seeds, lambda s: s.main["flags"][name])) for name in first["flags"]}]  # noqa: B023
    )
    return {name: _printable(tables[name]) for name in TITLES if name in tables}


def _printable(table: pd.DataFrame) -> pd.DataFrame:
    """The table with a dash for what is not there, without columns of nothing from the paper."""
    table = table.fillna("-")
    empty = [c for c in table.columns if c.startswith("paper: ") and (table[c] == "-").all()]
    return table.drop(columns=empty)


def _dataset_table(ours: Mapping[str, float], paper: Published) -> pd.DataFrame:
    """Videos, minutes and classes."""
    rows = [{"figures": "ours"} | {name: f"{value:g}" for name, value in _rounded(ours).items()}]
    if paper.dataset:
        rows.append({"figures": "paper"} | dict(zip(ours, paper.dataset, strict=True)))
    return pd.DataFrame(rows)


def _rounded(values: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 1) for name, value in values.items()}


def _main_table(
    seeds: Sequence[SeedResults], kinds: Sequence[ErrorKind], paper: Published
) -> pd.DataFrame:
    """EDA, AUC and average precision of what the paper compares, of the baselines, of methods whose
    scores were brought, and of ours; beside each EDA that of noise which is smoothed alike."""
    first = seeds[0].main
    temporal = first["temporal_scorer"]
    names = [*BASELINES, *COMPARED[1:]]
    papers = {name: (temporal, name) for name in names}
    brought = list(first.get("brought", {}))
    rows: list[dict[str, str]] = [
        {"method": f"paper: {method}", "EDA": figure(eda), "AUC": figure(auc)}
        for method, (eda, auc) in paper.main.items()
    ]
    for kind in kinds:
        if kind in paper.csl:
            eda, auc = paper.csl[kind]
            rows.append(
                {"error": kind, "method": "paper: CSL", "EDA": figure(eda), "AUC": figure(auc)}
            )
        own = own_score(first["score"], kind)
        ours = dict(papers)
        if (first["scorer"], own) not in papers.values():
            ours[f"{own} ({first['scorer']})"] = (first["scorer"], own)
        for method, (scorer, score) in ours.items():
            by_seed = [s.main["scorers"][scorer][kind].get(score, {}) for s in seeds]
            noise = "random_smoothed" if score.endswith((SMOOTHED, SEGMENT)) else "random"
            chance = [s.main["scorers"][temporal][kind].get(noise, {}) for s in seeds]
            rows.append({"error": kind, "method": method} | _main_cells(kind, by_seed, chance))
        for method in brought:
            by_seed = [s.main["brought"][method][kind] for s in seeds]
            chance = [s.main["scorers"][temporal][kind].get("random", {}) for s in seeds]
            row = {"error": kind, "method": f"{method} (brought)"}
            rows.append(row | _main_cells(kind, by_seed, chance))
    columns = ["error", "method", "EDA", "random's EDA", "AUC", "AP"]
    return pd.DataFrame(rows, columns=columns)


def _main_cells(
    kind: ErrorKind, by_seed: Sequence[Mapping[str, Any]], chance: Sequence[Mapping[str, Any]]
) -> dict[str, str]:
    def of(metric: str, seeds: Sequence[Mapping[str, Any]]) -> str:
        return cell([float(found[metric][0]) for found in seeds if metric in found])

    eda = EDA.get(kind, "eda_top_10")
    return {
        "EDA": of(eda, by_seed),
        "random's EDA": of(eda, chance),
        "AUC": of("auc_micro", by_seed),
        "AP": of("average_precision", by_seed),
    }


def _final_table(
    seeds: Sequence[SeedResults], temporal: str, kinds: Sequence[ErrorKind], paper: Published
) -> pd.DataFrame:
    """Loss of the last epoch beside CSL, both as they are and both smoothed."""
    return pd.DataFrame(
        [
            {"error": kind}
            | {
                name.replace("_", " "): cell(
                    _values(seeds, lambda s: _auc(s.main, temporal, kind, name))  # noqa: B023
                )
                for name in COMPARED
            }
            | {
                "paper: final epoch": figure(_at(paper.sampling.get(kind), 0)),
                "paper: CSL": figure(_at(paper.sampling.get(kind), 1)),
            }
            for kind in kinds
        ]
    )


def _architectures_table(
    seeds: Sequence[SeedResults], temporal: str, kinds: Sequence[ErrorKind], paper: Published
) -> pd.DataFrame:
    """Every scorer with the paper's score; `cnn` of the adapted encoder, wherever it was run."""

    def run_with(seed: SeedResults, scorer: str) -> Mapping[str, Any]:
        runs = (seed.main, *seed.encoders.values())
        return next(run for run in runs if scorer in run["scorers"])

    scorers = [
        name
        for run in (seeds[0].main, *seeds[0].encoders.values())
        for name, by_kind in run["scorers"].items()
        if any(PAPERS_SCORE in by_name for by_name in by_kind.values())
    ]
    return pd.DataFrame(
        [
            {"error": kind}
            | {
                scorer: cell(
                    _values(seeds, lambda s: _auc(run_with(s, scorer), scorer, kind))  # noqa: B023
                )
                for scorer in dict.fromkeys(scorers)
            }
            | {
                f"paper: {name}": figure(value)
                for name, value in paper.architectures.get(kind, {}).items()
            }
            for kind in kinds
        ]
    )


def _sampling_table(
    seeds: Sequence[SeedResults], kinds: Sequence[ErrorKind], paper: Published
) -> pd.DataFrame:
    rows = []
    for kind in kinds:
        for smoothing, words in SMOOTHING_WORDS.items():
            ours = {
                s: cell(_values(seeds, lambda r: r.sampling[kind][smoothing][s]))  # noqa: B023
                for s in STRATEGIES
            }
            rows.append({"error": kind, "figures": f"ours, {words}"} | ours)
        if kind in paper.sampling:
            theirs = dict(zip(STRATEGIES, map(figure, paper.sampling[kind]), strict=True))
            rows.append({"error": kind, "figures": "paper"} | theirs)
    return pd.DataFrame(rows)


def _noise_table(seeds: Sequence[SeedResults], temporal: str, paper: Published) -> pd.DataFrame:
    rows = []
    kinds = list(dict.fromkeys(kind for kind, _ in seeds[0].noise))
    for percent in (0, *dict.fromkeys(percent for _, percent in seeds[0].noise)):
        row = {"training noise": f"{percent} %"}
        for kind in kinds:
            row[f"{kind} AUC"] = cell(
                _values(
                    seeds,
                    lambda s: _auc(s.noise[kind, percent] if percent else s.main, temporal, kind),  # noqa: B023
                )
            )
            if kind in paper.noise:
                row[f"paper: {kind} AUC"] = figure(paper.noise[kind].get(percent))
        rows.append(row)
    return pd.DataFrame(rows)


def _other_noise_table(seeds: Sequence[SeedResults]) -> pd.DataFrame:
    """The paper names these kinds of noise without figures."""
    rows = []
    for kind in seeds[0].other_noise:
        own = [seed.other_noise[kind] for seed in seeds]
        row: dict[str, str] = {"error": kind, "videos": f"{own[0]['csl']['videos']:g}"}
        for name in COMPARED:
            aucs = [by_name[name].get("auc_micro") for by_name in own]
            row[f"{name.replace('_', ' ')} AUC"] = cell([auc for auc in aucs if auc is not None])
        edas = [by_name[PAPERS_SCORE].get("eda_top_10") for by_name in own]
        row["csl smoothed EDA"] = cell([eda for eda in edas if eda is not None])
        rows.append(row)
    return pd.DataFrame(rows)


def _encoders_table(
    seeds: Sequence[SeedResults], temporal: str, kinds: Sequence[ErrorKind], paper: Published
) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "error": kind,
                "frozen": cell(
                    _values(seeds, lambda s: _auc(s.encoders[FROZEN], temporal, kind))  # noqa: B023
                ),
                "adapted": cell(
                    _values(seeds, lambda s: _auc(s.encoders[ADAPTED], temporal, kind))  # noqa: B023
                ),
                "paper: frozen": figure(paper.frozen.get(kind)),
                "paper: adapted": figure(_at(paper.csl.get(kind), 1)),
            }
            for kind in kinds
        ]
    )


def _auc(
    metrics: Mapping[str, Any], scorer: str, kind: ErrorKind, score: str = PAPERS_SCORE
) -> float:
    return float(metrics["scorers"][scorer][kind][score]["auc_micro"][0])


def _values(seeds: Sequence[SeedResults], read: Callable[[SeedResults], float]) -> Values:
    """A figure of every seed; of those that have it."""
    found = []
    for seed in seeds:
        try:
            found.append(float(read(seed)))
        except KeyError:
            continue
    return found


def _at(figures: Sequence[float] | None, place: int) -> float | None:
    return None if figures is None else figures[place]


def cell(values: Values) -> str:
    """Mean over seeds in percent, with the standard deviation where there are several."""
    if not values:
        return "-"
    mean = f"{100 * np.mean(values):.1f}"
    return mean if len(values) == 1 else f"{mean} ± {100 * np.std(values, ddof=1):.1f}"


def figure(value: float | None) -> str:
    """One of the paper's figures, which are in percent already."""
    return "-" if value is None else f"{value:.1f}"


def markdown(table: pd.DataFrame) -> str:
    lines = [list(table.columns), ["---"] * table.shape[1], *table.to_numpy().tolist()]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines) + "\n"


def latex(table: pd.DataFrame) -> str:
    """A tabular environment for the booktabs package."""
    escaped = table.rename(columns=_latex_text).map(_latex_text)
    text: str = escaped.style.hide(axis="index").to_latex(hrules=True)
    return text


def _latex_text(text: str) -> str:
    for plain, escaped in (("%", r"\%"), ("_", r"\_"), ("±", r"$\pm$")):
        text = text.replace(plain, escaped)
    return text
