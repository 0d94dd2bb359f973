"""Arrays as the body of an answer: JSON, npy or Arrow."""

import io
import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from fastapi import Response
from pydantic_core import to_json

from csl_dist.errors import DataError
from csl_dist.service.settings import MAX_VALUES
from csl_dist.types import FloatArray

NPY_TYPE = "application/x-npy"
ARROW_TYPE = "application/vnd.apache.arrow.stream"
ARRAYS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "As JSON, or as bytes of the form that was asked for",
        "content": {
            name: {"schema": {"type": "string", "format": "binary"}}
            for name in (NPY_TYPE, ARROW_TYPE)
        },
    }
}
"""What the OpenAPI page says of routes that answer arrays."""
DIGITS = 6
"""After the point: losses and scores are sums of float16 numbers."""


def json_answer(content: Any, status: int = 200) -> Response:
    """A value as JSON; what is not a number is null."""
    body = to_json(content, inf_nan_mode="null")
    return Response(body, status_code=status, media_type="application/json")


def plain(values: FloatArray) -> list[Any]:
    """An array as lists, without digits that mean nothing."""
    return values.astype(np.float64).round(DIGITS).tolist()


def npy_answer(values: FloatArray) -> Response:
    buffer = io.BytesIO()
    np.save(buffer, values.astype(np.float32), allow_pickle=False)
    return Response(buffer.getvalue(), media_type=NPY_TYPE)


def arrow_answer(columns: dict[str, npt.NDArray[Any]], facts: dict[str, Any]) -> Response:
    """One row a frame; a column (T,), or (T, …) as lists of fixed length, in C order."""
    arrays = []
    for values in columns.values():
        flat = pa.array(np.ascontiguousarray(values).reshape(-1))
        width = int(np.prod(values.shape[1:]))
        one_each = values.ndim == 1
        arrays.append(flat if one_each else pa.FixedSizeListArray.from_arrays(flat, width))
    metadata = {name: json.dumps(value) for name, value in facts.items()}
    table = pa.table(arrays, names=list(columns)).replace_schema_metadata(metadata)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return Response(sink.getvalue(), media_type=ARROW_TYPE)


def require_room(num_values: int) -> None:
    """Refuses an answer that would be larger than it may be."""
    if num_values > MAX_VALUES:
        raise DataError(
            f"that would be {num_values:,} numbers, but an answer has at most {MAX_VALUES:,}; ask "
            "for fewer frames or checkpoints, or give columns"
        )
