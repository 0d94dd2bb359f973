"""Databases of earlier versions open, with everything that they hold."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa

from csl_dist.review.database import HEAD, METADATA, MIGRATIONS, VERSION_TABLE, engine_of, upgrade
from csl_dist.review.edits import SpanEdit
from csl_dist.review.store import Decision, NewReview, ReviewStore

BEFORE_MIGRATIONS = """
CREATE TABLE csl_reviews (
    number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, audit TEXT NOT NULL, "key" TEXT NOT NULL,
    "when" DATETIME NOT NULL, revision INTEGER NOT NULL, video TEXT NOT NULL,
    start INTEGER NOT NULL, stop INTEGER NOT NULL, decision TEXT NOT NULL, label TEXT,
    new_start INTEGER, new_stop INTEGER,
    reviewer TEXT NOT NULL, comment TEXT NOT NULL, UNIQUE (audit, "key"));
CREATE INDEX csl_reviews_of_audit ON csl_reviews (audit, number);
CREATE TRIGGER csl_reviews_no_update BEFORE UPDATE ON csl_reviews
    BEGIN SELECT RAISE(ABORT, 'reviews can only be added'); END;
CREATE TRIGGER csl_reviews_no_delete BEFORE DELETE ON csl_reviews
    BEGIN SELECT RAISE(ABORT, 'reviews can only be added'); END;
INSERT INTO csl_reviews VALUES (1, '.', 'k1', '2026-01-02 03:04:05', 1, 'v2', 120, 158, 'wrong',
    'b', NULL, NULL, 'Ada', '');
INSERT INTO csl_reviews VALUES (2, '.', 'k2', '2026-01-02 03:04:06', 1, 'v2', 20, 60, 'boundary',
    'c', 18, 61, 'Ada', 'a little longer');
"""


@pytest.fixture
def old(tmp_path: Path) -> str:
    with sqlite3.connect(tmp_path / "reviews.db") as database:
        database.executescript(BEFORE_MIGRATIONS)
    return f"sqlite:///{tmp_path}/reviews.db"


def test_database_of_before_migrations_keeps_its_decisions_and_takes_new_ones(old: str) -> None:
    store = ReviewStore(old, ".")
    store.create()
    first, second = store.after(0)
    assert (first.decision, first.label, first.reviewer) == (Decision.WRONG, "b", "Ada")
    assert first.changes == (SpanEdit(start=120, stop=158, label="b"),)
    assert second.changes == (SpanEdit(start=18, stop=61, label="c"),)
    swapped = (SpanEdit(start=0, stop=5, label="b"), SpanEdit(start=5, stop=9, label="a"))
    new = NewReview(
        key="a new one",
        revision=1,
        video="v2",
        start=0,
        stop=9,
        decision=Decision.EDITED,
        edits=swapped,
        reviewer="Bob",
    )
    assert store.append(new).number == 3
    assert store.after(2)[0].changes == swapped
    with pytest.raises(sa.exc.DBAPIError, match="can only be added"), engine_of(old).begin() as c:
        c.execute(sa.text("DELETE FROM csl_reviews"))


def test_upgrading_from_several_threads_at_once_happens_once(old: str) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: upgrade(engine_of(old)), range(8)))
    with engine_of(old).connect() as connection:
        versions = connection.execute(sa.text(f"SELECT version_num FROM {VERSION_TABLE}")).all()
    assert versions == [(HEAD,)]
    assert len(ReviewStore(old, ".").after(0)) == 2


def test_migrations_make_the_tables_that_queries_expect(tmp_path: Path) -> None:
    engine = engine_of(f"sqlite:///{tmp_path}/new.db")
    upgrade(engine)
    inspector = sa.inspect(engine)
    for table in METADATA.tables.values():
        assert {c["name"] for c in inspector.get_columns(table.name)} == set(table.columns.keys())


def test_head_is_the_last_migration() -> None:
    last = max(path.name for path in (MIGRATIONS / "versions").glob("r*.py"))
    assert last.startswith(f"r{HEAD}_")
