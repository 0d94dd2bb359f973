"""Cholec80, and M2CAI16 in the same form: surgical phases at 25 entries a second.

`videos/video01.mp4` (or frames as `cutMargin/1/<frame>.jpg`, or ready features as
`features/video01.npy`) and `phase_annotations/video01-phase.txt`: tab-separated, header
`Frame⇥Phase`, one row per 25-fps frame.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from csl_dist.config import DatasetConfig
from csl_dist.data.dataset import Dataset
from csl_dist.data.media.sources import find_features, find_frames, find_video, made_video
from csl_dist.data.text import class_ids, read_lines
from csl_dist.data.tracks import EntryTrack
from csl_dist.errors import DataError
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
LABELS_FPS = 25.0

SPLITS = {"own": (50, 10), "paper": (50, 10), "tecno": (40, 8), "tmrnet": (40, 0)}
"""Videos for training and for validation, by their numbers; the rest are audited."""


def open_cholec80(config: DatasetConfig) -> Dataset:
    root = Path(config.path)
    folder = root / "phase_annotations"
    files = sorted(folder.glob("[!.]*-phase.txt"), key=lambda file: (_number(file), file.name))
    if not files:
        raise DataError(
            f"{folder} holds no *-phase.txt files; dataset.path must be the folder that holds "
            "phase_annotations and videos"
        )
    names = config.splits if isinstance(config.splits, str) else "own"
    num_train, num_val = SPLITS[names]
    videos, problems = [], []
    for file in files:
        number = _number(file)
        split = Split.AUDIT
        if number <= num_train + num_val:
            split = Split.TRAIN if number <= num_train else Split.VAL
        video = _find(root, file, split, config)
        if video is None:
            problems.append(f"{file} has no video, frames or features beside it in {root}")
        else:
            videos.append(video)
    classes = _classes(files)
    return Dataset(
        classes=classes,
        videos=tuple(videos),
        read_track=PhaseTracks(classes, config.labels_fps or LABELS_FPS),
        problems=tuple(problems),
    )


@dataclass(frozen=True, slots=True)
class PhaseTracks:
    """Reads `Frame⇥Phase` files."""

    classes: tuple[str, ...]
    fps: float

    def __call__(self, video: Video) -> EntryTrack:
        names = read_phases(video.labels)
        return EntryTrack(class_ids(names, self.classes, video.labels, first_line=2), self.fps)


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


def _find(root: Path, file: Path, split: Split, config: DatasetConfig) -> Video | None:
    stem = file.name.removesuffix("-phase.txt")
    frames = find_frames(root / "cutMargin", str(_number(file)))
    return made_video(
        stem,
        split,
        str(file),
        wanted=config.source,
        options={
            Media.VIDEO: (find_video(root / "videos", stem), 0.0),
            Media.FRAMES: (frames, config.frames_fps or LABELS_FPS),
            Media.FEATURES: (find_features(root / "features", stem), config.features_fps),
        },
    )


def _classes(files: list[Path]) -> tuple[str, ...]:
    """Cholec80's phases, or M2CAI16's where any file has its first one."""
    has_trocar = any("TrocarPlacement" in file.read_text(errors="replace") for file in files)
    return M2CAI16_PHASES if has_trocar else PHASES


def _number(path: Path) -> int:
    """The last number in a file's name: 7 of video07-phase.txt."""
    found = re.findall(r"\d+", path.name)
    return int(found[-1]) if found else 0
