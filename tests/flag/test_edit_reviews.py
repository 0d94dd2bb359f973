"""What reviewers say of spans, and what is left of it once labels follow."""

import numpy as np
import pytest

from csl_dist.flag.edit_reviews import Change, Verdict, corrected_log_odds, verdicts_from_json
from csl_dist.flag.edits.lists import ListName

CLASSES = ("cut", "tie", "close")
LABELS = np.array([0, 0, 0, 1, 1, 1, 2, 2])


def error(*changes: Change, flagged: tuple[ListName, float] | None = None) -> Verdict:
    return Verdict(is_error=True, changes=changes, flagged=flagged)


@pytest.mark.parametrize(
    ("name", "verdict", "expected"),
    [
        (ListName.STEPS, Verdict(is_error=False), False),
        (ListName.STEPS, error((3, 6, "cut")), True),
        # A boundary that moves the other way: the step that is longer keeps its label.
        (ListName.BOUNDARIES, error((3, 8, "tie")), True),
        # Of several changes the first one keeps the label that is there.
        (ListName.ORDER, error((0, 1, "cut"), (1, 6, "tie")), True),
        (ListName.BOUNDARIES, error((3, 6, "tie")), False),
        (ListName.STEPS, error((3, 6, "gone")), True),
        (ListName.ORDER, Verdict(is_error=True, is_order_alone=True), True),
        (ListName.STEPS, Verdict(is_error=True, is_order_alone=True), None),
    ],
    ids=["right", "wrong", "other-way", "later-edit", "corrected", "unknown", "order", "name"],
)
def test_finding_is_wrong_by_what_reviewers_said(
    name: ListName, verdict: Verdict, expected: bool | None
) -> None:
    assert verdict.is_wrong(name, LABELS, CLASSES) is expected


def test_errors_that_were_corrected_are_remembered_with_their_log_odds() -> None:
    flagged = (ListName.BOUNDARIES, 1.5)
    verdicts = {
        ("v", 3, 6): error((3, 6, "tie"), flagged=flagged),
        ("v", 0, 3): error((0, 3, "tie"), flagged=flagged),
        ("v", 6, 8): Verdict(is_error=False, flagged=flagged),
        ("gone", 3, 6): error((3, 6, "tie"), flagged=flagged),
    }
    found = corrected_log_odds(verdicts, {"v": LABELS}, CLASSES)
    assert found == {ListName.STEPS: [], ListName.BOUNDARIES: [1.5], ListName.ORDER: []}


def test_verdicts_of_an_earlier_audit_are_read() -> None:
    verdicts = verdicts_from_json([["v", 3, 6, "cut"], ["v", 0, 3, None]])
    assert verdicts["v", 3, 6].is_wrong(ListName.STEPS, LABELS, CLASSES)
    assert verdicts["v", 0, 3].is_wrong(ListName.STEPS, LABELS, CLASSES) is False
