"""What reviewers say of spans, whether it still holds, and what is left of it."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest

from csl_dist.flag.edit_reviews import (
    NamedFrames,
    Verdict,
    earlier_decisions,
    named_frames,
    verdicts_from_json,
)
from csl_dist.flag.edits.lists import ListName

CLASSES = ("cut", "tie", "close")
LABELS = np.array([0, 0, 0, 1, 1, 1, 2, 2])
STEPS, BOUNDARIES, ORDER = ListName.STEPS, ListName.BOUNDARIES, ListName.ORDER


def error(*changes: NamedFrames) -> Verdict:
    return Verdict(is_error=True, changes=changes)


@pytest.mark.parametrize(
    ("name", "verdict", "expected"),
    [
        (STEPS, Verdict(is_error=False), False),
        (STEPS, error((3, 6, "cut")), True),
        # A boundary that moves the other way: the step that is longer keeps its label.
        (BOUNDARIES, error((3, 8, "tie")), True),
        # Of several changes the first one keeps the label that is there.
        (ORDER, error((0, 1, "cut"), (1, 6, "tie")), True),
        (BOUNDARIES, error((3, 6, "tie")), False),
        (STEPS, error((3, 6, "gone")), True),
        (ORDER, Verdict(is_error=True, is_order_alone=True), True),
        # The label names what is to be seen.
        (STEPS, Verdict(is_error=True, is_order_alone=True), False),
    ],
    ids=["right", "wrong", "other-way", "later-edit", "corrected", "unknown", "order", "name"],
)
@pytest.mark.parametrize("is_seen", [True, False])
def test_finding_is_wrong_by_what_reviewers_said(
    name: ListName, verdict: Verdict, expected: bool | None, is_seen: bool
) -> None:
    if is_seen and not (verdict.changes and expected is False):
        verdict = replace(verdict, seen=named_frames(LABELS, 0, 8, CLASSES))
    assert verdict.is_wrong(name, LABELS, CLASSES) is expected


def test_verdict_ends_with_the_labels_that_it_is_about() -> None:
    seen = named_frames(LABELS, 3, 6, CLASSES)
    right = Verdict(is_error=False, seen=seen)
    wrong = Verdict(is_error=True, changes=((3, 6, "close"),), seen=seen)
    other_T = LABELS.copy()
    other_T[3:6] = 0
    assert right.is_wrong(STEPS, other_T, CLASSES) is None, "a new label, which may be wrong"
    assert wrong.is_wrong(STEPS, other_T, CLASSES) is None, "corrected, though not as was said"
    other_T[3:6] = 2
    assert wrong.is_wrong(STEPS, other_T, CLASSES) is False, "corrected as was said"
    other_T[:3] = 1
    other_T[3:6] = 1
    assert wrong.is_wrong(STEPS, other_T, CLASSES), "only frames outside are others"


def test_verdict_on_a_flag_is_about_its_list_alone() -> None:
    verdict = replace(error((3, 6, "cut")), flagged=(STEPS, 1.0))
    assert verdict.is_wrong(STEPS, LABELS, CLASSES)
    assert verdict.is_wrong(ORDER, LABELS, CLASSES) is None


def test_decisions_are_remembered_once_their_labels_are_others() -> None:
    seen, flagged = named_frames(LABELS, 3, 6, CLASSES), (BOUNDARIES, 1.5)
    open_one = Verdict(is_error=True, changes=((3, 6, "cut"),), seen=seen, flagged=flagged)
    gone = replace(open_one, seen=((3, 6, "close"),))
    verdicts = {
        ("v", 3, 6): open_one,
        ("v", 3, 7): gone,
        ("v", 3, 8): replace(gone, is_error=False),
        ("v", 2, 8): replace(gone, flagged=None),
        ("left", 3, 6): gone,
    }
    found = earlier_decisions(verdicts, {"v": LABELS}, CLASSES)
    assert found == {STEPS: [], BOUNDARIES: [(1.5, True), (1.5, False)], ORDER: []}


def test_labels_of_frames_are_told_by_name() -> None:
    labels_T = np.array([0, 0, -1, 1])
    assert named_frames(labels_T, 1, 4, CLASSES) == ((1, 2, "cut"), (2, 3, ""), (3, 4, "tie"))
    assert Verdict(is_error=False, seen=((1, 2, "cut"), (2, 3, ""))).is_open(labels_T, CLASSES)


def test_verdicts_are_read_as_they_were_written_and_those_of_earlier_audits() -> None:
    verdict = Verdict(
        is_error=True, changes=((3, 6, "cut"),), seen=((3, 6, "tie"),), flagged=(STEPS, 0.5)
    )
    written = json.loads(json.dumps([["v", 3, 6, asdict(verdict)], ["v", 0, 3, "tie"]]))
    verdicts = verdicts_from_json([*written, ["v", 6, 8, None]])
    assert verdicts["v", 3, 6] == verdict
    assert verdicts["v", 0, 3].is_wrong(STEPS, LABELS, CLASSES)
    assert verdicts["v", 6, 8].is_wrong(STEPS, LABELS, CLASSES) is False
