"""Tables in a Storage, as Parquet."""

import io

import pandas as pd

from csl_dist.errors import StorageError
from csl_dist.storage.url import Storage


def table_bytes(table: pd.DataFrame) -> bytes:
    """A table as the bytes of a Parquet file."""
    buffer = io.BytesIO()
    table.to_parquet(buffer, index=False)
    return buffer.getvalue()


def put_table(storage: Storage, key: str, table: pd.DataFrame) -> None:
    storage.put(key, table_bytes(table))


def read_table(storage: Storage, key: str) -> pd.DataFrame:
    """The table at a key; StorageError where it is missing or damaged."""
    try:
        return pd.read_parquet(io.BytesIO(storage.read(key)))
    except (OSError, ValueError) as error:
        raise StorageError(
            f"{storage.url}/{key} is damaged ({error}); delete it and run `csl audit`"
        ) from error
