"""Decisions on SQLite and on a real PostgreSQL server: nothing is lost, nothing is changed."""

import subprocess
import sys
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import made_run
import pytest
import sqlalchemy as sa
from made_run import WRONG
from postgres_server import postgres_server
from served import HERE, client_of, refusal
from sqlalchemy.exc import OperationalError
from starlette.testclient import TestClient

import csl_dist
from csl_dist.audit.relabel import relabel
from csl_dist.errors import ConfigError, StorageError
from csl_dist.review import database as review_database
from csl_dist.review.database import REVIEWS
from csl_dist.review.store import (
    CurrentDecisions,
    Decision,
    NewReview,
    Review,
    ReviewStore,
    is_disputed,
    judged_spans,
    of_revision,
    store_of,
)
from csl_dist.service import audits
from csl_dist.service.app import create_app
from csl_dist.service.routes.reviews import progress
from csl_dist.service.settings import ServiceSettings

NUM_WRITERS, PER_WRITER = 8, 25


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    with postgres_server() as url:
        if url is None:
            pytest.skip("PostgreSQL is not installed: there is no initdb")
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/reviews.db"
    url: str = request.getfixturevalue("postgres")
    return url


@pytest.fixture
def store(database: str) -> ReviewStore:
    made = ReviewStore(database, f"audit {uuid.uuid4()}")
    made.create()
    return made


def review(**changes: Any) -> NewReview:
    made = NewReview(
        key=uuid.uuid4().hex,
        revision=0,
        video="v2",
        start=120,
        stop=160,
        decision=Decision.WRONG,
        label="b",
        reviewer="Ada",
    )
    return replace(made, **changes)


def test_decision_comes_back_as_it_was_given(store: ReviewStore) -> None:
    given = review(
        decision=Decision.BOUNDARY, new_start=118, new_stop=161, comment='ä "quoted"; DROP TABLE'
    )
    before = datetime.now(UTC)
    made = store.append(given)
    assert store.after(0) == [made]
    assert {k: v for k, v in asdict(made).items() if k not in ("number", "when")} == asdict(given)
    assert before <= made.when <= datetime.now(UTC)


def test_decision_sent_twice_counts_once(store: ReviewStore) -> None:
    given = review()
    assert store.append(given) == store.append(given)
    assert len(store.after(0)) == 1


def test_audits_in_one_database_do_not_see_each_other(database: str) -> None:
    one, other = (ReviewStore(database, f"{uuid.uuid4()}") for _ in range(2))
    one.create()
    key = uuid.uuid4().hex
    one.append(review(key=key))
    assert other.after(0) == []
    other.append(review(key=key))
    assert len(other.after(0)) == len(one.after(0)) == 1


def test_database_itself_refuses_to_change_or_remove_a_decision(
    store: ReviewStore, database: str
) -> None:
    made = store.append(review())
    engine = store._engine
    for statement in (
        sa.update(REVIEWS).values(decision="correct"),
        sa.delete(REVIEWS).where(REVIEWS.c.number == made.number),
    ):
        with (
            pytest.raises(sa.exc.DBAPIError, match="can only be added"),
            engine.begin() as connection,
        ):
            connection.execute(statement)
    assert store.after(0) == [made]


def test_creating_twice_keeps_what_is_there(store: ReviewStore) -> None:
    made = store.append(review())
    store.create()
    assert store.after(0) == [made]


WRITER = """
import sys, uuid
from csl_dist.review.store import Decision, NewReview, ReviewStore
store = ReviewStore(sys.argv[1], sys.argv[2])
for i in range(int(sys.argv[4])):
    store.append(NewReview(key=uuid.uuid4().hex, revision=0, video="v2", start=i, stop=i + 1,
        decision=Decision.CORRECT, reviewer=sys.argv[3]))
"""


def test_eight_processes_write_at_once_and_a_reader_misses_nothing(
    store: ReviewStore, database: str
) -> None:
    arguments = [database, store._audit]
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, *arguments, f"reviewer {i}", str(PER_WRITER)]
        )
        for i in range(NUM_WRITERS)
    ]
    seen: list[tuple[str, int]] = []
    last = 0
    while True:
        is_over = all(writer.poll() is not None for writer in writers)
        new = store.after(last, limit=7)
        seen += [(r.reviewer, r.start) for r in new]
        last = new[-1].number if new else last
        if is_over and not new:
            break
    assert [writer.returncode for writer in writers] == [0] * NUM_WRITERS
    expected = {(f"reviewer {i}", n) for i in range(NUM_WRITERS) for n in range(PER_WRITER)}
    assert len(seen) == len(expected)
    assert set(seen) == expected, "one who reads along sees every decision"


def test_eight_threads_of_one_process_write_at_once(store: ReviewStore) -> None:
    keys = [uuid.uuid4().hex for _ in range(NUM_WRITERS * PER_WRITER)]
    with ThreadPoolExecutor(NUM_WRITERS) as pool:
        list(pool.map(lambda key: store.append(review(key=key)), keys))
    assert sorted(r.key for r in store.after(0)) == sorted(keys)


