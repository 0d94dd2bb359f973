"""Tables as Parquet: all kinds of columns that a run has, and files of other programs."""

import io

import numpy as np
import pandas as pd
import pytest

from csl_dist.errors import DamagedError
from csl_dist.storage.tables import put_table, read_table, table_bytes
from csl_dist.storage.url import Storage
from csl_dist.types import ErrorKind

TABLE = pd.DataFrame(
    {
        "text": ["grüße, \n", "", None],
        "kind": [ErrorKind.MISLABEL, None, ErrorKind.DISORDER],
        "number": [1, 2**53 + 1, -3],
        "some numbers": pd.array([1, None, 2**53 + 1], dtype="Int64"),
        "score": [1.5, np.nan, -np.inf],
        "small": np.array([0.1, 0.2, 0.3], dtype=np.float32),
        "true": [True, False, True],
        "maybe": [True, None, False],
        "nothing": [None, None, None],
    }
)
ROWS = {"all": slice(None), "none": slice(0, 0), "one": slice(1, 2), "last": slice(2, 3)}


def known(table: pd.DataFrame) -> list[dict[str, object]]:
    """Rows of plain values, None where there is none."""
    return [
        {name: None if pd.isna(value) else value for name, value in row.items()}
        for row in table.to_dict("records")
    ]


@pytest.mark.parametrize("rows", ROWS)
def test_table_is_read_as_it_was_written(storage: Storage, rows: str) -> None:
    table = TABLE.iloc[ROWS[rows]]
    put_table(storage, "t.parquet", table)
    again = read_table(storage, "t.parquet")
    assert known(again) == known(table)
    assert list(again.columns) == list(table.columns)
    assert again["number"].dtype == np.int64
    assert again["true"].dtype == bool
    assert again["score"].dtype == np.float64


@pytest.mark.parametrize("rows", ROWS)
def test_pandas_reads_what_is_written(rows: str) -> None:
    table = TABLE.iloc[ROWS[rows]]
    by_pyarrow = pd.read_parquet(io.BytesIO(table_bytes(table)), dtype_backend="numpy_nullable")
    assert known(by_pyarrow) == known(table)


@pytest.mark.parametrize("rows", ROWS)
def test_file_of_pandas_is_read(storage: Storage, rows: str) -> None:
    """As run roots of earlier versions have them."""
    table = TABLE.iloc[ROWS[rows]]
    buffer = io.BytesIO()
    table.to_parquet(buffer, index=False, write_page_checksum=True)
    storage.put("t.parquet", buffer.getvalue())
    assert known(read_table(storage, "t.parquet")) == known(table)


def test_table_of_many_rows_keeps_its_order(storage: Storage) -> None:
    table = pd.DataFrame({"n": np.arange(200_000), "text": [f"t{n}" for n in range(200_000)]})
    put_table(storage, "t.parquet", table)
    pd.testing.assert_frame_equal(read_table(storage, "t.parquet"), table)


def test_same_table_has_the_same_bytes() -> None:
    assert table_bytes(TABLE) == table_bytes(TABLE.copy())


@pytest.mark.parametrize("content", [b"", b"half", table_bytes(TABLE)[:-9], b"PAR1" * 8])
def test_damaged_file_is_named(storage: Storage, content: bytes) -> None:
    storage.put("t.parquet", content)
    with pytest.raises(DamagedError, match="t.parquet is damaged"):
        read_table(storage, "t.parquet")
