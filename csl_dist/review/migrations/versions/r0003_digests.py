"""A digest of each decision, so that a damaged one is noticed; earlier rows have none."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("csl_reviews", sa.Column("digest", sa.Text))
