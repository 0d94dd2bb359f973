"""Decisions of reviewers in a database: SQLite or PostgreSQL, through SQLAlchemy.

Rows are only added; the database itself refuses updates and deletions. If a person decides twice on
a span, both rows stay, and the later one counts. Rows become visible in the order of their numbers,
so that a reader who continues after the last number it saw misses none.
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
from csl_dist.storage.paths import RunPaths
from csl_dist.storage.run_file import identity_of
from csl_dist.storage.url import Storage

OWN_RUN = "."
"""The name of a run in its own database, so that its root can be moved."""
LOCK_SECONDS = 30
"""How long a writer waits for other writers."""
ANSWER_SECONDS = 5.0
"""How long a request waits for others that wait for the database, before it is refused."""
PAGE_ROWS = 1000


class Decision(StrEnum):
    """What a reviewer decides about a flagged span."""

    CORRECT = "correct"
    """The annotated label is right."""
    WRONG = "wrong"
    """Another label is right, for the whole span."""
    BOUNDARY = "boundary"
    """Another label is right, for a span with other ends."""
    UNSURE = "unsure"
    WITHDRAWN = "withdrawn"
    """The reviewer took the earlier decision back."""


class State(StrEnum):
    """How far the review of a flag is."""

    UNDECIDED = "undecided"
    DECIDED = "decided"
    DISPUTED = "disputed"


SpanKey = tuple[str, int, int]
"""Video, start and stop of a flag."""


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
    reviewer: str
    comment: str = ""

    @property
    def span(self) -> SpanKey:
        return self.video, self.start, self.stop


@dataclass(frozen=True, slots=True, kw_only=True)
class Review(NewReview):
    """A saved decision."""

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
    # A number is never used twice, even if the last row is lost.
    sqlite_autoincrement=True,
)

APPEND_ONLY = {
    "sqlite": [
        f"""CREATE TRIGGER csl_reviews_no_{verb.lower()} BEFORE {verb} ON csl_reviews
        BEGIN SELECT RAISE(ABORT, 'reviews can only be added'); END"""
        for verb in ("UPDATE", "DELETE")
    ],
    "postgresql": [
        """CREATE FUNCTION csl_reviews_refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'reviews can only be added'; END $$""",
        """CREATE TRIGGER csl_reviews_only_added BEFORE UPDATE OR DELETE OR TRUNCATE
        ON csl_reviews EXECUTE FUNCTION csl_reviews_refuse()""",
    ],
}
for dialect, statements in APPEND_ONLY.items():
    for statement in statements:
        # DDL replaces text after a percent sign; these statements have none.
        sa.event.listen(REVIEWS, "after_create", sa.DDL(statement).execute_if(dialect=dialect))


class ReviewStore:
    """The decisions on one audit."""

    def __init__(self, url: str, audit: str):
        self._engine = _engine(url)
        self._audit = audit

    def __repr__(self) -> str:
        return f"ReviewStore({self._engine.url.render_as_string()!r}, {self._audit!r})"

    def create(self) -> None:
        """Creates the table if it does not exist."""
        with self._errors():
            try:
                METADATA.create_all(self._engine)
            except SQLAlchemyError:
                # Another process may have created it in the meantime.
                if not sa.inspect(self._engine).has_table(REVIEWS.name):
                    raise

    def append(self, new: NewReview) -> Review:
        """Saves a decision; if its key is saved already, returns that one."""
        values = {**asdict(new), "audit": self._audit, "when": datetime.now(UTC)}
        with self._errors():
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


class CurrentDecisions:
    """Each reviewer's last decision on each span; reads only the new rows of the store."""

    def __init__(self, store: ReviewStore, revision: int | None):
        """Of one audit, or of all where its number is None."""
        self._store = store
        self._revision = revision
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
                    if self._revision in (None, review.revision):
                        self._add(review)
            return {
                span: sorted(by_reviewer.values(), key=lambda review: review.number)
                for span, by_reviewer in self._by_span.items()
                if by_reviewer
            }
        finally:
            self._lock.release()

    def _add(self, review: Review) -> None:
        by_reviewer = self._by_span.setdefault(review.span, {})
        by_reviewer.pop(review.reviewer, None)
        if review.decision is not Decision.WITHDRAWN:
            by_reviewer[review.reviewer] = review


def judged_spans(root: str) -> dict[SpanKey, str | None]:
    """The right label of spans that reviewers of any audit agree on; None for the annotated one.

    From the database in a root on this machine; of other databases the root knows nothing.
    """
    if "://" in Storage(root).url or not (Path(Storage(root).url) / RunPaths.REVIEWS).exists():
        return {}
    judged = {}
    for span, reviews in CurrentDecisions(store_of(root, None), None).by_span().items():
        labels = {r.label for r in reviews if r.decision is not Decision.UNSURE}
        if len(labels) == 1:
            judged[span] = labels.pop()
    return judged


def state_of(reviews: Sequence[Review]) -> State:
    """How far the review of a span with these decisions is."""
    if not reviews:
        return State.UNDECIDED
    return State.DISPUTED if is_disputed(reviews) else State.DECIDED


def is_disputed(reviews: Sequence[Review]) -> bool:
    """Whether reviewers who are sure disagree about the label or the boundary."""
    sure = [review for review in reviews if review.decision is not Decision.UNSURE]
    return len({(r.decision, r.label, r.new_start, r.new_stop) for r in sure}) > 1


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
    if database is not None:
        return ReviewStore(database, url + suffix)
    return ReviewStore(f"sqlite:///{Path(url) / RunPaths.REVIEWS}", OWN_RUN + suffix)


@lru_cache(maxsize=64)
def _engine(text: str) -> sa.Engine:
    """One engine, with its pool of connections, per database and process."""
    url = _known_url(text)
    # Waits for other writers instead of failing at once.
    if url.get_backend_name() == "sqlite":
        return sa.create_engine(url, connect_args={"timeout": LOCK_SECONDS}, pool_pre_ping=True)
    return sa.create_engine(
        url,
        connect_args={"connect_timeout": int(ANSWER_SECONDS)},
        pool_pre_ping=True,
        pool_timeout=ANSWER_SECONDS,
    )


def _known_url(text: str) -> URL:
    try:
        url = make_url(text)
        if url.drivername in ("postgresql", "postgres"):
            url = url.set(drivername="postgresql+psycopg")
        url.get_dialect()
    except (ArgumentError, NoSuchModuleError, ValueError):
        raise ConfigError(
            "--database is not the URL of a database; give sqlite:///FILE or "
            "postgresql://USER:PASSWORD@HOST/NAME"
        ) from None
    if url.get_backend_name() not in APPEND_ONLY:
        raise ConfigError(
            f"--database names {url.get_backend_name()}, but reviews need sqlite or postgresql"
        )
    return url


def _review(row: sa.Row[tuple[object, ...]]) -> Review:
    values = dict(row._mapping)
    del values["audit"]
    when: datetime = values.pop("when")
    # SQLite does not store a time zone.
    when = when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    return Review(**values | {"when": when, "decision": Decision(values["decision"])})