def test_current_decisions_are_the_last_of_each_reviewer(store: ReviewStore) -> None:
    decisions = CurrentDecisions(store, of_revision(0))
    store.append(review())
    store.append(review(reviewer="Bob", decision=Decision.CORRECT, label=None))
    store.append(review(revision=1, reviewer="Cid"))
    [held] = decisions.by_span().values()
    assert [(r.reviewer, r.decision) for r in held] == [("Ada", "wrong"), ("Bob", "correct")]
    assert is_disputed(held)
    store.append(review(decision=Decision.CORRECT, label=None))
    [held] = decisions.by_span().values()
    assert [r.reviewer for r in held] == ["Bob", "Ada"], "the last decision is last"
    assert not is_disputed(held)
    store.append(review(decision=Decision.WITHDRAWN, label=None))
    store.append(review(reviewer="Bob", decision=Decision.WITHDRAWN, label=None))
    assert decisions.by_span() == {}
    assert len(store.after(0)) == 6, "the history has all of them"


def test_unsure_disputes_nobody() -> None:
    made = [
        recorded(review(), 1),
        recorded(review(reviewer="Bob", decision=Decision.UNSURE, label=None), 2),
    ]
    assert not is_disputed(made)


def recorded(new: NewReview, number: int) -> Review:
    """A decision on record."""
    return Review(**asdict(new), number=number, when=datetime.now(UTC))


def test_progress_counts_the_last_decision_of_each_span() -> None:
    held = {
        ("v", i, i + 1): [recorded(review(decision=decision, label=None), i)]
        for i, decision in enumerate(["wrong", "wrong", "boundary", "correct", "unsure"])
    }
    found = progress(
        {
            span: [replace(r, decision=Decision(r.decision)) for r in reviews]
            for span, reviews in held.items()
        },
        total=20,
    )
    assert (found["decided"], found["wrong"], found["correct"], found["unsure"]) == (5, 3, 1, 1)
    assert found["precision"] == 0.75
    assert found["precision_low"] == pytest.approx(0.3006, abs=1e-3)  # by Wilson's formula
    assert found["precision_high"] == pytest.approx(0.9544, abs=1e-3)
    assert progress({}, total=20)["precision_low"] is None


def test_bad_databases_are_named_without_their_password(tmp_path: Path) -> None:
    for url in ("nonsense", "oracle://x", "sqlite", "mysql://u:p@h/d"):
        with pytest.raises(ConfigError, match="--database"):
            ReviewStore(url, "x")
    with pytest.raises(ConfigError, match="sqlite:///reviews.db"):
        store_of("s3://bucket/run", None)
    lost = ReviewStore("postgresql://me:secret@127.0.0.1:1/x", "x")
    with pytest.raises(StorageError, match="can't be used") as caught:
        lost.create()
    assert "secret" not in str(caught.value)
    nowhere = ReviewStore(f"sqlite:///{tmp_path}/none/reviews.db", "x")
    with pytest.raises(StorageError, match="can't be used"):
        nowhere.create()


# Over HTTP


def decision(start: int, stop: int, **changes: Any) -> dict[str, Any]:
    given = {"decision": "wrong", "label": "b", "reviewer": "Ada", "video": "v2"}
    return {"key": uuid.uuid4().hex, "start": start, "stop": stop, **given, **changes}


def flag_of(root: str) -> tuple[int, int]:
    flag = csl_dist.open_audit(root).flags().iloc[0]
    return int(flag.start), int(flag.stop)


def test_two_reviewers_see_each_others_decisions(made_root: str, database: str) -> None:
    span = flag_of(made_root)
    path = "/api/audits/run/reviews"
    # Two replicas of one service.
    ada, bob = (client_of(made_root, database=database) for _ in range(2))
    first = ada.post(path, json=decision(*span))
    assert first.status_code == 201
    seen = bob.get(f"{path}?after={first.json()['number'] - 1}").json()["reviews"]
    assert [(r["reviewer"], r["label"]) for r in seen] == [("Ada", "b")]
    other = {"reviewer": "Bob", "decision": "correct", "label": None, "comment": "looks fine"}
    bob.post(path, json=decision(*span, **other))
    flag = ada.get("/api/audits/run/flags").json()["flags"][0]
    assert flag["state"] == "disputed"
    assert [r["reviewer"] for r in flag["reviews"]] == ["Ada", "Bob"]
    assert ada.get("/api/audits/run/flags?state=disputed").json()["total"] == 1
    found = ada.get("/api/audits/run/progress").json()
    assert (found["decided"], found["disputed"]) == (1, 1)
    assert found["reviewers"] == {"Ada": 1, "Bob": 1}


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({"label": None}, 422, "needs the right label"),
        ({"decision": "correct"}, 422, "must not have a label"),
        ({"label": "nothing"}, 400, "there are a, b, c"),
        ({"new_start": 3}, 422, "boundary"),
        ({"decision": "boundary", "new_start": 9, "new_stop": 3}, 422, "above"),
        ({"decision": "boundary", "new_start": 9, "new_stop": 999}, 400, "300 frames"),
        ({"start": 0, "stop": 999}, 400, "300 frames"),
        ({"decision": "edited", "label": None}, 422, "needs edits"),
        ({"edits": [{"start": 1, "stop": 5, "label": "a"}]}, 422, "needs edits"),
        ({"video": "v9"}, 404, "no video"),
        ({"reviewer": "  "}, 422, "reviewer"),
        ({"comment": "x" * 3000}, 422, "comment"),
        ({"comment": "PostgreSQL keeps no \0"}, 422, "NUL"),
        ({"decision": "maybe"}, 422, "decision"),
        ({"number": 1}, 422, "number"),
    ],
)
def test_decisions_that_make_no_sense_are_refused(
    made_root: str, changes: dict[str, Any], status: int, words: str
) -> None:
    start, stop = flag_of(made_root)
    client = client_of(made_root)
    answer = client.post("/api/audits/run/reviews", json={**decision(start, stop), **changes})
    assert words in refusal(answer, status)
    kept = client.get("/api/audits/run/reviews").json()
    assert kept == {"reviews": [], "last": 0, "newest": 1}


