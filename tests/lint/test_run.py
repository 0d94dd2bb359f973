"""Lint as a whole: odd inputs, the table of segments, the page, what it imports."""

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_labels import sequence, usual_videos

from csl_dist.errors import DataError
from csl_dist.lint.page.page import lint_page
from csl_dist.lint.run import lint
from csl_dist.lint.segments import COLUMNS, EVIDENCE
from csl_dist.lint.sequences import LabelSequence, Step, steps_from_frames

TIMES = st.floats(-10, 1e4, allow_nan=False)
STEPS = st.builds(Step, label=st.text(max_size=6), start_seconds=TIMES, stop_seconds=TIMES)
WHO = st.none() | st.sampled_from(["a", "b", "c"])
SEQUENCES = st.builds(
    LabelSequence,
    video=st.text(max_size=3),
    steps=st.lists(STEPS, max_size=6).map(tuple),
    file=st.just("labels.txt"),
    seconds=st.none() | st.floats(0, 1e4),
    group=WHO,
    annotator=WHO,
    procedure=WHO,
    frame_seconds=st.none() | st.floats(0.01, 2),
)


@settings(max_examples=30, deadline=None)
@given(st.lists(SEQUENCES, max_size=25))
def test_lint_of_anything_never_raises_and_scores_are_finite(
    sequences: list[LabelSequence],
) -> None:
    result = lint(sequences)
    assert all(np.isfinite(finding.score) for finding in result.findings)
    for name in EVIDENCE[:6]:
        assert np.isfinite(result.segments.values[name]).all()
    assert lint_page(result, title="anything").endswith("</html>")


def test_lint_of_nothing_finds_nothing() -> None:
    result = lint([])
    assert (result.findings, result.num_videos, len(result.segments)) == ((), 0, 0)


@pytest.mark.parametrize("labels", [[], ["cut"], ["cut", "sew", "cut"]])
def test_lint_of_one_video_finds_nothing(labels: list[str]) -> None:
    assert lint([sequence("only", labels)]).findings == ()


def test_lint_reads_a_generator_once() -> None:
    assert lint(video for video in usual_videos(3)).num_videos == 3


def test_lint_refuses_times_that_are_not_finite() -> None:
    with pytest.raises(DataError, match="video 'bad': a step's time is not a finite number"):
        lint([sequence("bad", ["cut"], [float("nan")])])


def test_lint_is_the_same_twice() -> None:
    videos = [*usual_videos(30), sequence("odd", ["cut", "prepare", "close", "clean"])]
    assert lint(videos).findings == lint(videos).findings


def test_segment_table_has_one_row_a_segment_in_order_of_time(tmp_path: Path) -> None:
    backwards = sequence("näht", ["切る", "縫う"])
    result = lint([LabelSequence(video="näht", steps=backwards.steps[::-1], file="x")])
    result.segments.write_csv(tmp_path / "segments.csv")
    with (tmp_path / "segments.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    assert [(row["video"], row["label"]) for row in rows] == [("näht", "切る"), ("näht", "縫う")]
    assert rows[0]["duration"] == ""


def test_most_suspicious_segments_of_the_table_are_the_swapped_ones() -> None:
    odd = sequence("odd", ["prepare", "clean", "cut", "close"])
    table = lint([*usual_videos(20), odd]).segments
    worst = np.argsort(-table.values["order"])[:2]
    assert {
        (table.files[table.file_N[n]].video, table.labels[table.label_N[n]]) for n in worst
    } == {
        ("odd", "clean"),
        ("odd", "cut"),
    }


def test_page_escapes_names_and_loads_nothing_from_elsewhere() -> None:
    odd = sequence("<b>odd", ["prepare", "clean", "<i>cut", "close"])
    page = lint_page(lint([*usual_videos(120), odd]), title="<script>")
    assert "<b>odd" not in page
    assert "<i>cut" not in page
    assert "<script" not in page
    assert "http" not in page
    assert "&lt;i&gt;cut" in page


def test_frames_become_steps_and_unlabelled_frames_none() -> None:
    steps = steps_from_frames(["-", "a", "a", "b", "-"], fps=2, unlabelled={"-"})
    assert [(s.label, s.start_seconds, s.stop_seconds) for s in steps] == [
        ("a", 0.5, 1.5),
        ("b", 1.5, 2.0),
    ]


def test_lint_imports_neither_torch_nor_ray_nor_pandas() -> None:
    modules = "csl_dist.lint.run, csl_dist.lint.page.page, csl_dist.lint.sources"
    program = (
        f"import sys, {modules}; "
        "heavy = ('torch', 'ray', 'pandas', 'sklearn', 'av', 'h5py', 'zarr'); "
        "print([m for m in heavy if m in sys.modules])"
    )
    output = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert output.stdout.strip() == "[]"
