"""`csl query`, `export`, `report` and `relabel` as a user meets them."""

import io
import json
import shutil
from pathlib import Path

import made_run
import pandas as pd
import pytest
from click.testing import Result
from typer.testing import CliRunner

from csl_dist.cli import main  # noqa: F401  registers every command
from csl_dist.cli.app import app
from csl_dist.errors import CslError


@pytest.fixture(scope="module")
def root(made_folder: Path) -> str:
    return str(made_folder / "run")


def csl(*arguments: str | Path) -> Result:
    result = CliRunner(env={"COLUMNS": "120"}).invoke(app, [*map(str, arguments)])
    if isinstance(result.exception, CslError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result


def test_top_is_a_table_for_people(root: str) -> None:
    printed = csl("query", root, "top").stdout
    for words in ("v2", "wrong name", "suggested"):
        assert words in printed


def test_frames_of_videos_are_not_taken_for_scores_of_flags(root: str) -> None:
    printed = " ".join(csl("query", root, "videos").stdout.split())
    assert "worst frame" in printed
    assert "on another scale" in printed
    assert "worst" in json.loads(csl("query", root, "videos", "--format", "json").stdout)[0]


def test_nothing_found_is_a_sentence_and_the_next_command_has_the_root(root: str) -> None:
    assert csl("query", root, "conventions").stdout.startswith("no convention")
    assert csl("query", root, "flags", "--min-score", "1000").stdout.startswith("no span is")
    assert "ROOT" not in csl("query", root, "top").stdout


@pytest.mark.parametrize("what", ["top", "flags", "videos"])
def test_tables_are_read_back_from_json_and_csv(root: str, what: str) -> None:
    rows = json.loads(csl("query", root, what, "--format", "json").stdout)
    table = pd.read_csv(io.StringIO(csl("query", root, what, "--format", "csv").stdout))
    assert rows[0]["video"] == table.video[0] == "v2"
    assert set(rows[0]) == set(table.columns)


def test_filters_reach_the_query(root: str) -> None:
    for option in (
        ("--kind", "disorder"),
        ("--min-score", "1000"),
        ("--to", "1"),
        ("--class", "a"),
    ):
        assert json.loads(csl("query", root, "flags", "--format", "json", *option).stdout) == []
    within = ("--video", "v2", "--from", "13", "--to", "14", "--format", "json")
    assert len(json.loads(csl("query", root, "flags", *within).stdout)) == 1
    rows = json.loads(csl("query", root, "scores", *within).stdout)
    assert [row["frame"] for row in rows] == list(range(130, 140))


def test_least_score_of_frames_is_that_of_the_score_that_decides(root: str) -> None:
    asked = ("query", root, "scores", "--video", "v2", "--format", "json")
    frames = pd.DataFrame(json.loads(csl(*asked).stdout))
    least = float(frames.deciding.quantile(0.9))
    found = pd.DataFrame(json.loads(csl(*asked, "--min-score", f"{least:.6f}").stdout))
    assert found.frame.tolist() == frames.frame[frames.deciding >= least].tolist()
    others = csl(*asked, "--min-score", f"{least:.6f}", "--scorer", "framewise").stdout
    assert [row["frame"] for row in json.loads(others)] == found.frame.tolist()


def test_trajectory_has_a_row_for_each_frame_and_checkpoint(root: str) -> None:
    printed = csl(
        "query", root, "trajectory", "--video", "v2", "--frame", "120:122", "--format", "csv"
    ).stdout
    table = pd.read_csv(io.StringIO(printed))
    assert table.frame.tolist() == [120] * 6 + [121] * 6
    assert table.checkpoint.tolist() == [1, 2, 3, 4, 5, 6] * 2
    assert table.likeliest.iloc[-1] == "b"


def test_mistakes_are_sentences(root: str, tmp_path: Path) -> None:
    for arguments, words in (
        (("query", root, "scores"), "needs --video"),
        (("query", root, "trajectory", "--video", "v2", "--frame", "x"), "expected a frame"),
        (("query", root, "top", "--revision", "7"), "no audit number 7"),
        (("query", root, "top", "--scorer", "x"), "query top does not take --scorer; it takes --t"),
        (("query", root, "conventions", "--top", "3"), "does not take --top; it takes none such"),
        (("query", root, "top", "--from", "20", "--to", "9.5"), "--from 20 is after --to 9.5"),
        (
            ("query", root, "trajectory", "--video", "v2", "--frame", "140:120"),
            "frames 140:120 are not a range within 0:300 of 'v2'",
        ),
        (("query", tmp_path / "none", "top"), "not a run root"),
        (("export", root, "--format", "coco", "--out", tmp_path / "x"), "expected one of"),
        (("relabel", root, tmp_path / "none"), "there are no labels at"),
        (
            ("export", root, "--format", "csv", "--out", tmp_path / "x/f.csv"),
            "no folder .*/x; make",
        ),
        (("lint", root, "--csv", tmp_path / "x/f.csv"), "no folder .*/x; make it first"),
    ):
        with pytest.raises(CslError, match=words):
            csl(*arguments)
    assert not list(tmp_path.iterdir())


def test_export_says_what_it_wrote(root: str, tmp_path: Path) -> None:
    result = csl("export", root, "--format", "csv", "--out", tmp_path / "flags.csv")
    assert "1 span of 1 video in" in result.stdout
    assert (tmp_path / "flags.csv").exists()


def test_relabel_tells_what_got_better_and_report_shows_it(made_root: str, tmp_path: Path) -> None:
    fixed = tmp_path / "v2.txt"
    fixed.write_text(made_run.label_text(made_run.TRUE_LABELS))
    printed = csl("relabel", made_root, fixed).stdout
    assert "1 span in 1 video; 1 are less suspicious now, 1 are below the threshold" in printed
    assert "1 before, 0 now; 1 resolved, 0 new" in printed
    report = csl("report", made_root, "--figures", tmp_path / "figures").stdout
    assert "run/report.html" in report
    assert (tmp_path / "figures/losses.pdf").exists()
    assert (
        f"{made_root}/audits/0001/report.html" in csl("report", made_root, "--revision", "1").stdout
    )


def test_audits_are_listed_compared_and_removed(made_root: str, tmp_path: Path) -> None:
    fixed = tmp_path / "v2.txt"
    fixed.write_text(made_run.label_text(made_run.TRUE_LABELS))
    csl("relabel", made_root, fixed)
    listed = csl("audits", made_root).stdout
    assert "labels that correct audit 1" in " ".join(listed.split())
    assert "flags: 0 came, 1 went, 0 moved, 0 stayed" in csl("diff", made_root, "1", "2").stdout
    assert "removed: audit 2" in csl("audits", "rm", made_root, "2").stdout
    assert csl("query", made_root, "flags", "--format", "csv").stdout.count("\n") == 2
    with pytest.raises(CslError, match="has no audit number 2"):
        csl("diff", made_root, "1", "2")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("flags", "--class", "A"), "the run has no class 'A'"),
        (("scores", "--video", "v2", "--class", "zzz"), "the run has no class 'zzz'; there are"),
        (("flags", "--kind", "mislabl"), "there is no kind 'mislabl' of flag; did you mean 'mis"),
        (("flags", "--kind", "x"), "there are mislabel, disorder, insert, missing, boundary, ambi"),
        (("flags", "--video", "v22"), "the run has no video 'v22'; did you mean"),
    ],
)
def test_unknown_name_is_an_error_with_the_nearest_and_no_empty_table(
    root: str, options: tuple[str, ...], sentence: str
) -> None:
    with pytest.raises(CslError, match=sentence):
        csl("query", root, *options)


@pytest.mark.parametrize("most", ["0", "-3"])
def test_query_for_fewer_than_one_row_is_a_mistake(root: str, most: str) -> None:
    result = CliRunner().invoke(app, ["query", root, "top", "--top", most])
    assert result.exit_code == 2
    assert "greater than or equal to 1" in result.stderr


def test_query_before_the_first_audit_is_one_error(made_root: str) -> None:
    shutil.rmtree(f"{made_root}/audits")
    result = CliRunner().invoke(app, ["query", made_root, "top"])
    assert "has no flags yet" in str(result.exception)
    assert result.stderr == ""
    assert "not finished" in CliRunner().invoke(app, ["query", made_root, "videos"]).stderr
