"""Look at a folder, recognise its layout, and write a config for it.

The user's folder is only read: a manifest that is made for it lies beside the config.
"""

import csv
import json
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from csl_dist.config import DatasetConfig
from csl_dist.data.feature_files import SUFFIXES as FEATURE_SUFFIXES
from csl_dist.data.layouts import LAYOUTS
from csl_dist.data.layouts.egoper import TASKS
from csl_dist.data.media.sources import VIDEO_SUFFIXES
from csl_dist.data.media.video import VideoFile
from csl_dist.data.text import read_lines
from csl_dist.errors import DataError

DEFAULT_FOLDS = 5
CHOLEC80_VIDEOS = 80

EXPECTED: dict[str, tuple[tuple[str, ...], ...]] = {
    "manifest": (("manifest.csv",),),
    "cholec80": (
        ("phase_annotations/*-phase.txt",),
        ("videos/*", "cutMargin/*", "features/*"),
    ),
    "egoper": (("annotation.json",), ("*/training.txt",)),
    "mstcn": (("mapping.txt",), ("groundTruth/*",), ("features/*", "videos/*")),
    "activitynet": (("*.json",),),
}
"""What a layout's folder holds: of each group of patterns, one must match."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A config in the making."""

    layout: str
    dataset: dict[str, object]
    """Keys of the dataset section, in order."""
    notes: dict[str, str]
    """What stands behind a key as a comment."""


def missing_parts(layout: str, path: Path) -> list[str]:
    """What a layout needs and the folder lacks."""
    return [
        " or ".join(patterns)
        for patterns in EXPECTED[layout]
        if not any(next(path.glob(pattern), None) for pattern in patterns)
    ]


def recognise(path: Path) -> str:
    """The layout of a folder, or a sentence on what each one misses."""
    lacking = {layout: missing_parts(layout, path) for layout in EXPECTED}
    found = [layout for layout, missing in lacking.items() if not missing]
    if not found:
        reasons = "; ".join(f"{name} lacks {', '.join(m)}" for name, m in lacking.items())
        raise DataError(
            f"{path} has none of the known layouts: {reasons}; for videos with label files of "
            "the same name, use `csl init manifest`"
        )
    return found[0]


def draft_config(layout: str, path: Path, out: Path) -> Draft:
    """What the config of a folder says; may write a manifest beside `out`."""
    if not path.exists():
        raise DataError(f"{path} does not exist")
    if layout == "auto":
        layout = recognise(path)
    if layout not in LAYOUTS:
        raise DataError(f"layout {layout!r} is not one of auto, {', '.join(LAYOUTS)}")
    folder = path if path.is_dir() else path.parent
    if layout != "manifest" and (missing := missing_parts(layout, folder)):
        raise DataError(f"{path} is not in the {layout} layout: it lacks {', '.join(missing)}")
    drafts = {
        "cholec80": _cholec80,
        "egoper": _egoper,
        "mstcn": _mstcn,
        "activitynet": _activitynet,
    }
    if layout == "manifest":
        return _manifest(path, out)
    return drafts[layout](path)


def config_text(draft: Draft, name: str) -> str:
    """The YAML file of a draft; everything else has good defaults."""
    lines = [f"root: runs/{name}", "dataset:", f"  layout: {draft.layout}"]
    for key, value in draft.dataset.items():
        note = f"  # {draft.notes[key]}" if key in draft.notes else ""
        # JSON's quotes keep a path with a colon or a hash in one piece.
        text = json.dumps(str(value)) if isinstance(value, Path) else value
        lines.append(f"  {key}: {text}{note}")
    return "\n".join([*lines, ""])


def _cholec80(path: Path) -> Draft:
    dataset: dict[str, object] = {"path": path, "fps": 15, "length_mismatch": "trim"}
    notes = {
        "fps": "frames sampled per second; the paper's value",
        "length_mismatch": "up to 5 %; Cholec80 has a few frames more or less than labels",
    }
    num_videos = len(list((path / "phase_annotations").glob("[!.]*-phase.txt")))
    if num_videos == CHOLEC80_VIDEOS:
        dataset["splits"] = "paper"
        notes["splits"] = "50 train, 10 val, 20 audit; or tecno, tmrnet, lists, or folds: 5"
    else:
        dataset["folds"] = min(DEFAULT_FOLDS, num_videos)
        notes["folds"] = "these are not Cholec80's 80 videos: all are audited"
    return Draft(layout="cholec80", dataset=dataset, notes=notes)


