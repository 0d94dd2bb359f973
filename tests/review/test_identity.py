"""Decisions belong to a run, not to the place where it lies."""

import shutil
from pathlib import Path

import made_run

from csl_dist.audit.reader import open_audit
from csl_dist.review.store import Decision, NewReview, store_of


def decision(key: str) -> NewReview:
    return NewReview(
        key=key,
        revision=1,
        video="v2",
        start=120,
        stop=160,
        decision=Decision.WRONG,
        label="a",
        reviewer="Ada",
    )


def test_run_made_anew_at_the_same_place_has_none_of_the_old_decisions(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'shared.db'}"
    root = made_run.make_run(tmp_path / "set")
    for place in (database, None):
        store_of(root, place).create()
        store_of(root, place).append(decision("12345678"))
        assert len(store_of(root, place).after(0)) == 1
    kept = Path(root) / "reviews.db"
    shutil.copy(kept, tmp_path / "kept.db")
    shutil.rmtree(root)
    made_run.make_run(tmp_path / "set")
    shutil.copy(tmp_path / "kept.db", kept)
    assert open_audit(root).revision == 1
    for place in (database, None):
        assert store_of(root, place).after(0) == []


def test_run_that_is_moved_keeps_its_decisions(made_root: str, tmp_path: Path) -> None:
    store_of(made_root, None).create()
    store_of(made_root, None).append(decision("12345678"))
    moved = shutil.move(made_root, tmp_path / "elsewhere")
    assert len(store_of(str(moved), None).after(0)) == 1
