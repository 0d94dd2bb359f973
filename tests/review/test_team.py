"""What decisions teach, who reviews what, and how far reviewers agree."""

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest

from csl_dist.errors import DataError
from csl_dist.review.assignment import Assignment, DealtBy, agreement
from csl_dist.review.edits import SpanEdit
from csl_dist.review.learning import expected_errors, expected_in_next, verdicts
from csl_dist.review.store import Decision, Review


def flags(num: int, **columns: Any) -> pd.DataFrame:
    table = {
        "video": [f"v{i % 7}" for i in range(num)],
        "start": np.arange(num) * 10,
        "stop": np.arange(num) * 10 + 5,
        "score": np.linspace(3, 1, num),
        "probability": np.full(num, 0.5),
        "kind": ["mislabel", "boundary"] * (num // 2),
        "label": "a",
        "suggested": "b",
    }
    return pd.DataFrame(table | columns)


def spans(table: pd.DataFrame) -> list[tuple[str, int, int]]:
    return list(zip(table.video, table.start, table.stop, strict=True))


def test_decisions_on_a_kind_move_that_kind_more_than_others() -> None:
    table = flags(40)
    known = {span: i % 2 == 0 for i, span in enumerate(spans(table)[:16])}
    before, after = expected_errors(table, {}), expected_errors(table, known)
    np.testing.assert_allclose(before, 0.5)
    is_first = (table.kind == "mislabel").to_numpy()
    assert after[is_first].min() > 0.75
    assert after[~is_first].max() < 0.25
    assert expected_in_next(after, [True] * 40) == pytest.approx(np.sort(after)[20:].sum())


def test_flags_without_a_probability_start_from_their_score() -> None:
    expected = expected_errors(flags(20, probability=np.nan), {})
    assert (np.diff(expected) < 0).all()
    assert expected.mean() == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("by", DealtBy)
def test_flags_are_dealt_out_to_all_and_some_to_two(by: DealtBy) -> None:
    table = flags(600)
    dealt = Assignment(reviewers=("Ada", "Bob"), by=by, double=0.2).of(table)
    assert {name for names in dealt for name in names} == {"Ada", "Bob"}
    assert np.mean([len(names) == 2 for names in dealt]) == pytest.approx(0.2, abs=0.05)
    keys = {DealtBy.VIDEO: table.video, DealtBy.KIND: table.kind}.get(by)
    if keys is not None:
        first = {key: names[0] for key, names in zip(keys, dealt, strict=True)}
        assert all(first[key] == names[0] for key, names in zip(keys, dealt, strict=True))


def test_assignment_that_makes_no_sense_is_refused() -> None:
    for values in (
        {"reviewers": ()},
        {"reviewers": ("Ada", "Ada")},
        {"reviewers": ("Ada",), "double": 0.5},
    ):
        with pytest.raises(DataError):
            Assignment(**values)


def review(reviewer: str, decision: Decision, label: str | None = None) -> Review:
    edits = None if label is None else (SpanEdit(start=0, stop=5, label=label),)
    place = {"video": "v", "start": 0, "stop": 5, "revision": 1, "key": reviewer}
    when = datetime.now(UTC)
    return Review(**place, decision=decision, edits=edits, reviewer=reviewer, number=1, when=when)


def test_agreement_counts_what_is_said_and_not_how_it_is_called() -> None:
    same = [review("Ada", Decision.WRONG, "b"), review("Bob", Decision.EDITED, "b")]
    other = [review("Ada", Decision.WRONG, "b"), review("Bob", Decision.CORRECT)]
    right = [review("Ada", Decision.CORRECT), review("Bob", Decision.CORRECT)]
    found = agreement({("v", i, i + 1): held for i, held in enumerate([same, other, right])})
    assert (found.pairs, found.agree) == (3, pytest.approx(2 / 3))
    assert found.kappa == pytest.approx((2 / 3 - 0.5) / 0.5)
    assert agreement({("v", 0, 1): [same[0]]}).agree is None


def test_verdicts_leave_out_who_is_unsure() -> None:
    held = {
        ("v", 0, 1): [review("Ada", Decision.UNSURE)],
        ("v", 1, 2): [review("Ada", Decision.ORDER)],
        ("v", 2, 3): [review("Ada", Decision.CORRECT)],
    }
    assert verdicts(held) == {("v", 1, 2): True, ("v", 2, 3): False}
