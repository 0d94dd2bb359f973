"""Real datasets of ready features, written as manifests with configs that plant errors.

Nothing of the data is part of the project; the folder is given on the command line. Features are
standardised over the whole dataset, and label files have one class name per frame.
"""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
from builder import MadeVideo, write_manifest

DATASETS = ("knot_tying", "needle_passing", "50salads", "gtea", "cholec80")
HAPT_FRAMES = 10
"""Rows of HAPT's sensors, 50 a second, that make a frame."""
CHOLEC80_SECONDS = 5
"""Cholec80's phases last minutes: one frame in so many seconds is used."""


def write_real_dataset(name: str, data: Path, folder: Path) -> Path:
    """Writes features, labels, a manifest and `csl.yaml` into a folder; returns the config."""
    videos = list(READERS[name](name, data))
    features = [v.features_TD for v in videos if v.features_TD is not None]
    frames = np.concatenate(features).astype(np.float64)
    mean_D, deviation_D = frames.mean(axis=0), frames.std(axis=0) + 1e-6
    normal = (
        replace(video, features_TD=((features_TD - mean_D) / deviation_D).astype(np.float32))
        for video, features_TD in zip(videos, features, strict=True)
    )
    write_manifest(folder, normal, fps=fps(name))
    config = folder / "csl.yaml"
    config.write_text(yaml.safe_dump(config_of(name, folder), sort_keys=False))
    return config


def config_of(name: str, folder: Path) -> dict[str, Any]:
    """Folds by person, or Cholec80's own split; half of the videos mislabelled, half disordered."""
    dataset: dict[str, Any] = {"path": str(folder / "manifest.csv")}
    if name != "cholec80":
        dataset["folds"] = 3 if name == "gtea" else 4
    if name in ("knot_tying", "needle_passing"):
        dataset["fps"] = 5
    lengths = [5, 30] if name in ("50salads", "gtea") else [10, 60]
    return {
        "root": str(folder / "run"),
        "dataset": dataset,
        "corrupt": {"audit": {"mislabel": 0.5, "disorder": 0.5}, "lengths": lengths},
        "scorers": {"transformer": {"arguments": {"preset": "tiny"}}, "framewise": {}},
        "train": {"epochs": 30, "learning_rate": 1e-3, "batch_frames": 2048},
    }


def fps(name: str) -> float:
    """Frames per second of the features; 50Salads' and GTEA's are said to be about these."""
    known = {"cholec80": 1 / CHOLEC80_SECONDS, "50salads": 1.0, "gtea": 5.0, "hapt": 5.0}
    return known.get(name, 30.0)


def gestures(name: str, data: Path) -> Iterator[MadeVideo]:
    """JIGSAWS: 76 kinematic columns; frames outside of all gestures are unlabelled."""
    root = data / "jigsaws" / name
    for path in sorted((root / "kinematics").glob("*.npy")):
        features_TD = np.load(path)
        names_T = ["-"] * len(features_TD)
        for line in (root / "gestures" / f"{path.stem}.txt").read_text().splitlines():
            start, stop, gesture = line.split()
            names_T[int(start) - 1 : int(stop)] = [gesture] * (int(stop) - int(start) + 1)
        yield MadeVideo(
            id=path.stem,
            features_TD=features_TD,
            names_T=names_T[: len(features_TD)],
            split="audit",
            group=path.stem.split("_")[2],
        )


def class_scores(name: str, data: Path) -> Iterator[MadeVideo]:
    """50Salads (mid-level classes) and GTEA: per-frame scores of a spatial CNN."""
    [path] = (data / name).glob("*scores.npz")
    arrays = np.load(path)
    prefix = "mid__" if name == "50salads" else ""
    for key in sorted(arrays):
        if key.startswith(prefix) and key.endswith("__labels"):
            video = key.removeprefix(prefix).removesuffix("__labels")
            yield MadeVideo(
                id=video,
                features_TD=arrays[f"{prefix}{video}__scores"],
                names_T=[f"class {label}" for label in arrays[key]],
                split="audit",
                group=video[:2],
            )


def tools(name: str, data: Path) -> Iterator[MadeVideo]:
    """Cholec80: which of 7 tools are seen."""
    arrays = np.load(data / "cholec80/cholec80_phase_tool_1fps.npz")
    for number in range(1, 81):
        phases = arrays[f"phase_{number:02d}"][::CHOLEC80_SECONDS]
        yield MadeVideo(
            id=f"video{number:02d}",
            features_TD=arrays[f"tools_{number:02d}"][::CHOLEC80_SECONDS],
            names_T=[str(arrays["phase_names"][phase]) for phase in phases],
            split=cholec80_split(f"video{number:02d}"),
        )


def sensors(name: str, data: Path) -> Iterator[MadeVideo]:
    """HAPT: means and deviations of a phone's six sensors, activities by number."""
    arrays = np.load(data / "hapt/hapt_raw_50hz.npz")
    for key in sorted(arrays):
        if not key.endswith("__y"):
            continue
        labels = arrays[key][: len(arrays[key]) // HAPT_FRAMES * HAPT_FRAMES]
        x_TRD = arrays[key.replace("__y", "__x")][: len(labels)].reshape(-1, HAPT_FRAMES, 6)
        middle_T = labels[HAPT_FRAMES // 2 :: HAPT_FRAMES]
        yield MadeVideo(
            id=key.removesuffix("__y"),
            features_TD=np.concatenate([x_TRD.mean(axis=1), x_TRD.std(axis=1)], axis=1),
            names_T=["-" if label < 0 else f"activity {label}" for label in middle_T],
            split="audit",
            group=key.split("_")[0],
        )


def cholec80_split(video: str) -> str:
    number = int(video.removeprefix("video"))
    return "train" if number <= 50 else "val" if number <= 60 else "audit"


READERS = {
    "knot_tying": gestures,
    "needle_passing": gestures,
    "50salads": class_scores,
    "gtea": class_scores,
    "cholec80": tools,
    "hapt": sensors,
}