def _egoper(path: Path) -> Draft:
    tasks = [t for t in TASKS if any((path / n).is_dir() for n in (t, t.capitalize()))]
    if not tasks:
        raise DataError(f"{path} has no task folder; expected {', '.join(TASKS)}")
    return Draft(
        layout="egoper",
        dataset={"path": path, "task": tasks[0], "fps": 10},
        notes={"task": f"one of {', '.join(tasks)}", "fps": "frames sampled per second"},
    )


def _mstcn(path: Path) -> Draft:
    dataset: dict[str, object] = {"path": path, "features_fps": 15}
    notes = {"features_fps": "GTEA and Breakfast have 15, 50Salads 30"}
    if (path / "splits").is_dir():
        dataset["split"] = 1
    else:
        num_videos = len(list((path / "groundTruth").glob("[!.]*")))
        dataset["folds"] = min(DEFAULT_FOLDS, num_videos)
        notes["folds"] = "there are no splits: every video is audited by a model that never saw it"
    return Draft(layout="mstcn", dataset=dataset, notes=notes)


def _activitynet(path: Path) -> Draft:
    if path.is_file():
        return Draft(layout="activitynet", dataset={"path": path}, notes={})
    for file in sorted(path.glob("*.json")):
        try:
            LAYOUTS["activitynet"](DatasetConfig(layout="activitynet", path=str(file)))
        except DataError:
            continue
        return Draft(layout="activitynet", dataset={"path": file}, notes={})
    raise DataError(f'{path}: no .json file there has the form {{"database": {{id: …}}}}')


def _manifest(path: Path, out: Path) -> Draft:
    """A manifest that is there, or one made of media and label files of the same name."""
    given = path if path.is_file() else path / "manifest.csv"
    if given.exists():
        return Draft(layout="manifest", dataset={"path": given}, notes={})
    rows = _paired_rows(path, out.parent)
    manifest = out.with_suffix(".manifest.csv")
    if manifest.exists():
        raise DataError(f"{manifest} exists already; remove it, or give another --out")
    with manifest.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=["id", "source", "labels", "fps"])
        writer.writeheader()
        writer.writerows(rows)
    return Draft(
        layout="manifest",
        dataset={"path": manifest, "folds": min(DEFAULT_FOLDS, len(rows))},
        notes={"folds": "or add a column `split` with train, val and audit, and remove this"},
    )


def _paired_rows(path: Path, base: Path) -> list[dict[str, object]]:
    """One row per media file that has a text file of the same name."""
    files = sorted(file for file in path.rglob("*") if file.is_file())
    labels = {file.stem: file for file in files if file.suffix.lower() in (".txt", ".csv")}
    media_suffixes = (*VIDEO_SUFFIXES, *(s for s in FEATURE_SUFFIXES if s != ".txt"))
    media = {f.stem: f for f in files if f.suffix.lower() in media_suffixes}
    stems = Counter(f.stem for f in files if f.suffix.lower() in media_suffixes)
    repeated = sorted(stem for stem, count in stems.items() if count > 1)
    if repeated:
        raise DataError(
            f"{path}: several media files are named {repeated[0]!r}; write a manifest.csv with "
            "columns id, source, labels, split, fps"
        )
    paired = sorted(set(labels) & set(media))
    if len(paired) < 2:
        raise DataError(
            f"{path}: found {len(media)} media and {len(labels)} label files, but only "
            f"{len(paired)} of them share a name, as in case01.mp4 and case01.txt; write a "
            "manifest.csv with columns id, source, labels, split, fps"
        )
    return [
        {
            "id": stem,
            "source": os.path.relpath(media[stem], base),
            "labels": os.path.relpath(labels[stem], base),
            "fps": round(_label_rate(media[stem], labels[stem]), 4),
        }
        for stem in paired
    ]


def _label_rate(media: Path, labels: Path) -> float:
    """Label entries per second: their number over the video's length; 1 where there is none."""
    if media.suffix.lower() not in VIDEO_SUFFIXES:
        return 1.0
    times = VideoFile(str(media)).times()
    interval = float(np.median(np.diff(times))) if len(times) > 1 else 1.0
    rate = len(read_lines(labels)) / (float(times[-1]) + interval)
    # An entry per frame is what most people have; rounding hides a few missing ones for `check`.
    native = 1 / interval
    if abs(rate - native) < 0.02 * native:
        return native
    whole = round(rate)
    return float(whole) if whole and abs(rate - whole) < 0.02 * whole else rate
