"""Decisions of reviewers in a database: SQLite or PostgreSQL, through SQLAlchemy.

Rows are only added; the database itself refuses updates and deletions. If a person decides twice on
a span, both rows stay, and the later one counts. Rows become visible in the order of their numbers,
so that a reader who continues after the last number it saw misses none.
"""

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from csl_dist.errors import ConfigError, DamagedError, StorageError
from csl_dist.review.database import (
    ANSWER_SECONDS,
    ASSIGNMENTS,
    REVIEWS,
    engine_of,
    storage_errors,
    upgrade,
)
from csl_dist.review.edits import SpanEdit
from csl_dist.storage.paths import RunPaths
from csl_dist.storage.review_digest import row_digest
from csl_dist.storage.run_file import identity_of
from csl_dist.storage.url import Storage

OWN_RUN = "."
"""The name of a run in its own database, so that its root can be moved."""
PAGE_ROWS = 1000


class Decision(StrEnum):
    """What a reviewer decides about a span."""

    CORRECT = "correct"
    """The annotated label is right."""
    WRONG = "wrong"
    """Another label is right, for the whole span."""
    BOUNDARY = "boundary"
    """Another label is right, for a span with other ends."""
    EDITED = "edited"
    """Other labels are right, as the edits say: a swap, a split, a boundary that moves."""
    ORDER = "order"
    """Labels name what is to be seen, but the steps come in the wrong order."""
    UNSURE = "unsure"
    WITHDRAWN = "withdrawn"
    """The reviewer took the earlier decision back."""


ERRORS = (Decision.WRONG, Decision.BOUNDARY, Decision.EDITED, Decision.ORDER)
"""Decisions that something is wrong."""


class State(StrEnum):
    """How far the review of a span is."""

    UNDECIDED = "undecided"
    DECIDED = "decided"
    DISPUTED = "disputed"


SpanKey = tuple[str, int, int]
"""Video, start and stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewReview:
    """A decision that is not saved yet."""

    key: str
    """Chosen by the sender, so that a request sent twice counts once."""
    revision: int
    video: str
    start: int
    stop: int
    decision: Decision
    label: str | None = None
    """The right label, for WRONG and BOUNDARY."""
    new_start: int | None = None
    new_stop: int | None = None
    """The right start and stop, for BOUNDARY."""
    edits: tuple[SpanEdit, ...] | None = None
    """What changes; None is what label, start and stop say."""
    reviewer: str
    comment: str = ""

    @property
    def span(self) -> SpanKey:
        return self.video, self.start, self.stop

    @property
    def changes(self) -> tuple[SpanEdit, ...]:
        """The edits that the decision comes down to; empty where labels stay."""
        if self.edits is not None:
            return self.edits
        if self.label is None:
            return ()
        start = self.start if self.new_start is None else self.new_start
        stop = self.stop if self.new_stop is None else self.new_stop
        return (SpanEdit(start=start, stop=stop, label=self.label),)

    @property
    def verdict(self) -> object:
        """Equal for two decisions that say the same."""
        edits = frozenset((edit.start, edit.stop, edit.label) for edit in self.changes)
        return edits or self.decision


@dataclass(frozen=True, slots=True, kw_only=True)
class Review(NewReview):
    """A saved decision."""

    number: int
    """Grows from one decision to the next."""
    when: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedSpan:
    """What reviewers agree on about a span: the last of their decisions."""

    revision: int
    """The audit that the reviewer looked at."""
    decision: Decision
    edits: tuple[SpanEdit, ...]


class ReviewStore:
    """The decisions on one audit."""

    def __init__(self, url: str, audit: str):
        self._engine = engine_of(url)
        self._audit = audit

    def __repr__(self) -> str:
        return f"ReviewStore({self._engine.url.render_as_string()!r}, {self._audit!r})"

    def may_exist(self) -> bool:
        """Whether its file is there; of a server that is not asked."""
        file = self._engine.url.database
        return self._engine.dialect.name != "sqlite" or (bool(file) and Path(str(file)).exists())

    def create(self) -> None:
        """Creates the tables if they do not exist; those of an earlier version are brought up."""
        with storage_errors(self._engine):
            upgrade(self._engine)

    def append(self, new: NewReview) -> Review:
        """Saves a decision; if its key is saved already, returns that one."""
        edits = None if new.edits is None else json.dumps([edit.as_json() for edit in new.edits])
        made = {"audit": self._audit, "when": datetime.now(UTC), "edits": edits}
        values = asdict(new) | made
        values["digest"] = row_digest(values)
        with storage_errors(self._engine):
            try:
                with self._engine.begin() as connection:
                    if self._engine.dialect.name == "postgresql":
                        # Numbers are assigned before the commit: without the lock, a row could
                        # become visible after a row with a higher number was read.
                        connection.execute(sa.text("LOCK TABLE csl_reviews IN EXCLUSIVE MODE"))
                    insert = sa.insert(REVIEWS).values(values).returning(REVIEWS)
                    return _review(connection.execute(insert).one())
            except IntegrityError:
                saved = sa.select(REVIEWS).where(
                    REVIEWS.c.audit == self._audit, REVIEWS.c.key == new.key
                )
                with self._engine.connect() as connection:
                    return _review(connection.execute(saved).one())

    def after(self, number: int, *, limit: int = PAGE_ROWS) -> list[Review]:
        """Decisions with higher numbers, lowest first."""
        wanted = (
            sa.select(REVIEWS)
            .where(REVIEWS.c.audit == self._audit, REVIEWS.c.number > number)
            .order_by(REVIEWS.c.number)
            .limit(limit)
        )
        with storage_errors(self._engine), self._engine.connect() as connection:
            return [_review(row) for row in connection.execute(wanted)]

    def put_assignment(self, rule: Mapping[str, Any]) -> None:
        """Saves who reviews what from now on."""
        values = {"audit": self._audit, "when": datetime.now(UTC), "rule": json.dumps(dict(rule))}
        with storage_errors(self._engine), self._engine.begin() as connection:
            connection.execute(sa.insert(ASSIGNMENTS).values(values))

    def assignment(self) -> dict[str, Any] | None:
        """Who reviews what; None where nobody has been assigned anything."""
        wanted = (
            sa.select(ASSIGNMENTS.c.rule)
            .where(ASSIGNMENTS.c.audit == self._audit)
            .order_by(ASSIGNMENTS.c.number.desc())
            .limit(1)
        )
        with storage_errors(self._engine), self._engine.connect() as connection:
            found = connection.execute(wanted).scalar()
        rule: dict[str, Any] | None = None if found is None else json.loads(found)
        return rule


class CurrentDecisions:
    """Each reviewer's last decision on each span; reads only the new rows of the store."""

    def __init__(self, store: ReviewStore, place_of: Callable[[Review], SpanKey | None]):
        """`place_of` gives the span that a decision is about now; None where it no longer counts.

        `of_revision` and `csl_dist.review.carried` make such functions.
        """
        self._store = store
        self._place_of = place_of
        self._lock = threading.Lock()
        self.last = 0
        """Number of the newest decision that was read."""
        self._by_span: dict[SpanKey, dict[str, Review]] = {}

    def by_span(self) -> dict[SpanKey, list[Review]]:
        """The decisions on each span that has any, oldest first."""
        # Not for ever: a database that gives no answer would take one thread after the other.
        if not self._lock.acquire(timeout=ANSWER_SECONDS):
            raise StorageError("the database of the reviews gives no answer; try again later")
        try:
            while new := self._store.after(self.last):
                self.last = new[-1].number
                for review in new:
                    span = self._place_of(review)
                    if span is not None:
                        self._add(span, review)
            return {
                span: sorted(by_reviewer.values(), key=lambda review: review.number)
                for span, by_reviewer in self._by_span.items()
                if by_reviewer
            }
        finally:
            self._lock.release()

    def _add(self, span: SpanKey, review: Review) -> None:
        by_reviewer = self._by_span.setdefault(span, {})
        by_reviewer.pop(review.reviewer, None)
        if review.decision is not Decision.WITHDRAWN:
            by_reviewer[review.reviewer] = review


