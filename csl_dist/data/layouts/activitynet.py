"""ActivityNet's JSON, as ActionFormer and others use it: segments in seconds.

`{"database": {id: {"subset", "fps", "duration", "annotations": [{"segment": [s, e], "label"}]}}}`.
Time between segments is unlabelled. Media lie in `dataset.media`, or in `videos`, `frames` or
`features` beside the file.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar

from csl_dist.config import ActivityNetConfig
from csl_dist.data.dataset import Dataset
from csl_dist.data.formats.activitynet import FORMAT, ActivityNetDocument
from csl_dist.data.layouts.document_files import DocumentFiles
from csl_dist.data.layouts.label_files import files_at
from csl_dist.data.layouts.label_sets import tracks_of
from csl_dist.data.layouts.layout import Draft, FolderLayout, Parts, refuse_missing
from csl_dist.data.media.rates import guessed_features_rate
from csl_dist.data.media.sources import (
    DEFAULT_FRAMES_FPS,
    MediaNeed,
    find_features,
    find_frames,
    find_video,
    made_video,
    refuse_unknown_rate,
)
from csl_dist.data.tracks import last_second
from csl_dist.storage.files import AnyPath, place, read_bytes
from csl_dist.types import Media, Split, Video

SUBSETS = {
    "train": Split.TRAIN,
    "training": Split.TRAIN,
    "val": Split.VAL,
    "validation": Split.VAL,
    "test": Split.AUDIT,
    "testing": Split.AUDIT,
    "audit": Split.AUDIT,
}


class ActivityNetLayout(FolderLayout):
    """One JSON file, and media beside it or in a folder of their own."""

    name: ClassVar[str] = "activitynet"
    label_parts: ClassVar[Parts] = (("*.json",),)

    def missing(self, path: AnyPath, need: MediaNeed = "required") -> list[str]:
        found = files_at(path, FORMAT, looked_into=True)
        return [] if found else ['a file *.json with {"database": {id: …}}']

    def draft(self, path: AnyPath, out: Path) -> Draft:
        refuse_missing(self, path)
        file = files_at(path, FORMAT, looked_into=True)[0]
        dataset: dict[str, object] = {"path": file}
        notes: dict[str, str] = {}
        rate = _guessed_rate(ActivityNetConfig(path=str(file)))
        if rate is not None:
            dataset["features_fps"], notes["features_fps"] = rate
        return Draft(layout=self.name, dataset=dataset, notes=notes)

    def open(self, config: ActivityNetConfig, need: MediaNeed) -> Dataset:
        path = place(config.path)
        document = read_database(path)
        classes = _classes(document)
        videos, problems = [], []
        for video_id, entry in document.database.items():
            if not entry.get("annotations"):
                continue  # test sets are published without labels
            where = f"{path}: video {video_id!r}"
            subset = str(entry.get("subset", "")).lower()
            if subset not in SUBSETS:
                expected = ", ".join(SUBSETS)
                problems.append(f"{where}: subset is {subset!r}, expected one of {expected}")
                continue
            video = _find(video_id, entry, SUBSETS[subset], config, need)
            if video is None:
                problems.append(f"{where}: no media in {config.media or path.parent}")
                continue
            refuse_unknown_rate(video, need, config.path)
            videos.append(video)
        # Datasets whose test labels are secret have only validation videos to audit.
        if not any(video.split is Split.AUDIT for video in videos):
            videos = [_as_audit(video) for video in videos]
        return Dataset(
            classes=classes,
            videos=tuple(videos),
            read_track=tracks_of(document, classes, config.overlap),
            problems=tuple(problems),
        )

    def label_files(self, config: ActivityNetConfig) -> DocumentFiles:
        return DocumentFiles(place(config.path).parent, FORMAT, config)


LAYOUT = ActivityNetLayout()


def read_database(path: AnyPath) -> ActivityNetDocument:
    return FORMAT.parse(read_bytes(path), str(path), None)


def _classes(document: ActivityNetDocument) -> tuple[str, ...]:
    """Names in the order of their label_id, or sorted where there is none."""
    numbers = document.label_ids()
    labels = {segment.label for segment in document.segments}
    return tuple(sorted(labels, key=lambda name: (numbers.get(name, 0), name)))


def _either(
    find: Callable[[AnyPath, str], AnyPath | None], folder: AnyPath, video_id: str
) -> AnyPath | None:
    """A file by its id, or with the prefix that ActivityNet's downloads have."""
    return find(folder, video_id) or find(folder, f"v_{video_id}")


def _find(
    video_id: str,
    entry: dict[str, Any],
    split: Split,
    config: ActivityNetConfig,
    need: MediaNeed,
) -> Video | None:
    def folder(name: str) -> AnyPath:
        return place(config.media) if config.media else place(config.path).parent / name

    frames_fps = config.frames_fps or float(entry.get("fps") or DEFAULT_FRAMES_FPS)
    return made_video(
        video_id,
        split,
        config.path,
        wanted=config.source,
        need=need,
        options={
            Media.VIDEO: (_either(find_video, folder("videos"), video_id), 0.0),
            Media.FRAMES: (_either(find_frames, folder("frames"), video_id), frames_fps),
            Media.FEATURES: (
                _either(find_features, folder("features"), video_id),
                config.features_fps or 0.0,
            ),
        },
    )


def _guessed_rate(config: ActivityNetConfig) -> tuple[float, str] | None:
    """The rate of ready features, where there are some, by the lengths that the file has."""
    document = read_database(place(config.path))
    files, last = {}, {}
    by_video = groupby(document.segments, key=lambda segment: segment.video)
    for video_id, own in by_video:
        video = _find(video_id, document.database[video_id], Split.AUDIT, config, "required")
        if video is not None and video.media is Media.FEATURES:
            files[video_id] = video.source
            last[video_id] = document.about[video_id].seconds or last_second(own)
    return guessed_features_rate(files, last) if files else None


def _as_audit(video: Video) -> Video:
    split = Split.AUDIT if video.split is Split.VAL else video.split
    return replace(video, split=split)
