"""The layout of MS-TCN, used for GTEA, 50Salads and Breakfast, and by ASFormer and others.

`features/<v>.npy` as (D, T), `groundTruth/<v>.txt` with one class name per frame, `mapping.txt`
with lines `id name`, and `splits/train.split1.bundle` and `test.split1.bundle` that list `<v>.txt`.
"""

from pathlib import Path
from typing import ClassVar

from csl_dist.config import MstcnConfig
from csl_dist.data.dataset import Dataset
from csl_dist.data.layouts.entries import EntryFiles, EntryTracks
from csl_dist.data.layouts.layout import DEFAULT_FOLDS, Draft, FolderLayout, Parts, refuse_missing
from csl_dist.data.media.sources import MediaNeed, find_features, find_video, made_video
from csl_dist.data.text import read_lines
from csl_dist.errors import DataError
from csl_dist.storage.files import AnyPath, place
from csl_dist.types import Media, Split, Video

BUNDLES = {Split.TRAIN: "train", Split.AUDIT: "test"}


class MstcnLayout(FolderLayout):
    """Features, a name a frame, and bundles that list videos."""

    name: ClassVar[str] = "mstcn"
    label_parts: ClassVar[Parts] = (("mapping.txt",), ("groundTruth/*",))
    media_parts: ClassVar[Parts] = (("features/*", "videos/*"),)

    def draft(self, path: AnyPath, out: Path) -> Draft:
        refuse_missing(self, path)
        dataset: dict[str, object] = {"path": path, "features_fps": 15}
        notes = {"features_fps": "GTEA and Breakfast have 15, 50Salads 30"}
        if (path / "splits").is_dir():
            dataset["split"] = 1
        else:
            num_videos = len(list((path / "groundTruth").glob("[!.]*")))
            dataset["folds"] = min(DEFAULT_FOLDS, num_videos)
            notes["folds"] = (
                "there are no splits: every video is audited by a model that never saw it"
            )
        return Draft(layout=self.name, dataset=dataset, notes=notes)

    def open(self, config: MstcnConfig, need: MediaNeed) -> Dataset:
        root = place(config.path)
        classes = read_mapping(root / "mapping.txt")
        videos, problems = [], []
        for split, where, stem in _listed(root, config):
            labels = _label_file(root / "groundTruth", stem)
            if labels is None:
                problems.append(f"{where}: video {stem!r} has no label file in {root}/groundTruth")
                continue
            video = _find(root, stem, split, str(labels), config, need)
            if video is None:
                problems.append(f"{where}: video {stem!r} has no features or video in {root}")
                continue
            videos.append(video)
        return Dataset(
            classes=classes,
            videos=tuple(videos),
            read_track=EntryTracks(classes, _labels_fps(config)),
            problems=tuple(problems),
            features_frames_last=True,
        )

    def label_files(self, config: MstcnConfig) -> EntryFiles:
        return EntryFiles(place(config.path), _labels_fps(config))


LAYOUT = MstcnLayout()


def read_mapping(path: AnyPath) -> tuple[str, ...]:
    """Class names by id, from lines `id name`; ids must count up from 0."""
    names: dict[int, str] = {}
    for line, text in enumerate(read_lines(path), start=1):
        number, _, name = text.partition(" ")
        if not number.isdigit() or not name.strip():
            raise DataError(f"{path}:{line}: expected `id name`, got {text!r}")
        if int(number) in names:
            raise DataError(f"{path}:{line}: id {number} is used twice")
        names[int(number)] = name.strip()
    if sorted(names) != list(range(len(names))) or not names:
        raise DataError(f"{path}: ids must count up from 0, but are {sorted(names)[:8]} …")
    return tuple(names[i] for i in range(len(names)))


def read_bundle(path: AnyPath) -> list[tuple[int, str]]:
    """Line numbers and ids of the videos in a bundle, which may hold bare names or paths."""
    return [
        (line, Path(text).name.removesuffix(".txt"))
        for line, text in enumerate(read_lines(path), start=1)
        if text and not text.startswith("#")
    ]


def _labels_fps(config: MstcnConfig) -> float:
    return config.labels_fps or config.counted_fps


def _listed(root: AnyPath, config: MstcnConfig) -> list[tuple[Split, str, str]]:
    """Split, place of mention, and id of every video."""
    folder = root / "splits"
    if not folder.is_dir():
        files: list[AnyPath] = sorted((root / "groundTruth").glob("[!.]*"), key=str)
        if not files:
            raise DataError(f"{root} has neither splits nor groundTruth")
        return [(Split.AUDIT, str(file), file.name.removesuffix(".txt")) for file in files]
    listed = []
    for split, name in BUNDLES.items():
        path = folder / f"{name}.split{config.split}.bundle"
        listed += [(split, f"{path}:{line}", stem) for line, stem in read_bundle(path)]
    return listed


def _label_file(folder: AnyPath, stem: str) -> AnyPath | None:
    """Label files have the ending .txt, or none."""
    return next((p for p in (folder / f"{stem}.txt", folder / stem) if p.exists()), None)


def _find(
    root: AnyPath, stem: str, split: Split, labels: str, config: MstcnConfig, need: MediaNeed
) -> Video | None:
    return made_video(
        stem,
        split,
        labels,
        wanted=config.source,
        need=need,
        options={
            Media.FEATURES: (find_features(root / "features", stem), config.counted_fps),
            Media.VIDEO: (find_video(root / "videos", stem), 0.0),
        },
    )
