"""Small datasets in every layout that is read."""

import json
from collections.abc import Callable
from pathlib import Path

from csl_dist.config import (
    ActivityNetConfig,
    Cholec80Config,
    DatasetConfig,
    EgoperConfig,
    ManifestConfig,
    MstcnConfig,
)
from csl_dist.data.layouts.cholec80 import PHASES


def touch(path: Path, content: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode())
    return path


def write_cholec80(root: Path, num_videos: int, ending: str = "\n") -> DatasetConfig:
    for n in range(1, num_videos + 1):
        rows = [f"{i}\t{PHASES[i // 25 % 7]}" for i in range(100)]
        text = ending.join(["Frame\tPhase", *rows, ""])
        touch(root / f"phase_annotations/video{n:02d}-phase.txt", text)
        touch(root / f"videos/video{n:02d}.mp4")
    return Cholec80Config(path=str(root))


def write_egoper(root: Path, folder: str = "tea") -> DatasetConfig:
    videos = ["tea_u1_a1", "tea_u2_a1", "tea_u3_error_a1"]
    segments = [
        {
            "video_id": video,
            "labels": {
                "time_stamp": [[0.0, 2.0], [2.0, 3.5]],
                "action": [5, 0],
                "action_type": [0, 2 if "error" in video else 0],
                "error_description": ["", ""],
            },
        }
        for video in videos
    ]
    task = {
        "segments": segments,
        "action2idx": {"background": 0, "pour water": 5, "stir": 7},
        "actiontype2idx": {"Normal": 0, "Error_Slip": 2},
    }
    touch(root / "annotation.json", json.dumps({"tea": task, "coffee": task}))
    for name, video in zip(("training", "validation", "test"), videos, strict=True):
        touch(root / folder / f"{name}.txt", f"{video}\n\n")
        touch(root / folder / f"features_10fps/{video}.npy")
    return EgoperConfig(path=str(root), task="tea")


def write_mstcn(root: Path) -> DatasetConfig:
    touch(root / "mapping.txt", "0 take cup\n1 pour_water\n")
    for name in ("S1", "S2", "S3"):
        touch(root / f"groundTruth/{name}.txt", "take cup\npour_water\npour_water\n")
        touch(root / f"features/{name}.npy")
    touch(root / "splits/train.split1.bundle", "S1.txt\nS2.txt\n")
    touch(root / "splits/test.split1.bundle", "#bundle\n./data/groundTruth/S3.txt\n")
    return MstcnConfig(path=str(root))


def write_activitynet(root: Path) -> DatasetConfig:
    def entry(subset: str) -> dict[str, object]:
        return {
            "subset": subset,
            "duration": 4.0,
            "fps": 30,
            "annotations": [
                {"segment": [0.5, 1.0], "label": "stir", "label_id": 1},
                {"segment": [2.0, 3.0], "label": "cut up", "label_id": 0},
            ],
        }

    database = {"v1": entry("training"), "v2": entry("Validation")}
    path = touch(root / "anno.json", json.dumps({"version": "1", "database": database}))
    for name in database:
        touch(root / f"videos/{name}.mkv")
    return ActivityNetConfig(path=str(path))


def write_manifest(root: Path) -> ManifestConfig:
    rows = []
    for name, split in (("m1", "train"), ("m2", "val"), ("m3", "audit")):
        touch(root / f"labels/{name}.txt", "cut\ncut\nstir\n-\nstir\n")
        touch(root / f"videos/{name}.mp4")
        rows.append(f"{name},videos/{name}.mp4,labels/{name}.txt,{split},5,surgeon {split}")
    header = "id,source,labels,split,fps,group"
    touch(root / "manifest.csv", "\n".join([header, *rows, ""]))
    return ManifestConfig(path=str(root))


WRITERS: dict[str, Callable[[Path], DatasetConfig]] = {
    "manifest": write_manifest,
    "cholec80": lambda root: write_cholec80(root, 3),
    "egoper": write_egoper,
    "mstcn": write_mstcn,
    "activitynet": write_activitynet,
}
"""A small dataset of every layout."""