def test_decision_on_an_audit_that_was_made_anew_is_refused(
    made_root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The span may still be flagged, but under another label than the reviewer saw."""
    monkeypatch.setattr(audits, "CHECK_SECONDS", 0.0)
    client = client_of(made_root)
    span = flag_of(made_root)
    path = "/api/audits/run/reviews"
    assert client.post(path, json=decision(*span, revision=1)).status_code == 201
    (tmp_path / "fixed").mkdir()
    moved = made_run.TRUE_LABELS.copy()
    moved[100] = 0  # in another video
    (tmp_path / "fixed" / "v3.txt").write_text(made_run.label_text(moved))
    relabel(made_root, tmp_path / "fixed")
    assert flag_of(made_root) == span
    late = client.post(path, json=decision(*span, revision=1))
    assert "load the page again" in refusal(late, 409)
    # The labels that the first decision is about are as they were, so that it still counts.
    assert client.get("/api/audits/run/progress").json()["decided"] == 1
    assert client.get("/api/audits/run/progress?revision=1").json()["decided"] == 1
    assert client.post(path, json=decision(*span, revision=2)).status_code == 201


def test_progress_says_which_decision_was_last(made_root: str) -> None:
    client = client_of(made_root)
    assert client.get("/api/audits/run/progress").json()["last"] == 0
    made = client.post("/api/audits/run/reviews", json=decision(*flag_of(made_root))).json()
    assert client.get("/api/audits/run/progress").json()["last"] == made["number"]


def test_run_that_joins_later_gets_its_table(made_root: str) -> None:
    """As one does that was submitted through the service."""
    client = TestClient(create_app(ServiceSettings(roots=(made_root,))), base_url=HERE)
    assert client.get("/api/audits/run/reviews").json()["reviews"] == []
    assert client.get("/api/audits/run/flags").json()["total"] == 1


def test_moved_root_keeps_its_reviews(made_root: str, tmp_path: Path) -> None:
    client_of(made_root).post("/api/audits/run/reviews", json=decision(*flag_of(made_root)))
    moved = Path(made_root).rename(tmp_path / "moved")
    [found] = client_of(str(moved)).get("/api/audits/moved/reviews").json()["reviews"]
    assert found["video"] == "v2"
    assert abs(found["start"] - WRONG.start) <= 4


def test_database_that_gave_no_answer_is_not_waited_for_by_one_request_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = review_database.engine_of(f"sqlite:///{tmp_path}/reviews.db")
    now = [0.0]
    monkeypatch.setattr(review_database, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def ask(seconds: float) -> None:
        with review_database.storage_errors(engine):
            now[0] += seconds
            raise OperationalError("SELECT 1", {}, Exception("connection timeout expired"))

    with pytest.raises(StorageError, match="timeout expired"):
        ask(0.1)
    with pytest.raises(StorageError, match="timeout expired"):
        ask(5.0)
    with pytest.raises(StorageError, match="it just gave no answer"):
        ask(5.0)
    assert now[0] == 5.1, "it was not asked"
    now[0] += review_database.SILENT_SECONDS
    with review_database.storage_errors(engine):
        pass


@pytest.mark.parametrize(
    ("decisions", "expected"),
    [
        ([Decision.ORDER], Decision.ORDER),
        ([Decision.CORRECT, Decision.ORDER], None),
        ([Decision.WRONG, Decision.ORDER], Decision.ORDER),
        ([Decision.CORRECT, Decision.UNSURE], Decision.CORRECT),
        ([Decision.UNSURE], None),
    ],
)
def test_span_is_judged_where_reviewers_agree_whether_it_is_an_error(
    tmp_path: Path, decisions: list[Decision], expected: Decision | None
) -> None:
    store = store_of(str(tmp_path), None)
    store.create()
    for number, decision in enumerate(decisions):
        label = "b" if decision is Decision.WRONG else None
        store.append(review(decision=decision, label=label, reviewer=str(number)))
    judged = judged_spans(str(tmp_path), None)
    assert [one.decision for one in judged.values()] == ([] if expected is None else [expected])
