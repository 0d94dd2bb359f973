"""Tables in a Storage, as Parquet: numbers, truth values and texts, any of which may be missing."""

import hashlib
import io
from typing import Any

import numpy as np
import pandas as pd
from arro3.core import Array, ChunkedArray, DataType, Table
from arro3.io import read_parquet, write_parquet

from csl_dist.errors import damaged
from csl_dist.storage.spreadsheet import as_text
from csl_dist.storage.url import Storage

MAGIC = b"PAR1"
"""At both ends of a Parquet file."""
ROWS_AT_ONCE = 1 << 16
TYPES = {
    "boolean": DataType.bool(),
    "integer": DataType.int64(),
    "floating": DataType.float64(),
    "mixed-integer-float": DataType.float64(),
}
"""Of columns in which values are missing, by what pandas finds in them; all else is text."""

DTYPES = {
    "bool": DataType.is_boolean,
    "int64": DataType.is_integer,
    "float64": DataType.is_floating,
}
NULLABLE = {"bool": "boolean", "int64": "Int64"}


def table_bytes(table: pd.DataFrame) -> bytes:
    """A table as the bytes of a Parquet file."""
    columns: dict[str, Any] = {str(name): _array(column) for name, column in table.items()}
    buffer = io.BytesIO()
    write_parquet(Table.from_pydict(columns), buffer, compression="snappy")
    return buffer.getvalue()


def _array(column: "pd.Series[Any]") -> Array:
    missing_N = column.isna()
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iuf" and not missing_N.any():
        return Array(np.ascontiguousarray(column))
    kind = pd.api.types.infer_dtype(column, skipna=True)
    values = column.astype(object).where(~missing_N, None).tolist()
    if kind not in TYPES:
        return Array([v and str(v) for v in values], type=DataType.large_utf8())
    return Array(values, type=TYPES[kind])


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

    `digest` is what the file's must be, where that is known. Without it, damage may go unnoticed.
    """
    content = storage.read(key)
    if digest not in (None, digest_of(content)):
        raise damaged(f"{storage.url}/{key}", "its content is not what was written")
    if not content.startswith(MAGIC) or not content.endswith(MAGIC):
        raise damaged(f"{storage.url}/{key}", "it is no Parquet file")
    try:
        table = read_parquet(io.BytesIO(content), batch_size=ROWS_AT_ONCE).read_all()
        return pd.DataFrame({name: _values(table.column(name)) for name in table.column_names})
    except BaseException as error:
        # What Rust did not expect comes as a class of its own, which can't be imported.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise damaged(f"{storage.url}/{key}", reason) from error


def _values(column: ChunkedArray) -> Any:
    """A column as pandas would have it: whole numbers stay whole where some are missing."""
    dtype = next((dtype for dtype, is_own in DTYPES.items() if is_own(column.type)), None)
    if dtype in ("int64", "float64") and len(column) and not column.null_count:
        return column.to_numpy()
    values: Any = list(column.to_pylist())
    if dtype is None:
        return values or np.empty(0, dtype=object)
    if dtype == "float64":
        return np.array([np.nan if value is None else value for value in values])
    return np.array(values, dtype) if not column.null_count else pd.array(values, NULLABLE[dtype])


def table_rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of a table, with None for a missing number."""
    return [
        {str(name): None if pd.isna(v) else v for name, v in row.items()}
        for row in table.to_dict("records")
    ]
