"""The paper's tables from made-up metrics."""

import io
from collections.abc import Sequence

import pytest
from rich.console import Console

from csl_dist.cli.tables.paper import paper_table
from csl_dist.config import Cholec80Config, EgoperConfig, ManifestConfig
from csl_dist.evaluate.baselines import BASELINES
from csl_dist.evaluate.paper import CHOLEC80, EGOPER, STRATEGIES, Published, published_for
from csl_dist.evaluate.paper_tables import (
    TITLES,
    SeedResults,
    cell,
    latex,
    markdown,
    paper_tables,
)
from csl_dist.evaluate.reproduce import COMPARED
from csl_dist.types import ErrorKind

KINDS = (ErrorKind.MISLABEL, ErrorKind.DISORDER)


def metrics(
    auc: float, scorers: Sequence[str] = ("transformer", "framewise", "ensemble")
) -> dict[str, object]:
    names = (*BASELINES, *COMPARED, "aum_late_segment")
    values = {"auc_micro": [auc], "average_precision": [auc / 2], "eda_top_10": [0.5, 0.4, 0.6]}
    by_kind = {kind.value: dict.fromkeys(names, values) for kind in KINDS}
    return {
        "score": "aum_late_segment",
        "scorer": "ensemble",
        "temporal_scorer": "transformer",
        "scorers": dict.fromkeys(scorers, by_kind),
        "flags": {"precision": 0.9, "recall": auc},
    }


DATASET = {
    "train": 50,
    "validation": 10,
    "audit": 20,
    "train minutes": 37.96,
    "held-out minutes": 32.0,
    "classes": 7,
}


def results(auc: float, **others: object) -> SeedResults:
    by_smoothing = {name: dict.fromkeys(STRATEGIES, auc) for name in ("", "_smoothed")}
    noise = {
        (kind, percent): metrics(auc - percent / 1000) for kind in KINDS for percent in (10, 30)
    }
    other = {"auc_micro": auc, "eda_top_10": 0.25, "videos": 4.0}
    made = {
        "dataset": DATASET,
        "main": metrics(auc),
        "sampling": {kind.value: by_smoothing for kind in KINDS},
        "other_noise": {"insert": dict.fromkeys(COMPARED, other)},
        "noise": noise,
        "encoders": {},
    }
    return SeedResults(**(made | others))


def test_tables_have_means_over_seeds_and_the_papers_figures() -> None:
    tables = paper_tables([results(0.9), results(0.8)], CHOLEC80)
    main = tables["main"].set_index(["error", "method"])
    assert main.loc[("mislabel", "csl_smoothed"), "AUC"] == "85.0 ± 7.1"
    assert main.loc[("mislabel", "paper: CSL"), "AUC"] == "92.0"
    assert main.loc[("-", "paper: S3R"), "EDA"] == "57.2"
    sampling = tables["sampling"].set_index(["error", "figures"])
    assert sampling.loc[("disorder", "paper"), "hybrid"] == "69.7"
    assert sampling.loc[("disorder", "ours, as it is"), "last"] == "85.0 ± 7.1"
    final = tables["final_against_csl"].set_index("error")
    ours = ["final", "csl", "final smoothed", "csl smoothed"]
    assert list(final.columns) == [*ours, "paper: final epoch", "paper: CSL"]
    assert final.loc["disorder", "paper: final epoch"] == "44.6"
    assert tables["dataset"].set_index("figures").loc["ours", "train minutes"] == "38"
    assert tables["dataset"].set_index("figures").loc["paper", "held-out minutes"] == "32.3"
    assert main.loc[("mislabel", "csl"), "random's EDA"] == "50.0 ± 0.0"
    noise = tables["training_noise"].set_index("training noise")
    assert list(noise.index) == ["0 %", "10 %", "30 %"]
    assert noise.loc["10 %", "mislabel AUC"] == "84.0 ± 7.1"
    assert noise.loc["10 %", "paper: disorder AUC"] == "76.9"
    assert noise.loc["30 %", "paper: disorder AUC"] == "-", "a rate that the paper does not have"
    other = tables["other_noise"].set_index("error").loc["insert"]
    assert (other.videos, other["csl smoothed EDA"]) == ("4", "25.0 ± 0.0")
    architectures = tables["architectures"].set_index("error")
    assert architectures.loc["disorder", "paper: cnn"] == "48.1"
    assert "frozen_against_adapted" not in tables


