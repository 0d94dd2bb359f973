"""Edits: what a flag proposes, and what a decision changes."""

from typing import Any

import numpy as np
import pytest

from csl_dist.review.edits import SpanEdit, edited, proposal, without_slivers

LABELS_T = np.repeat([0, 2, 1, 0], [10, 40, 30, 20])
CLASSES = ("a", "b", "c")


def flag(**values: Any) -> dict[str, Any]:
    given = {"kind": "mislabel", "label": "c", "suggested": "b", "start": 12, "stop": 48}
    return {"fix": None, "fix_label": None, "fix_start": None, "fix_stop": None} | given | values


@pytest.mark.parametrize(
    ("start", "stop", "wanted"),
    [
        (12, 48, (10, 50)),  # two frames of the old label would stay at each end
        (13, 47, (10, 50)),
        (14, 46, (14, 46)),  # four frames may be meant
        (10, 50, (10, 50)),
        (11, 12, (11, 12)),  # a sliver is shorter than what is changed
    ],
)
def test_edit_takes_the_slivers_that_it_would_leave(
    start: int, stop: int, wanted: tuple[int, int]
) -> None:
    edit = without_slivers(SpanEdit(start=start, stop=stop, label="b"), LABELS_T)
    assert (edit.start, edit.stop) == wanted


def test_renamed_flag_leaves_no_sliver_of_its_old_label() -> None:
    after_T = edited(LABELS_T, proposal(flag(), LABELS_T), CLASSES)
    assert (after_T != 2).all()


def test_each_kind_of_fix_is_a_list_of_edits() -> None:
    def of(**values: Any) -> list[tuple[int, int, str]]:
        return [(e.start, e.stop, e.label) for e in proposal(flag(**values), LABELS_T)]

    fixed = {"fix_label": "b", "fix_start": 20, "fix_stop": 30}
    for kind, fix in (
        ("mislabel", "rename 20 30"),
        ("insert", "delete 20 30"),
        ("missing", "insert 20 30"),
        ("boundary", "boundary 20 30"),
    ):
        assert of(kind=kind, fix=fix, **fixed) == [(20, 30, "b")]
    assert of(kind="disorder", fix="swap 10 50 80") == [(10, 40, "b"), (40, 80, "c")]


def test_order_without_a_fix_proposes_no_name() -> None:
    assert proposal(flag(kind="disorder"), LABELS_T) == ()
    assert proposal(flag(kind="ambiguous"), LABELS_T) == ()
