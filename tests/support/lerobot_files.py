"""A small LeRobot v3 dataset: two files of two episodes each, and their subtasks."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from builder import grey_pictures, write_video
from layout_files import touch

from csl_dist.config import LerobotConfig

FPS = 10
CAMERA = "observation.images.top"
LENGTHS = (30, 20, 25, 40)
"""Frames of the episodes."""
SUBTASKS = (
    (("reach", 0.0, 1.0), ("grasp", 1.0, 3.0)),
    (("reach", 0.0, 1.5), ("grasp", 1.5, 2.0)),
    (("reach", 0.0, 0.5), ("grasp", 0.5, 1.5), ("lift", 1.5, 2.5)),
    (("reach", 0.0, 2.0), ("lift", 2.0, 4.0)),
)


def write_lerobot(root: Path, *, form: str = "dense", videos: bool = True) -> LerobotConfig:
    """Episodes 0 and 1 in one mp4 file, 2 and 3 in another; subtasks as lists or as language."""
    info = {
        "codebase_version": "v3.0",
        "fps": FPS,
        "features": {
            CAMERA: {"dtype": "video", "shape": [32, 32, 3]},
            "action": {"dtype": "float32"},
        },
        "video_path": "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4",
    }
    touch(root / "meta/info.json", json.dumps(info, indent=4))
    starts = [0.0, LENGTHS[0] / FPS, 0.0, LENGTHS[2] / FPS]
    columns: dict[str, list[object]] = {
        "episode_index": list(range(4)),
        "tasks": [["put the cube away"]] * 4,
        "length": list(LENGTHS),
        f"videos/{CAMERA}/chunk_index": [0] * 4,
        f"videos/{CAMERA}/file_index": [0, 0, 1, 1],
        f"videos/{CAMERA}/from_timestamp": list(starts),
        f"videos/{CAMERA}/to_timestamp": [
            s + n / FPS for s, n in zip(starts, LENGTHS, strict=True)
        ],
    }
    if form == "dense":
        columns |= {
            "dense_subtask_names": [[name for name, _, _ in own] for own in SUBTASKS],
            "dense_subtask_start_times": [[start for _, start, _ in own] for own in SUBTASKS],
            "dense_subtask_end_times": [[stop for _, _, stop in own] for own in SUBTASKS],
        }
    put(root / "meta/episodes/chunk-000/file-000.parquet", columns)
    frames: dict[str, list[object]] = {
        "episode_index": [e for e, n in enumerate(LENGTHS) for _ in range(n)],
        "timestamp": [f / FPS for n in LENGTHS for f in range(n)],
    }
    if form == "language":
        frames["language_persistent"] = [
            [
                {"role": "assistant", "content": "be kind", "style": "memory", "timestamp": 0.0},
                *(
                    {"role": "assistant", "content": name, "style": "subtask", "timestamp": start}
                    for name, start, _ in own
                ),
            ]
            for own, n in zip(SUBTASKS, LENGTHS, strict=True)
            for _ in range(n)
        ]
    put(root / "data/chunk-000/file-000.parquet", frames)
    for number, count in enumerate((LENGTHS[0] + LENGTHS[1], LENGTHS[2] + LENGTHS[3])):
        path = root / f"videos/{CAMERA}/chunk-000/file-{number:03d}.mp4"
        if videos:
            # Brightness tells the frame of the file; key frames are rare, so that seeking matters.
            pictures = grey_pictures(20 + 3 * frame for frame in range(count))
            write_video(path, pictures, fps=FPS, options={"preset": "ultrafast", "g": "12"})
        else:
            touch(path)
    return LerobotConfig(path=str(root), folds=2)


def put(path: Path, columns: dict[str, list[object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