def of_revision(revision: int | None) -> Callable[[Review], SpanKey | None]:
    """Decisions on one audit, or on all where its number is None, each at its own span."""
    return lambda review: review.span if revision in (None, review.revision) else None


def judged_spans(root: str, database: str | None) -> dict[SpanKey, JudgedSpan]:
    """Spans of which reviewers of any audit agree whether they are an error.

    From the given database, or from that in a root on this machine, where there is one; whoever
    only reads makes no file.
    """
    if database is None and "://" in Storage(root).url:
        return {}
    store = store_of(root, database)
    if not store.may_exist():
        return {}
    store.create()
    judged = {}
    for span, reviews in CurrentDecisions(store, of_revision(None)).by_span().items():
        sure = [r for r in reviews if r.decision is not Decision.UNSURE]
        if len({r.decision in ERRORS for r in sure}) == 1:
            last = sure[-1]
            judged[span] = JudgedSpan(
                revision=last.revision, decision=last.decision, edits=last.changes
            )
    return judged


def state_of(reviews: Sequence[Review]) -> State:
    """How far the review of a span with these decisions is."""
    if not reviews:
        return State.UNDECIDED
    return State.DISPUTED if is_disputed(reviews) else State.DECIDED


def is_disputed(reviews: Sequence[Review]) -> bool:
    """Whether reviewers who are sure disagree about the label or the boundary."""
    sure = [review for review in reviews if review.decision is not Decision.UNSURE]
    return len({review.verdict for review in sure}) > 1


def store_of(root: str, database: str | None) -> ReviewStore:
    """The reviews of a run: in the given database, or in the run root."""
    url = Storage(root).url
    if database is None and "://" in url:
        raise ConfigError(
            f"{root} is not on this machine, so that its reviews need a database; give "
            "--database sqlite:///reviews.db or postgresql://USER@HOST/NAME"
        )
    # Another run at the same place has audits of the same numbers, and none of these decisions.
    identity = identity_of(root)
    suffix = f"#{identity}" if identity else ""
    own = own_database(url)
    if database in (None, own):
        return ReviewStore(own, OWN_RUN + suffix)
    return ReviewStore(str(database), url + suffix)


def own_database(root: str) -> str:
    """URL of the reviews that lie in a root on this machine."""
    return f"sqlite:///{Path(root) / RunPaths.REVIEWS}"


def _review(row: sa.Row[tuple[object, ...]]) -> Review:
    """The decision of a row; DamagedError where it is not as it was saved."""
    values = dict(row._mapping)
    written = values.pop("digest")
    if written is not None and written != row_digest(values):
        raise _damaged(values["number"], "it is not what was saved")
    del values["audit"]
    when: datetime = values.pop("when")
    # SQLite does not store a time zone.
    when = when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    edits = values.pop("edits")
    try:
        if edits is not None:
            edits = tuple(SpanEdit(**edit) for edit in json.loads(edits))
        made = {"when": when, "decision": Decision(values["decision"]), "edits": edits}
        return Review(**values | made)
    except (TypeError, ValueError) as error:
        raise _damaged(values["number"], error) from error


def _damaged(number: int, reason: object) -> DamagedError:
    place = f"decision {number} of the reviews"
    return DamagedError(
        f"{place} is damaged ({reason}), and nothing can make it again; restore a copy of the "
        "database",
        place,
    )
