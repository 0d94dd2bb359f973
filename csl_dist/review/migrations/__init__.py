"""The schema of the reviews, step by step: alembic runs the modules of `versions`, in order."""
