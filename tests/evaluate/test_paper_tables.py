"""The paper's tables from made-up metrics."""

import pytest

from csl_dist.config import Cholec80Config, EgoperConfig, ManifestConfig
from csl_dist.evaluate.baselines import BASELINES
from csl_dist.evaluate.paper import CHOLEC80, EGOPER, STRATEGIES, Published, published_for
from csl_dist.evaluate.paper_tables import SeedResults, cell, latex, markdown, paper_tables
from csl_dist.types import ErrorKind

KINDS = (ErrorKind.MISLABEL, ErrorKind.DISORDER)


def metrics(auc: float) -> dict[str, object]:
    names = (*BASELINES, "csl_smoothed", "aum_late_segment")
    values = {"auc_micro": [auc], "average_precision": [auc / 2], "eda_top_10": [0.5, 0.4, 0.6]}
    by_kind = {kind.value: dict.fromkeys(names, values) for kind in KINDS}
    return {
        "score": "aum_late_segment",
        "scorer": "ensemble",
        "temporal_scorer": "transformer",
        "scorers": dict.fromkeys(("transformer", "framewise", "ensemble"), by_kind),
        "flags": {"precision": 0.9, "recall": auc},
    }


def results(auc: float, **others: object) -> SeedResults:
    sampling = {kind.value: dict.fromkeys(STRATEGIES, auc) for kind in KINDS}
    noise = {
        (kind, percent): metrics(auc - percent / 1000) for kind in KINDS for percent in (10, 20)
    }
    return SeedResults(
        **({"main": metrics(auc), "sampling": sampling, "noise": noise, "frozen": None} | others)
    )


def test_tables_have_means_over_seeds_and_the_papers_figures() -> None:
    tables = paper_tables([results(0.9), results(0.8)], CHOLEC80)
    main = tables["main"].set_index(["error", "method"])
    assert main.loc[("mislabel", "csl_smoothed (transformer)"), "AUC"] == "85.0 ± 7.1"
    assert main.loc[("mislabel", "paper: CSL"), "AUC"] == "92.0"
    assert main.loc[("-", "paper: S3R"), "EDA"] == "57.2"
    sampling = tables["sampling"].set_index(["error", "figures"])
    assert sampling.loc[("disorder", "paper"), "hybrid"] == "69.7"
    noise = tables["training_noise"].set_index("training noise")
    assert noise.loc["20 %", "mislabel AUC"] == "83.0 ± 7.1"
    assert noise.loc["20 %", "paper: disorder AUC"] == "75.4"
    architectures = tables["architectures"].set_index("error")
    assert architectures.loc["disorder", "paper: cnn"] == "48.1"
    assert "frozen_against_adapted" not in tables


def test_tables_of_another_dataset_have_no_published_figures() -> None:
    tables = paper_tables([results(0.9, noise={}, frozen=metrics(0.7))], Published())
    assert not tables["main"].method.str.startswith("paper").any()
    assert "training_noise" not in tables
    frozen = tables["frozen_against_adapted"].iloc[0]
    assert (frozen.frozen, frozen.adapted, frozen["paper: frozen"]) == ("70.0", "90.0", "-")


def test_tables_are_written_as_markdown_and_latex() -> None:
    table = paper_tables([results(0.9), results(0.8)], CHOLEC80)["training_noise"]
    assert markdown(table).splitlines()[1].startswith("| --- |")
    text = latex(table)
    assert r"\toprule" in text
    assert r"10 \%" in text
    assert r"$\pm$" in text


def test_cell_of_no_seed_and_of_one() -> None:
    assert (cell([]), cell([0.5]), cell([0.5, 0.5])) == ("-", "50.0", "50.0 ± 0.0")


def test_published_figures_are_found_by_layout_and_task() -> None:
    assert published_for(Cholec80Config(path="d")) is CHOLEC80
    assert published_for(EgoperConfig(task="tea", path="d")) is EGOPER["tea"]
    assert published_for(ManifestConfig(path="d")) == Published()
    csl = [task.csl[ErrorKind.EXECUTION][0] for task in EGOPER.values()]
    assert sum(csl) / 5 == pytest.approx(57.0, abs=0.05), "the mean that the paper states"
