"""Decisions that change several spans at once, and who reviews what."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("csl_reviews", sa.Column("edits", sa.Text))
    op.create_table(
        "csl_assignments",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("audit", sa.Text, nullable=False),
        sa.Column("when", sa.DateTime(timezone=True), nullable=False),
        sa.Column("rule", sa.Text, nullable=False),
    )
    op.create_index("csl_assignments_of_audit", "csl_assignments", ["audit", "number"])