def test_tables_of_another_dataset_have_no_published_figures() -> None:
    encoders = {"frozen": metrics(0.9), "adapted": metrics(0.7, ("transformer", "cnn"))}
    tables = paper_tables([results(0.9, noise={}, encoders=encoders)], Published())
    assert not tables["main"].method.str.startswith("paper").any()
    assert "training_noise" not in tables
    frozen = tables["frozen_against_adapted"].iloc[0]
    assert (frozen.frozen, frozen.adapted) == ("90.0", "70.0")
    assert not any("paper" in column for table in tables.values() for column in table.columns)
    architectures = tables["architectures"].set_index("error").loc["mislabel"]
    assert (architectures.transformer, architectures.cnn) == ("90.0", "70.0")


def test_committee_has_its_own_score_and_no_column_among_architectures() -> None:
    main = metrics(0.9) | {"score": "suspicion", "scorer": "committee"}
    both = {"suspicion": {"auc_micro": [0.95]}, "order": {"auc_micro": [0.97]}}
    own = {kind.value: both for kind in KINDS}
    main["scorers"] = {**main["scorers"], "committee": own}  # type: ignore[dict-item]
    tables = paper_tables([results(0.9, main=main)], Published())
    assert "committee" not in tables["architectures"].columns
    methods = tables["main"].set_index(["error", "method"])
    row = methods.loc[("mislabel", "suspicion (committee)")]
    assert (row.AUC, row.EDA) == ("95.0", "-")
    assert methods.loc[("disorder", "order (committee)")].AUC == "97.0", "a list of its own"
    assert ("disorder", "suspicion (committee)") not in methods.index


def test_run_that_decides_as_the_paper_does_has_no_row_twice() -> None:
    main = metrics(0.9) | {"score": "csl_smoothed", "scorer": "transformer"}
    methods = paper_tables([results(0.9, main=main)], Published())["main"].method
    assert list(methods).count("csl_smoothed") == len(KINDS)
    assert not methods.str.contains("(transformer)", regex=False).any()


def test_brought_scores_are_rows_of_the_main_table() -> None:
    brought = {kind.value: {"auc_micro": [0.6], "eda_top_10": [0.3]} for kind in KINDS}
    main = metrics(0.9) | {"brought": {"HF2-VAD": brought}}
    table = paper_tables([results(0.9, main=main)], Published())["main"]
    row = table.set_index(["error", "method"]).loc[("disorder", "HF2-VAD (brought)")]
    assert (row.AUC, row.EDA, row.AP) == ("60.0", "30.0", "-")


def test_tables_are_written_as_markdown_and_latex() -> None:
    table = paper_tables([results(0.9), results(0.8)], CHOLEC80)["training_noise"]
    assert markdown(table).splitlines()[1].startswith("| --- |")
    text = latex(table)
    assert r"\toprule" in text
    assert r"10 \%" in text
    assert r"$\pm$" in text


@pytest.mark.parametrize("width", [80, 120])
def test_tables_fit_a_terminal_with_whole_figures(width: int) -> None:
    encoders = {"frozen": metrics(0.9), "adapted": metrics(0.7, ("transformer", "cnn"))}
    seeds = [results(auc, encoders=encoders) for auc in (1.0, 0.8)]
    tables = paper_tables(seeds, CHOLEC80)
    assert set(tables) == set(TITLES)
    for name, frame in tables.items():
        console = Console(width=width, file=io.StringIO())
        console.print(paper_table(TITLES[name], frame, width=width))
        text = console.file.getvalue()
        assert max(map(len, text.splitlines())) <= width
        figures = [cell for row in frame.to_numpy().tolist() for cell in row if "±" in cell]
        assert text.count("±") == len(figures), name
        assert [c for c in figures if c.replace(" ", "") not in text] == [], name
        assert "…" not in text


def test_cell_of_no_seed_and_of_one() -> None:
    assert (cell([]), cell([0.5]), cell([0.5, 0.5])) == ("-", "50.0", "50.0 ± 0.0")


def test_published_figures_are_found_by_layout_and_task() -> None:
    assert published_for(Cholec80Config(path="d")) is CHOLEC80
    assert published_for(EgoperConfig(task="tea", path="d")) is EGOPER["tea"]
    assert published_for(ManifestConfig(path="d")) == Published()
    csl = [task.csl[ErrorKind.EXECUTION][0] for task in EGOPER.values()]
    assert sum(csl) / 5 == pytest.approx(57.0, abs=0.05), "the mean that the paper states"
