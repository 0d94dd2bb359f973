"""The command line as a user meets it: real processes, exit codes, and what they print."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


def csl(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from csl_dist.cli import main; main()"]
    return subprocess.run(
        [*command, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "COLUMNS": "100"},
        check=False,
    )


def assert_one_sentence(result: subprocess.CompletedProcess[str], words: str) -> None:
    assert result.returncode == 2
    assert result.stderr.startswith("error: ")
    assert len(result.stderr.strip().splitlines()) == 1
    assert words in result.stderr
    assert "Traceback" not in result.stderr


def test_help_begins_with_what_a_newcomer_needs() -> None:
    shown = csl("--help").stdout
    panels = ("Dataset", "Run", "Results", "Cluster", "Stores and speed")
    places = [shown.index(f"─ {panel} ─") for panel in panels]
    assert places == sorted(places)


def test_unknown_key_ends_in_one_sentence(small_config_file: Path) -> None:
    result = csl("train", small_config_file, "--set", "train.epoch=3")
    assert_one_sentence(result, "unknown key 'train.epoch'; did you mean 'epochs'?")


def test_missing_config_ends_in_one_sentence(tmp_path: Path) -> None:
    assert_one_sentence(csl("run", tmp_path / "no.yaml"), "can't read the config")


def test_stage_before_its_input_says_what_to_run(small_config_file: Path) -> None:
    assert_one_sentence(csl("train", small_config_file), "run `csl extract`")


def test_status_of_a_folder_that_is_no_run(tmp_path: Path) -> None:
    assert_one_sentence(csl("status", tmp_path / "typo"), "is not a run root")
    assert not (tmp_path / "typo").exists()


def test_check_prints_the_dataset_and_finds_nothing_wrong(small_config_file: Path) -> None:
    result = csl("check", small_config_file)
    assert result.returncode == 0, result.stderr
    assert "no problems found" in result.stdout
    assert result.stdout.endswith(f"next: csl run {small_config_file}\n")
    assert "setup" in result.stdout


def test_check_names_every_problem_at_once(small_dataset: Path, tmp_path: Path) -> None:
    rows = (small_dataset / "manifest.csv").read_text().splitlines()
    broken = tmp_path / "dataset"
    broken.mkdir()
    for name in ("videos", "labels"):
        (broken / name).mkdir()
        for path in (small_dataset / name).iterdir():
            (broken / name / path.name).write_bytes(path.read_bytes())
    (broken / "manifest.csv").write_text("\n".join(rows) + "\n")
    (broken / "classes.txt").write_text((small_dataset / "classes.txt").read_text() + "extra\n")
    (broken / "labels/train01.txt").write_text("typo\n")
    (broken / "labels/train02.txt").write_text("setup\n" * 5)
    (broken / "videos/train03.mp4").write_bytes(b"")
    config = tmp_path / "c.yaml"
    config.write_text(
        f"root: {tmp_path}/run\ndataset: {{path: {broken}}}\nfeatures: {{weights: random}}\n"
        "scorers: {framewise: {}}\ntrain: {epochs: 2}\n"  # what any disk has room for
    )
    result = csl("check", config)
    assert result.returncode == 2
    for words in (
        "train01.txt:1: unknown class 'typo'",
        "video 'train02': 5 labels",
        "can't open the video",
        "class 'extra' never occurs in training",
    ):
        assert words in result.stderr
    assert "4 problems found" in result.stderr


def test_evaluate_without_known_errors_says_so(small_config_file: Path) -> None:
    result = csl("evaluate", small_config_file, "--set", "dataset.truth=null")
    assert_one_sentence(result, "names no known errors")


@pytest.mark.parametrize("arguments", [["train"], ["nothing"], ["status", "--bad"]])
def test_wrong_usage_exits_with_two(arguments: list[str]) -> None:
    result = csl(*arguments)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
