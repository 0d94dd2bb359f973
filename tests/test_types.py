from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from csl_dist.data.media.timeline import sampled
from csl_dist.types import (
    Annotation,
    Fix,
    Span,
    array_fingerprint,
    fingerprint,
    runs_of,
    spans_where,
)

labels = st.lists(st.integers(-1, 3), max_size=30)


@given(labels)
def test_runs_cover_the_array_and_are_maximal(values: list[int]) -> None:
    runs = runs_of(np.array(values))
    assert [i for run in runs for i in range(run.start, run.stop)] == list(range(len(values)))
    for run in runs:
        assert len(set(values[run.start : run.stop])) == 1
    for left, right in pairwise(runs):
        assert values[left.start] != values[right.start]


def test_spans_where_gives_runs_of_true() -> None:
    mask = np.array([1, 1, 0, 1, 0, 0, 1], dtype=bool)
    assert spans_where(mask) == [Span(0, 2), Span(3, 4), Span(6, 7)]
    assert spans_where(np.zeros(3, dtype=bool)) == []


@pytest.mark.parametrize(
    ("text", "direction"),
    [
        *(("rename 10 20", ""), ("insert 10 20", ""), ("swap 0 30 50", "")),
        *(("boundary 50 43", "earlier"), ("boundary 43 50", "later")),
    ],
)
def test_fix_reads_the_text_that_it_writes(text: str, direction: str) -> None:
    fix = Fix.parse(text)
    assert fix is not None
    assert (str(fix), fix.direction) == (text, direction)


def test_empty_cell_of_a_table_is_no_fix() -> None:
    assert Fix.parse(None) is None
    assert Fix.parse(np.nan) is None


@pytest.mark.parametrize("fps", [0.5, 1, 2, 3, 8, 10, 20])
@pytest.mark.parametrize("source_fps", [25, 30000 / 1001, 50])
@pytest.mark.parametrize("num_frames", [1500, 1513])
def test_rate_of_sampled_frames_is_the_rate_that_was_asked_for(
    fps: float, source_fps: float, num_frames: int
) -> None:
    timeline, _ = sampled(np.arange(num_frames) / source_fps, fps)
    assert timeline.fps == pytest.approx(fps, rel=0.01)
    labelled = Annotation(
        video="v",
        labels_T=np.zeros(len(timeline.times_T), dtype=np.int64),
        times_T=timeline.times_T,
        source_fps=timeline.source_fps,
    )
    assert labelled.labelled_seconds == pytest.approx(num_frames / source_fps, abs=2 / fps)


def test_rate_of_all_frames_is_the_usual_one_whatever_is_missing() -> None:
    times_N = np.delete(np.arange(1000) / 25, np.r_[100:110, 500])
    timeline, _ = sampled(times_N, None)
    assert timeline.fps == pytest.approx(25)


def test_fingerprint_changes_with_any_part() -> None:
    parts = [("a", 1), ("a", 2), ("b", 1), ("a", Span(1, 2)), ("a", Span(1, 3))]
    assert len({fingerprint(*p) for p in parts}) == len(parts)
    assert fingerprint({"x": 1, "y": 2}) == fingerprint({"y": 2, "x": 1})


def test_array_fingerprint_tells_type_and_shape_apart() -> None:
    array = np.zeros((2, 3), dtype=np.float32)
    others = [array.reshape(3, 2), array.astype(np.int32), array + 1]
    assert array_fingerprint(array) == array_fingerprint(array.copy())
    assert array_fingerprint(array) not in {array_fingerprint(other) for other in others}
