"""What `csl evaluate` prints, from metrics such as `metrics.json` has them."""

import io
from collections import Counter

import pandas as pd
import pytest
from rich.console import Console

from csl_dist.cli.tables.metrics import (
    budget_sentence,
    flag_sentence,
    metrics_table,
    rivals_table,
)
from csl_dist.cli.tables.results import flag_table, frame_table, moved_table
from csl_dist.evaluate.baselines import BASELINES

VALUES = {
    "auc_micro": [0.983, 0.95, 0.99],
    "average_precision": [0.9],
    "precision_top_5": [0.75],
    "recall_top_5": [0.4],
}
NAMES = ("final", "csl", "csl_smoothed", "aum_late_segment", *BASELINES)
METRICS = {
    "videos": 4,
    "frames": 4000,
    "checkpoints": 20,
    "score": "aum_late_segment",
    "scorer": "ensemble",
    "temporal_scorer": "transformer",
    "top_percent_minutes": {"mislabel": {"5": 1.25}},
    "scorers": {
        scorer: {"mislabel": dict.fromkeys(NAMES, VALUES)}
        for scorer in ("transformer", "framewise", "ensemble")
    },
    "flags": {"precision": 0.94, "recall": 0.5, "kind_accuracy": 1.0},
}


def printed(table: object, width: int = 80) -> str:
    console = Console(width=width, file=io.StringIO())
    console.print(table)
    return console.file.getvalue()


def test_tables_fit_a_terminal_of_80_columns() -> None:
    for table in (metrics_table(METRICS), rivals_table(METRICS)):
        text = printed(table)
        assert "…" not in text
        assert "98.3" in text


def test_metric_that_could_not_be_computed_is_a_dash() -> None:
    assert " - " in printed(metrics_table(METRICS)), "there is no EDA here"


def test_sentences_tell_shares_in_percent() -> None:
    assert flag_sentence(METRICS).startswith("flags: 94% of flags are right, 50% of known errors")
    assert budget_sentence(METRICS, "mislabel") == (
        "review: the worst 5 % of the footage, 1.2 minutes, are wrong to 75.0 % and hold 40.0 % "
        "of the mislabel errors' frames"
    )


FLAG = {
    "rank": 117,
    "video": "2024-11-03 Fall 10 Mueller left camera",
    "start_seconds": 12345.6,
    "stop_seconds": 12389.1,
    "start": 308640,
    "stop": 309728,
    "score": -12.34,
    "probability": 0.97,
    "fix": "rename 308640 309728",
    "fix_label": "CalotTriangleDissection",
    "kind": "mislabel",
    "label": "GallbladderDissection",
    "suggested": "CalotTriangleDissection",
    "suggested_probability": 0.88,
}


@pytest.mark.parametrize("width", [80, 120, 200])
def test_flags_are_broken_over_lines_and_never_cut(width: int) -> None:
    text = printed(flag_table(pd.DataFrame([FLAG]), width=width), width)
    assert max(map(len, text.splitlines())) <= width
    for words in ("12345.6-12389.1", "97%", "wrong", "fix"):
        assert words in text
    assert "…" not in text
    wanted = "".join(f"{FLAG['video']}{FLAG['label']}rename{FLAG['fix_label']}".split())
    assert not Counter(wanted) - Counter("".join(text.split())), "every letter of names is there"
    assert ("GallbladderDissection" in text) == (width > 80), "words are cut last of all"
    assert ("no room for frames, score, suggested" in text) == (width < 200)


@pytest.mark.parametrize("width", [80, 100, 120])
def test_names_are_broken_between_their_words(width: int) -> None:
    names = {"video": "Knot_Tying_S05_T05", "label": "pull_suture_both"}
    flag = FLAG | names | {"fix_label": "reach_suture", "suggested": "reach_suture"}
    text = printed(flag_table(pd.DataFrame([flag] * 3), width=width), width)
    pieces = {piece for word in text.replace("_", " ").split() for piece in word.split()}
    for name in (*names.values(), "rename", "reach_suture"):
        assert set(name.split("_")) <= pieces


@pytest.mark.parametrize("width", [80, 120])
def test_moved_flags_tell_what_changed_once_and_fit(width: int) -> None:
    moved = {"video": "Knot_Tying_S05_T05", "label": "pull_suture_both"}
    before = {"start": 69, "stop": 82, "kind": "insert", "suggested": "reach_suture"}
    now = before | {"stop": 90, "kind": "mislabel"}
    for when, flag in (("before", before), ("now", now)):
        moved |= {f"{name} {when}": value for name, value in flag.items()}
    text = printed(moved_table(pd.DataFrame([moved]), width=width), width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    together = "".join(text.split())
    assert together.count("→") == 2, "the suggestion is the same"
    for word in ("69-81", "69-89", "many", "wrong"):
        assert word in text


def test_flag_without_a_fix_has_a_dash() -> None:
    ambiguous = FLAG | {"fix": float("nan"), "fix_label": None, "kind": "ambiguous"}
    text = printed(flag_table(pd.DataFrame([FLAG, ambiguous]), width=120), 120)
    assert "nan" not in text
    assert " - " in text


@pytest.mark.parametrize(("width", "num_left_out"), [(60, 7), (80, 5), (120, 0), (160, 0)])
def test_scores_are_whole_at_any_width_and_what_is_left_out_is_told(
    width: int, num_left_out: int
) -> None:
    names = ("aum", "aum_late", "csl", "csl_late", "final", "margin", "margin_late", "deciding")
    scores = pd.DataFrame(
        {"frame": [120], "seconds": [1234.56], "label": ["Brötchen schneiden"]}
        | {name: [-10.25] for name in (*names, "suspicion", "order")}
    )
    out = io.StringIO()
    Console(file=out, width=width).print(frame_table(scores, width=width))
    text = out.getvalue()
    assert max(map(len, text.splitlines())) <= width
    assert "1234.56" in text
    assert "".join(text.split()).count("-10.25") == len(names) + 2 - num_left_out
    for word in ("Brötchen", "schneiden", "suspicion"):
        assert word in text
    told = " ".join(text.split()).partition("no room for ")[2].partition(";")[0]
    assert len(told.split(", ")) == max(1, num_left_out), told


def test_boundary_says_how_far_it_moves_and_where() -> None:
    flags = pd.DataFrame(
        {
            "rank": [1, 2, 3],
            "video": "v",
            "start": 69,
            "stop": 77,
            "start_seconds": 34.5,
            "stop_seconds": 38.5,
            "score": 0.5,
            "probability": 0.9,
            "fix": ["boundary 77 69", "boundary 69 77", "rename 69 77"],
            "fix_label": "b",
            "kind": "boundary",
            "label": "a",
            "suggested": "b",
            "suggested_probability": 0.9,
        }
    )
    out = io.StringIO()
    Console(file=out, width=120).print(flag_table(flags, width=120))
    lines = out.getvalue().splitlines()
    told = ["boundary 4.0 s earlier", "boundary 4.0 s later", "rename to b"]
    for rank, words in enumerate(told, start=1):
        assert any(line.split()[:1] == [str(rank)] and words in line for line in lines)
