"""Tables in a Storage, as Parquet."""

import hashlib
import io

import pandas as pd
import pyarrow as pa

from csl_dist.errors import damaged
from csl_dist.storage.spreadsheet import as_text
from csl_dist.storage.url import Storage


def table_bytes(table: pd.DataFrame) -> bytes:
    """A table as the bytes of a Parquet file."""
    buffer = io.BytesIO()
    table.to_parquet(buffer, index=False, write_page_checksum=True)
    return buffer.getvalue()


def csv_bytes(table: pd.DataFrame) -> bytes:
    """A table as the bytes of a CSV file that is safe to open in a spreadsheet."""
    return without_formulas(table).to_csv(index=False).encode()


def without_formulas(table: pd.DataFrame) -> pd.DataFrame:
    """A table whose texts no spreadsheet runs."""
    texts = table.select_dtypes(include=["object", "string", "category"])
    safe = {str(name): [as_text(value) for value in column] for name, column in texts.items()}
    return table.assign(**safe)


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def put_table(storage: Storage, key: str, table: pd.DataFrame) -> None:
    storage.put(key, table_bytes(table))


def read_table(storage: Storage, key: str, *, digest: str | None = None) -> pd.DataFrame:
    """The table at a key; StorageError where it is missing, DamagedError where it changed.

    `digest` is what the file's must be, where that is known.
    """
    content = storage.read(key)
    if digest not in (None, digest_of(content)):
        raise damaged(f"{storage.url}/{key}", "its content is not what was written")
    try:
        return pd.read_parquet(io.BytesIO(content), page_checksum_verification=True)
    except (OSError, TypeError, ValueError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise damaged(f"{storage.url}/{key}", reason) from error
