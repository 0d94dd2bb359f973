"""Cholec80, and M2CAI16 in the same form: surgical phases at 25 entries a second.

`videos/video01.mp4` (or frames as `cutMargin/1/<frame>.jpg`, or ready features as
`features/video01.npy`) and `phase_annotations/video01-phase.txt`: tab-separated, header
`Frame⇥Phase`, one row per 25-fps frame.
"""

import re
from pathlib import Path
from typing import ClassVar

from csl_dist.config import Cholec80Config
from csl_dist.data.dataset import Dataset
from csl_dist.data.layouts.entries import EntryFiles, EntryForm, EntryTracks
from csl_dist.data.layouts.layout import DEFAULT_FOLDS, Draft, FolderLayout, Parts, refuse_missing
from csl_dist.data.media.sources import (
    MediaNeed,
    find_features,
    find_frames,
    find_video,
    made_video,
)
from csl_dist.data.text import read_lines
from csl_dist.errors import DataError
from csl_dist.storage.files import AnyPath, place
from csl_dist.types import Media, Split, Video

PHASES = (
    "Preparation",
    "CalotTriangleDissection",
    "ClippingCutting",
    "GallbladderDissection",
    "GallbladderPackaging",
    "CleaningCoagulation",
    "GallbladderRetraction",
)
M2CAI16_PHASES = ("TrocarPlacement", *PHASES)
LABEL_FOLDER = "phase_annotations"
LABELS_FPS = 25.0
NUM_VIDEOS = 80

SPLITS = {"own": (50, 10), "paper": (50, 10), "tecno": (40, 8), "tmrnet": (40, 0)}
"""Videos for training and for validation, by their numbers; the rest are audited."""


class Cholec80Layout(FolderLayout):
    """Phase files beside videos, frames or features."""

    name: ClassVar[str] = "cholec80"
    label_parts: ClassVar[Parts] = (("phase_annotations/*-phase.txt",),)
    media_parts: ClassVar[Parts] = (("videos/*", "cutMargin/*", "features/*"),)

    def draft(self, path: AnyPath, out: Path) -> Draft:
        refuse_missing(self, path)
        dataset: dict[str, object] = {"path": path, "fps": 15, "length_mismatch": "trim"}
        notes = {
            "fps": "frames sampled per second; the paper's value",
            "length_mismatch": "up to 5 %; Cholec80 has a few frames more or less than labels",
        }
        num_videos = len(_label_files(path))
        if num_videos == NUM_VIDEOS:
            dataset["splits"] = "paper"
            notes["splits"] = "50 train, 10 val, 20 audit; or tecno, tmrnet, lists, or folds: 5"
        else:
            dataset["folds"] = min(DEFAULT_FOLDS, num_videos)
            notes["folds"] = "these are not Cholec80's 80 videos: all are audited"
        return Draft(layout=self.name, dataset=dataset, notes=notes)

    def open(self, config: Cholec80Config, need: MediaNeed) -> Dataset:
        root = place(config.path)
        files = _label_files(root)
        if not files:
            raise DataError(
                f"{root / LABEL_FOLDER} holds no *-phase.txt files; dataset.path must be the "
                f"folder that holds {LABEL_FOLDER} and videos"
            )
        preset = config.splits if isinstance(config.splits, str) else "own"
        videos, problems = [], []
        for file in files:
            video = _find(root, file, _split(file, preset), config, need)
            if video is None:
                problems.append(f"{file} has no video, frames or features beside it in {root}")
            else:
                videos.append(video)
        classes = _classes(files)
        return Dataset(
            classes=classes,
            videos=tuple(videos),
            read_track=EntryTracks(classes, _labels_fps(config), PHASE_ROWS),
            problems=tuple(problems),
        )

    def label_files(self, config: Cholec80Config) -> EntryFiles:
        return EntryFiles(place(config.path), _labels_fps(config), PHASE_ROWS)


LAYOUT = Cholec80Layout()


def read_phases(path: str) -> list[str]:
    """The phase of every row, whose frame numbers must count up from 0 or 1."""
    lines = read_lines(path)
    if not lines or lines[0].split() != ["Frame", "Phase"]:
        got = lines[0] if lines else "nothing"
        raise DataError(f"{path}:1: expected the header `Frame<tab>Phase`, got {got!r}")
    rows = [line.split("\t") for line in lines[1:]]
    first = None
    for number, row in enumerate(rows):
        if len(row) != 2 or not row[0].strip().isdigit():
            raise DataError(
                f"{path}:{number + 2}: expected a frame number, a tab and a phase, got "
                f"{lines[number + 1]!r}"
            )
        first = int(row[0]) if first is None else first
        if int(row[0]) != first + number or first > 1:
            raise DataError(
                f"{path}:{number + 2}: frame {row[0].strip()} where {number + min(first, 1)} "
                "should come: rows must count every frame"
            )
    if not rows:
        raise DataError(f"{path} holds no labels")
    return [row[1].strip() for row in rows]


def phases_text(path: str, names: list[str]) -> str:
    """The file with other phases behind its frame numbers."""
    header, *rows = read_lines(path)
    numbers = (row.split("\t")[0] for row in rows)
    lines = [header, *(f"{n}\t{name}" for n, name in zip(numbers, names, strict=True))]
    return "\n".join(lines) + "\n"


PHASE_ROWS = EntryForm(read=read_phases, text=phases_text, first_line=2)


def _label_files(root: AnyPath) -> list[AnyPath]:
    files = (root / LABEL_FOLDER).glob("[!.]*-phase.txt")
    return sorted(files, key=lambda file: (_number(file), file.name))


def _labels_fps(config: Cholec80Config) -> float:
    return config.labels_fps or LABELS_FPS


def _split(file: AnyPath, preset: str) -> Split:
    """What a video is used for, by its number."""
    num_train, num_val = SPLITS[preset]
    if _number(file) > num_train + num_val:
        return Split.AUDIT
    return Split.TRAIN if _number(file) <= num_train else Split.VAL


def _find(
    root: AnyPath, file: AnyPath, split: Split, config: Cholec80Config, need: MediaNeed
) -> Video | None:
    stem = file.name.removesuffix("-phase.txt")
    frames = find_frames(root / "cutMargin", str(_number(file)))
    return made_video(
        stem,
        split,
        str(file),
        wanted=config.source,
        need=need,
        options={
            Media.VIDEO: (find_video(root / "videos", stem), 0.0),
            Media.FRAMES: (frames, config.frames_fps or LABELS_FPS),
            Media.FEATURES: (find_features(root / "features", stem), config.counted_fps),
        },
    )


def _classes(files: list[AnyPath]) -> tuple[str, ...]:
    """Cholec80's phases, or M2CAI16's where any file has its first one."""
    has_trocar = any("TrocarPlacement" in file.read_text(errors="replace") for file in files)
    return M2CAI16_PHASES if has_trocar else PHASES


def _number(path: AnyPath) -> int:
    """The last number in a file's name: 7 of video07-phase.txt."""
    found = re.findall(r"\d+", path.name)
    return int(found[-1]) if found else 0
