"""Decisions of reviewers in a database: SQLite or PostgreSQL, through SQLAlchemy.

Rows are only ever added, and the database itself refuses anything else. A later decision of the
same person on the same span replaces the earlier one when reviews are read; both stay. Row numbers
grow in the order in which rows become visible, so that whoever read up to one misses none.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, IntegrityError, NoSuchModuleError, SQLAlchemyError

from csl_dist.errors import ConfigError, StorageError
from csl_dist.storage.url import Storage

DATABASE_FILE = "reviews.db"
"""In a run root on this machine, unless a database is named."""
OWN = "."
"""What stands for the run in its own database, so that a root can be moved."""
LOCK_SECONDS = 30
"""How long a writer waits for the others."""
PAGE_ROWS = 1000


class Decision(StrEnum):
    """What a person says of a flagged span."""

    CORRECT = "correct"
    """The annotated label is right."""
    WRONG = "wrong"
    """Another label is right, for all of the span."""
    BOUNDARY = "boundary"
    """Another label is right, for a span with other ends."""
    UNSURE = "unsure"
    WITHDRAWN = "withdrawn"
    """An earlier decision no longer holds."""


class State(StrEnum):
    """How far the review of a flag is."""

    UNDECIDED = "undecided"
    DECIDED = "decided"
    DISPUTED = "disputed"


SpanKey = tuple[str, int, int]
"""Video, start and stop of a flag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewReview:
    """One decision, as it is handed in."""

    key: str
    """Chosen by the one who decides, so that a request sent twice counts once."""
    revision: int
    video: str
    start: int
    stop: int
    decision: Decision
    label: str | None = None
    """The right one, of a wrong span or one whose boundary moved."""
    new_start: int | None = None
    new_stop: int | None = None
    """The ends that are right, of a span whose boundary moved."""
    reviewer: str
    comment: str = ""

    @property
    def span(self) -> SpanKey:
        return self.video, self.start, self.stop


@dataclass(frozen=True, slots=True, kw_only=True)
class Review(NewReview):
    """One decision on record."""

    number: int
    """Grows from one decision to the next."""
    when: datetime


METADATA = sa.MetaData()
REVIEWS = sa.Table(
    "csl_reviews",
    METADATA,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("audit", sa.Text, nullable=False),
    sa.Column("key", sa.Text, nullable=False),
    sa.Column("when", sa.DateTime(timezone=True), nullable=False),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("video", sa.Text, nullable=False),
    sa.Column("start", sa.Integer, nullable=False),
    sa.Column("stop", sa.Integer, nullable=False),
    sa.Column("decision", sa.Text, nullable=False),
    sa.Column("label", sa.Text),
    sa.Column("new_start", sa.Integer),
    sa.Column("new_stop", sa.Integer),
    sa.Column("reviewer", sa.Text, nullable=False),
    sa.Column("comment", sa.Text, nullable=False),
    sa.UniqueConstraint("audit", "key"),
    sa.Index("csl_reviews_of_audit", "audit", "number"),
    # A number is never given out twice, whatever becomes of the last row.
    sqlite_autoincrement=True,
)

APPEND_ONLY = {
    "sqlite": [
        f"""CREATE TRIGGER csl_reviews_no_{verb.lower()} BEFORE {verb} ON csl_reviews
        BEGIN SELECT RAISE(ABORT, 'reviews are only ever added'); END"""
        for verb in ("UPDATE", "DELETE")
    ],
    "postgresql": [
        """CREATE FUNCTION csl_reviews_refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'reviews are only ever added'; END $$""",
        """CREATE TRIGGER csl_reviews_only_added BEFORE UPDATE OR DELETE OR TRUNCATE
        ON csl_reviews EXECUTE FUNCTION csl_reviews_refuse()""",
    ],
}
for dialect, statements in APPEND_ONLY.items():
    for statement in statements:
        # DDL fills in what stands after a percent sign; there is none.
        sa.event.listen(REVIEWS, "after_create", sa.DDL(statement).execute_if(dialect=dialect))


