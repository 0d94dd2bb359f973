"""Decisions, to which rows are only added."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

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


def upgrade() -> None:
    op.create_table(
        "csl_reviews",
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
        # A number is never used twice, even if the last row is lost.
        sqlite_autoincrement=True,
    )
    op.create_index("csl_reviews_of_audit", "csl_reviews", ["audit", "number"])
    for statement in APPEND_ONLY[op.get_context().dialect.name]:
        op.execute(statement)
