"""The database of the reviews: SQLite or PostgreSQL, its tables, and the newest schema.

`upgrade` brings any database that an earlier version made to the schema that this one reads and
writes; rows stay as they are.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from csl_dist.errors import ConfigError, StorageError
from csl_dist.storage.review_digest import TABLE

LOCK_SECONDS = 30
"""How long a writer waits for other writers."""
ANSWER_SECONDS = 5.0
"""How long a request waits for others that wait for the database, before it is refused."""
DIALECTS = ("sqlite", "postgresql")
MIGRATIONS = Path(__file__).parent / "migrations"
FIRST, HEAD = "0001", "0003"
"""The schema before there were migrations, and that of today."""
VERSION_TABLE = "csl_schema"
UPGRADE_LOCK = 7_240_117
"""Number of PostgreSQL's advisory lock: one process at a time changes the schema."""

SILENT_SECONDS = 2.0
"""A database that failed after so long gave no answer, and is not asked for so long."""
_SILENT_AT: dict[str, float] = {}

METADATA = sa.MetaData()
REVIEWS = sa.Table(
    TABLE,
    METADATA,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("audit", sa.Text),
    sa.Column("key", sa.Text),
    sa.Column("when", sa.DateTime(timezone=True)),
    sa.Column("revision", sa.Integer),
    sa.Column("video", sa.Text),
    sa.Column("start", sa.Integer),
    sa.Column("stop", sa.Integer),
    sa.Column("decision", sa.Text),
    sa.Column("label", sa.Text),
    sa.Column("new_start", sa.Integer),
    sa.Column("new_stop", sa.Integer),
    sa.Column("reviewer", sa.Text),
    sa.Column("comment", sa.Text),
    sa.Column("edits", sa.Text),
    sa.Column("digest", sa.Text),
)
ASSIGNMENTS = sa.Table(
    "csl_assignments",
    METADATA,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("audit", sa.Text),
    sa.Column("when", sa.DateTime(timezone=True)),
    sa.Column("rule", sa.Text),
)


@lru_cache(maxsize=64)
def engine_of(text: str) -> sa.Engine:
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


def upgrade(engine: sa.Engine) -> None:
    """Makes the tables, or brings those of an earlier version up to date."""
    if _version(engine) == HEAD:
        return
    with engine.begin() as connection:
        if engine.dialect.name == "sqlite":
            # SQLite's driver would not put changes of the schema into a transaction by itself.
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        else:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(UPGRADE_LOCK)))
        _run_migrations(connection)


def _version(engine: sa.Engine) -> str | None:
    if not sa.inspect(engine).has_table(VERSION_TABLE):
        return None
    with engine.connect() as connection:
        found = connection.execute(sa.text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()
        return None if found is None else str(found)


def _run_migrations(connection: sa.Connection) -> None:
    from alembic.config import Config  # takes a while, and is needed once in a database's life
    from alembic.runtime.environment import EnvironmentContext
    from alembic.runtime.migration import MigrationContext
    from alembic.script import ScriptDirectory

    script = ScriptDirectory(str(MIGRATIONS))
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
    if context.get_current_revision() is None and sa.inspect(connection).has_table(REVIEWS.name):
        context.stamp(script, FIRST)
    steps = EnvironmentContext(
        Config(), script, fn=lambda found, _: script._upgrade_revs(HEAD, found)
    )
    with steps:
        steps.configure(connection=connection, version_table=VERSION_TABLE)
        steps.run_migrations()


@contextmanager
def storage_errors(engine: sa.Engine) -> Iterator[None]:
    """Any failure of the database as one sentence.

    Where one was waited for in vain, those who come at the same time are told so at once: else a
    page's requests would wait one after the other.
    """
    where = engine.url.render_as_string()
    begun = time.monotonic()
    if begun - _SILENT_AT.get(where, -SILENT_SECONDS) < SILENT_SECONDS:
        raise StorageError(f"the reviews in {where} can't be used: it just gave no answer")
    try:
        yield
    except SQLAlchemyError as error:
        if time.monotonic() - begun > SILENT_SECONDS:
            _SILENT_AT[where] = time.monotonic()
        reason = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        raise StorageError(f"the reviews in {where} can't be used: {reason}") from error


def _known_url(text: str) -> URL:
    try:
        url = make_url(text)
        if url.drivername in ("postgresql", "postgres"):
            url = url.set(drivername="postgresql+psycopg")
        url.get_dialect()
    except (ArgumentError, NoSuchModuleError, ValueError):
        raise ConfigError(
            "--database, or audit.reviews, is not the URL of a database; give sqlite:////FILE or "
            "postgresql://USER@HOST/NAME"
        ) from None
    if url.get_backend_name() not in DIALECTS:
        raise ConfigError(
            f"--database names {url.get_backend_name()}, but reviews need sqlite or postgresql"
        )
    return url
