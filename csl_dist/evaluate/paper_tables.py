"""The paper's tables from what its protocol's runs measured, as text, Markdown and LaTeX.

A table has our figures, the mean over seeds with its standard deviation, and the paper's beside
them where it has the dataset. All tables but those of training noise and of the frozen encoder come
from the same trajectories.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from csl_dist.evaluate.baselines import BASELINES
from csl_dist.evaluate.paper import STRATEGIES, Published
from csl_dist.evaluate.reproduce import NOISE_KINDS, NOISE_PERCENTS
from csl_dist.measures import PAPERS_SCORE
from csl_dist.types import ErrorKind

EDA = {ErrorKind.EXECUTION: "eda_egoper"}
"""Which EDA a kind is measured by; the top 10 % where there is no other."""

Values = list[float]
"""A figure of every seed, 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedResults:
    """What the runs of one seed measured: their `metrics.json`, and the sampling of checkpoints."""

    main: dict[str, Any]
    sampling: dict[str, dict[str, float]]
    noise: dict[tuple[ErrorKind, int], dict[str, Any]]
    frozen: dict[str, Any] | None


def paper_tables(seeds: Sequence[SeedResults], paper: Published) -> dict[str, pd.DataFrame]:
    """The paper's tables by name, cells as text."""
    first = seeds[0].main
    temporal = first["temporal_scorer"]
    kinds = [ErrorKind(kind) for kind in first["scorers"][temporal]]

    def values(scorer: str, kind: ErrorKind, score: str, metric: str) -> Values:
        return _values(seeds, lambda s: s.main["scorers"][scorer][kind][score][metric][0])

    tables = {
        "main": _main_table(values, first, kinds, paper),
        "final_against_csl": pd.DataFrame(
            [
                {
                    "error": kind,
                    "final epoch": cell(values(temporal, kind, "final", "auc_micro")),
                    "CSL": cell(values(temporal, kind, PAPERS_SCORE, "auc_micro")),
                    "paper: final epoch": figure(_at(paper.sampling.get(kind), 0)),
                    "paper: CSL": figure(_at(paper.sampling.get(kind), 1)),
                }
                for kind in kinds
            ]
        ),
        "architectures": pd.DataFrame(
            [
                {"error": kind}
                | {s: cell(values(s, kind, PAPERS_SCORE, "auc_micro")) for s in first["scorers"]}
                | {
                    f"paper: {name}": figure(value)
                    for name, value in paper.architectures.get(kind, {}).items()
                }
                for kind in kinds
            ]
        ),
        "sampling": _sampling_table(seeds, kinds, paper),
    }
    if seeds[0].noise:
        tables["training_noise"] = _noise_table(seeds, temporal, paper)
    if seeds[0].frozen is not None:
        tables["frozen_against_adapted"] = _frozen_table(seeds, temporal, kinds, paper)
    tables["flags"] = pd.DataFrame(
        [{name: cell(_values(seeds, lambda s: s.main["flags"][name])) for name in first["flags"]}]  # noqa: B023
    )
    return {name: table.fillna("-") for name, table in tables.items()}


def _main_table(
    values: Callable[[str, ErrorKind, str, str], Values],
    first: Mapping[str, Any],
    kinds: Sequence[ErrorKind],
    paper: Published,
) -> pd.DataFrame:
    """EDA, AUC and average precision of what the paper compares, of the baselines and of ours."""
    temporal = first["temporal_scorer"]
    ours = {f"{name} ({temporal})": (temporal, name) for name in (*BASELINES, PAPERS_SCORE)}
    ours[f"{first['score']} ({first['scorer']})"] = (first["scorer"], first["score"])
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
        rows += [
            {
                "error": kind,
                "method": method,
                "EDA": cell(values(scorer, kind, score, EDA.get(kind, "eda_top_10"))),
                "AUC": cell(values(scorer, kind, score, "auc_micro")),
                "AP": cell(values(scorer, kind, score, "average_precision")),
            }
            for method, (scorer, score) in ours.items()
        ]
    return pd.DataFrame(rows, columns=["error", "method", "EDA", "AUC", "AP"])


def _sampling_table(
    seeds: Sequence[SeedResults], kinds: Sequence[ErrorKind], paper: Published
) -> pd.DataFrame:
    rows = []
    for kind in kinds:
        ours = {s: cell(_values(seeds, lambda r: r.sampling[kind][s])) for s in STRATEGIES}  # noqa: B023
        rows.append({"error": kind, "figures": "ours"} | ours)
        if kind in paper.sampling:
            theirs = dict(zip(STRATEGIES, map(figure, paper.sampling[kind]), strict=True))
            rows.append({"error": kind, "figures": "paper"} | theirs)
    return pd.DataFrame(rows)


def _noise_table(seeds: Sequence[SeedResults], temporal: str, paper: Published) -> pd.DataFrame:
    def auc(metrics: Mapping[str, Any], kind: ErrorKind) -> float:
        return float(metrics["scorers"][temporal][kind][PAPERS_SCORE]["auc_micro"][0])

    rows = []
    for percent in (0, *NOISE_PERCENTS):
        row = {"training noise": f"{percent} %"}
        for kind in NOISE_KINDS:
            row[f"{kind} AUC"] = cell(
                _values(
                    seeds,
                    lambda s: auc(s.noise[kind, percent] if percent else s.main, kind),  # noqa: B023
                )
            )
            if kind in paper.noise:
                row[f"paper: {kind} AUC"] = figure(paper.noise[kind][percent])
        rows.append(row)
    return pd.DataFrame(rows)


def _frozen_table(
    seeds: Sequence[SeedResults], temporal: str, kinds: Sequence[ErrorKind], paper: Published
) -> pd.DataFrame:
    def auc(metrics: Any, kind: ErrorKind) -> float:
        return float(metrics["scorers"][temporal][kind][PAPERS_SCORE]["auc_micro"][0])

    return pd.DataFrame(
        [
            {
                "error": kind,
                "frozen": cell(_values(seeds, lambda s: auc(s.frozen, kind))),  # noqa: B023
                "adapted": cell(_values(seeds, lambda s: auc(s.main, kind))),  # noqa: B023
                "paper: frozen": figure(paper.frozen.get(kind)),
                "paper: adapted": figure(_at(paper.csl.get(kind), 1)),
            }
            for kind in kinds
        ]
    )


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
