"""Label files with some spans renamed, in a dataset's own layout: what `csl relabel` reads.

Layouts with one label file a video get the files of changed videos alone, at their place below the
dataset's folder. Layouts with one file for all get that file whole.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from csl_dist.config import DatasetConfig
from csl_dist.data.layouts.activitynet import read_database
from csl_dist.data.layouts.cholec80 import LABELS_FPS, read_phases
from csl_dist.data.layouts.egoper import read_json
from csl_dist.data.text import read_lines
from csl_dist.errors import DataError
from csl_dist.types import Video


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """Where a renamed span begins or ends, in seconds: between two frames."""

    after: float
    """The frame before the edge; an edge that the file has already after it is kept."""
    at: float
    """The frame that comes after the edge."""
    middle: float
    """Entries of a file before it belong to the frame before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Renaming:
    """A span of a video that gets another label."""

    start: Edge
    stop: Edge
    label: str


def write_renamed(
    config: DatasetConfig,
    videos: Sequence[Video],
    renamings: Mapping[str, Sequence[Renaming]],
    *,
    frame_rates: Mapping[str, float],
    out: Path,
) -> list[Path]:
    """Writes label files below `out`, renamings by video in their order; returns their paths.

    `videos` are all that the run scores, each with the label file that it has now; frame rates are
    of the frames that are used, by video.
    """
    try:
        match config.layout:
            case "activitynet":
                return [_write_activitynet(config, videos, renamings, out)]
            case "egoper":
                return [_write_egoper(config, videos, renamings, out)]
            case _:
                return [
                    _write_entries(config, video, renamings[video.id], frame_rates[video.id], out)
                    for video in videos
                    if video.id in renamings
                ]
    except OSError as error:
        raise DataError(f"can't write to {out}: {error.strerror or error}") from error


def _write_entries(
    config: DatasetConfig,
    video: Video,
    renamings: Sequence[Renaming],
    frame_rate: float,
    out: Path,
) -> Path:
    is_cholec80 = config.layout == "cholec80"
    fps = video.labels_fps or config.labels_fps or (LABELS_FPS if is_cholec80 else 0.0)
    fps = fps or config.features_fps
    names = read_phases(video.labels) if is_cholec80 else read_lines(video.labels)
    # An entry that is sparser than frames stands for all frames until the next: its middle counts.
    shift = 0.0 if fps > 0.99 * frame_rate else 0.5
    for renaming in renamings:
        for i in range(len(names)):
            if renaming.start.middle <= (i + shift) / fps < renaming.stop.middle:
                names[i] = renaming.label
    lines = names
    if is_cholec80:
        header, *rows = read_lines(video.labels)
        numbers = (row.split("\t")[0] for row in rows)
        lines = [header, *(f"{n}\t{name}" for n, name in zip(numbers, names, strict=True))]
    return _put(_place(config, video, out), "\n".join(lines) + "\n")


def _place(config: DatasetConfig, video: Video, out: Path) -> Path:
    """Where a video's file goes: as deep below `out` as the original below the dataset's folder."""
    dataset, labels = Path(config.path), Path(video.labels)
    folder = dataset.parent if dataset.suffix else dataset
    inside = labels.is_relative_to(folder)
    return out / (labels.relative_to(folder) if inside else labels.name)


def _write_activitynet(
    config: DatasetConfig,
    videos: Sequence[Video],
    renamings: Mapping[str, Sequence[Renaming]],
    out: Path,
) -> Path:
    content = read_json(Path(config.path))
    ids = {
        annotation["label"]: annotation["label_id"]
        for entry in content["database"].values()
        for annotation in entry.get("annotations") or ()
        if "label_id" in annotation
    }
    for video in videos:
        entry = read_database(Path(video.labels))[video.id]
        pieces = [
            {**annotation, "segment": [float(s) for s in annotation["segment"]]}
            for annotation in entry["annotations"]
        ]
        for renaming in renamings.get(video.id, ()):
            new = {"label": renaming.label}
            if renaming.label in ids:
                new["label_id"] = ids[renaming.label]
            pieces = _renamed(pieces, renaming, new, same="label")
        content["database"][video.id] = {**entry, "annotations": pieces}
    return _put(out / Path(config.path).name, json.dumps(content, indent=2) + "\n")


def _write_egoper(
    config: DatasetConfig,
    videos: Sequence[Video],
    renamings: Mapping[str, Sequence[Renaming]],
    out: Path,
) -> Path:
    content = read_json(Path(config.path) / "annotation.json")
    task = content[config.task]
    entries = {entry["video_id"]: entry for entry in task["segments"]}
    for video in videos:
        own = read_json(Path(video.labels))[config.task]["segments"]
        labels = next(entry["labels"] for entry in own if entry["video_id"] == video.id)
        pieces = _pieces(labels)
        for renaming in renamings.get(video.id, ()):
            new = {"action": task["action2idx"][renaming.label], "action_type": 0}
            pieces = _renamed(pieces, renaming, new | {"error_description": ""}, same="action")
        columns = {name: [piece.get(name) for piece in pieces] for name in labels}
        times = [piece["segment"] for piece in pieces]
        entries[video.id]["labels"] = columns | {"time_stamp": times}
    return _put(out / "annotation.json", json.dumps(content, indent=2) + "\n")


def _pieces(labels: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """EgoPER's lists, one an attribute, as one dict a segment."""
    names = [name for name in labels if name != "time_stamp"]
    return [
        {"segment": [float(s) for s in times], **{name: labels[name][i] for name in names}}
        for i, times in enumerate(labels["time_stamp"])
    ]


def _renamed(
    pieces: list[dict[str, Any]], renaming: Renaming, new: dict[str, Any], *, same: str
) -> list[dict[str, Any]]:
    """Segments with a span cut out and named anew; joined to neighbours of the same name."""
    edges = [second for piece in pieces for second in piece["segment"]]
    start, stop = _kept_edge(edges, renaming.start), _kept_edge(edges, renaming.stop)
    made = {**new, "segment": [start, stop]}
    kept = []
    for piece in pieces:
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


def _put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
