"""Labels as segments in one JSON file for all videos: EgoPER's, ActivityNet's.

A segment is a dict with `segment: [start, stop]` in seconds and whatever else the file says of it.
"""

import json
from collections.abc import Container, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from csl_dist.data.layouts.layout import Edge, Renaming
from csl_dist.data.text import put_text, require_file
from csl_dist.errors import DataError
from csl_dist.types import Video


def read_json(path: Path) -> Any:
    require_file(path)
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise DataError(f"can't read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not valid JSON: {error}") from error


def put_json(path: Path, content: Any) -> Path:
    return put_text(path, json.dumps(content, indent=2) + "\n")


def reading_from(file: Path, videos: Sequence[Video], known: Container[str]) -> tuple[Video, ...]:
    """Those videos that a file has labels of, with that file as theirs."""
    return tuple(replace(video, labels=str(file)) for video in videos if video.id in known)


def renamed_segments(
    segments: list[dict[str, Any]], renaming: Renaming, new: dict[str, Any], *, same: str
) -> list[dict[str, Any]]:
    """Segments with a span cut out and given the values `new`, in the order of time.

    It is joined to neighbours that have the same value of the key `same`.
    """
    edges = [second for piece in segments for second in piece["segment"]]
    start, stop = _kept_edge(edges, renaming.start), _kept_edge(edges, renaming.stop)
    made = {**new, "segment": [start, stop]}
    kept = []
    for piece in segments:
        a, b = piece["segment"]
        if piece[same] == new[same] and a <= stop and start <= b:
            low, high = made["segment"]
            made = {**piece, **new, "segment": [min(low, a), max(high, b)]}
            continue
        kept += [{**piece, "segment": [a, min(b, start)]}] if a < start else []
        kept += [{**piece, "segment": [max(a, stop), b]}] if b > stop else []
    return sorted([*kept, made], key=lambda piece: piece["segment"][0])


def _kept_edge(edges: Sequence[float], edge: Edge) -> float:
    """An edge that lies between the same two frames already, or else the frame after."""
    return next((second for second in edges if edge.after < second <= edge.at), edge.at)