class ReviewStore:
    """The decisions on one audit."""

    def __init__(self, url: str, audit: str):
        self._engine = _engine(url)
        self._audit = audit

    def __repr__(self) -> str:
        return f"ReviewStore({self._engine.url.render_as_string()!r}, {self._audit!r})"

    def create(self) -> None:
        """Makes the table, unless it is there."""
        with self._errors():
            try:
                METADATA.create_all(self._engine)
            except SQLAlchemyError:
                # Another process may have made it since create_all looked.
                if not sa.inspect(self._engine).has_table(REVIEWS.name):
                    raise

    def append(self, new: NewReview) -> Review:
        """Puts a decision on record; one whose key is there already is returned as it is."""
        values = {**asdict(new), "audit": self._audit, "when": datetime.now(UTC)}
        with self._errors():
            try:
                with self._engine.begin() as connection:
                    if self._engine.dialect.name == "postgresql":
                        # Numbers are given out before a commit: without the lock, a row could
                        # become visible after one with a higher number was read.
                        connection.execute(sa.text("LOCK TABLE csl_reviews IN EXCLUSIVE MODE"))
                    made = sa.insert(REVIEWS).values(values).returning(REVIEWS)
                    return _review(connection.execute(made).one())
            except IntegrityError:
                found = sa.select(REVIEWS).where(
                    REVIEWS.c.audit == self._audit, REVIEWS.c.key == new.key
                )
                with self._engine.connect() as connection:
                    return _review(connection.execute(found).one())

    def after(self, number: int, *, limit: int = PAGE_ROWS) -> list[Review]:
        """Decisions with higher numbers, in their order."""
        wanted = (
            sa.select(REVIEWS)
            .where(REVIEWS.c.audit == self._audit, REVIEWS.c.number > number)
            .order_by(REVIEWS.c.number)
            .limit(limit)
        )
        with self._errors(), self._engine.connect() as connection:
            return [_review(row) for row in connection.execute(wanted)]

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            reason = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
            where = self._engine.url.render_as_string()
            raise StorageError(f"the reviews in {where} can't be used: {reason}") from error


class Board:
    """What holds now, span by span: each reviewer's last decision. Reads what is new alone."""

    def __init__(self, store: ReviewStore, revision: int):
        self._store = store
        self._revision = revision
        self._lock = threading.Lock()
        self.last = 0
        """The number of the newest decision that was read."""
        self._by_span: dict[SpanKey, dict[str, Review]] = {}

    def current(self) -> dict[SpanKey, list[Review]]:
        """Decisions that hold, oldest first, of the spans that have any."""
        with self._lock:
            while new := self._store.after(self.last):
                self.last = new[-1].number
                for review in new:
                    if review.revision == self._revision:
                        self._put(review)
            return {
                span: sorted(held.values(), key=lambda review: review.number)
                for span, held in self._by_span.items()
                if held
            }

    def _put(self, review: Review) -> None:
        held = self._by_span.setdefault(review.span, {})
        held.pop(review.reviewer, None)
        if review.decision is not Decision.WITHDRAWN:
            held[review.reviewer] = review


def state_of(reviews: Sequence[Review]) -> State:
    """How far the review of a span is, of which some decisions hold."""
    if not reviews:
        return State.UNDECIDED
    return State.DISPUTED if is_disputed(reviews) else State.DECIDED


def is_disputed(reviews: Sequence[Review]) -> bool:
    """Whether those who are sure of a span disagree about its labels."""
    sure = [review for review in reviews if review.decision is not Decision.UNSURE]
    return len({(r.decision, r.label, r.new_start, r.new_stop) for r in sure}) > 1


def store_of(root: str, database: str | None) -> ReviewStore:
    """The reviews of a run: in the database that is named, or in the root's own."""
    url = Storage(root).url
    if database is not None:
        return ReviewStore(database, url)
    if "://" in url:
        raise ConfigError(
            f"{root} is not on this machine, so that its reviews need a database: give "
            "--database sqlite:///reviews.db or postgresql://USER@HOST/NAME"
        )
    return ReviewStore(f"sqlite:///{Path(url) / DATABASE_FILE}", OWN)


@lru_cache(maxsize=64)
def _engine(text: str) -> sa.Engine:
    """One engine, with its pool of connections, for each database in this process."""
    url = _known_url(text)
    # Waits for other writers rather than failing at once.
    waiting = {"timeout": LOCK_SECONDS} if url.get_backend_name() == "sqlite" else {}
    return sa.create_engine(url, connect_args=waiting, pool_pre_ping=True)


def _known_url(text: str) -> URL:
    try:
        url = make_url(text)
        if url.drivername in ("postgresql", "postgres"):
            url = url.set(drivername="postgresql+psycopg")
        url.get_dialect()
    except (ArgumentError, NoSuchModuleError, ValueError):
        raise ConfigError(
            "--database is not a URL of a database; give sqlite:///FILE or "
            "postgresql://USER:PASSWORD@HOST/NAME"
        ) from None
    if url.get_backend_name() not in APPEND_ONLY:
        raise ConfigError(
            f"--database names {url.get_backend_name()}, but reviews are kept in sqlite or "
            "postgresql"
        )
    return url


def _review(row: sa.Row[tuple[object, ...]]) -> Review:
    values = dict(row._mapping)
    del values["audit"]
    when: datetime = values.pop("when")
    # SQLite keeps no zone.
    when = when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    return Review(**values | {"when": when, "decision": Decision(values["decision"])})
