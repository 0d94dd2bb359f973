"""Values as the body of a response: JSON, npy or Arrow."""

import io
import json
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt
from arro3.core import Array, Table, fixed_size_list_array
from arro3.io import write_ipc_stream
from fastapi import Response
from pydantic_core import to_json

from csl_dist.errors import DataError
from csl_dist.review.store import Review
from csl_dist.service.settings import MAX_VALUES
from csl_dist.types import FloatArray

NPY_TYPE = "application/x-npy"
ARROW_TYPE = "application/vnd.apache.arrow.stream"
ARRAYS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "JSON, or bytes in the requested form",
        "content": {
            name: {"schema": {"type": "string", "format": "binary"}}
            for name in (NPY_TYPE, ARROW_TYPE)
        },
    }
}
"""How the OpenAPI document describes routes that return arrays."""
DIGITS = 6
"""After the point: losses and scores are sums of float16 numbers."""


def json_response(content: Any, status: int = 200) -> Response:
    """A value as JSON; NaN and infinity become null."""
    body = to_json(content, inf_nan_mode="null")
    return Response(body, status_code=status, media_type="application/json")


def rounded_lists(values: FloatArray) -> list[Any]:
    """An array as lists, rounded to the digits that mean something."""
    return values.astype(np.float64).round(DIGITS).tolist()


def npy_response(values: FloatArray) -> Response:
    buffer = io.BytesIO()
    np.save(buffer, values.astype(np.float32), allow_pickle=False)
    return Response(buffer.getvalue(), media_type=NPY_TYPE)


def arrow_response(columns: dict[str, npt.NDArray[Any]], facts: dict[str, Any]) -> Response:
    """One row per frame; a column is (T,), or (T, …) as lists of fixed length, in C order."""
    arrays: dict[str, Any] = {}
    for name, values in columns.items():
        flat = Array(np.ascontiguousarray(values).reshape(-1))
        width = int(np.prod(values.shape[1:]))
        arrays[name] = flat if values.ndim == 1 else fixed_size_list_array(flat, width)
    metadata = {name: json.dumps(value) for name, value in facts.items()}
    sink = io.BytesIO()
    write_ipc_stream(Table.from_pydict(arrays, metadata=metadata), sink, compression=None)
    return Response(sink.getvalue(), media_type=ARROW_TYPE)


def check_size(num_values: int) -> None:
    """Refuses a response that would be too large."""
    if num_values > MAX_VALUES:
        raise DataError(
            f"the response would have {num_values:,} numbers, at most {MAX_VALUES:,} are allowed; "
            "ask for fewer frames or checkpoints, or give columns"
        )


def review_row(review: Review) -> dict[str, Any]:
    """A decision without its key, which only its sender needs."""
    row = asdict(review)
    del row["key"]
    return row | {"edits": [edit.as_json() for edit in review.changes]}
