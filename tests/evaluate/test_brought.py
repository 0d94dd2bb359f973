"""Frame scores of other methods, from files."""

from dataclasses import replace
from pathlib import Path

import made_run
import numpy as np
import pytest
from rich.console import Console

from csl_dist import pipeline
from csl_dist.cli.tables.metrics import rivals_table
from csl_dist.errors import ConfigError, DataError
from csl_dist.evaluate.brought import named_folders, read_scores
from csl_dist.types import UNLABELLED, Annotation

LABELS_T = np.array([0, 0, 1, UNLABELLED])
ANNOTATION = Annotation(video="a", labels_T=LABELS_T, times_T=np.arange(4) / 2)


def read(folder: Path) -> np.ndarray:
    return read_scores({"rival": folder}, [ANNOTATION])["rival"]["a"]


def test_scores_are_read_from_npy_and_from_a_column(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([1, 2, 3, 4]))
    assert np.array_equal(read(tmp_path), [1, 2, 3, np.nan], equal_nan=True)
    (tmp_path / "a.npy").unlink()
    (tmp_path / "a.csv").write_text("frame,score\n0,.1\n1,.2\n2,.3\n3,\n")
    assert np.array_equal(read(tmp_path), [0.1, 0.2, 0.3, np.nan], equal_nan=True)


def test_scores_with_seconds_are_taken_by_time(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("seconds,score\n1.1,8\n0,5\n0.4,6\n0.7,7\n")
    assert np.array_equal(read(tmp_path), [5, 6, 8, np.nan], equal_nan=True)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("b.csv", "score\n1\n", "neither a.npy nor a.csv"),
        ("a.csv", "score\n1\n2\n", "2 scores, but video 'a' has 4 sampled frames"),
        ("a.csv", "loss\n1\n", "needs a column `score` with numbers, but has loss"),
        ("a.csv", "score\nx\n", "is not a CSV of numbers"),
        ("a.csv", 'score\n1\n""\n3\n4\n', "the score of frame 1 is not a number"),
        ("a.npy", "junk", "is not a .npy file of numbers"),
    ],
)
def test_wrong_file_is_told_by_name(tmp_path: Path, name: str, content: str, words: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=words):
        read(tmp_path)


@pytest.mark.parametrize("option", ["rival", "=folder", "rival=", "rival=nowhere"])
def test_wrong_option_is_refused(option: str) -> None:
    with pytest.raises(ConfigError, match="--scores"):
        named_folders([option])


def test_evaluate_measures_brought_scores_beside_its_own(
    made_folder: Path, made_root: str, tmp_path: Path
) -> None:
    for video in ("v2", "v3"):
        score_T = np.zeros(made_run.NUM_FRAMES)
        score_T[made_run.WRONG] = video == "v2"
        np.save(tmp_path / f"{video}.npy", score_T)
    config = replace(made_run.config_of(made_folder), root=made_root)
    with pipeline.open_stage(config, "test") as stage:
        metrics = pipeline.evaluate(stage, {"perfect": tmp_path})
        assert "brought" not in pipeline.evaluate(stage), "kept nowhere"
    assert metrics["brought"]["perfect"]["mislabel"]["auc_micro"][0] == 1
    console = Console(record=True, width=120)
    console.print(rivals_table(metrics))
    [line] = [line for line in console.export_text().splitlines() if "perfect (brought)" in line]
    assert line.split()[-2:] == ["100.0", "100.0"]
