"""Look at every label and video of a dataset before any work is done with them."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from csl_dist.datasets import Dataset
from csl_dist.errors import DataError
from csl_dist.records import UNLABELLED, IntArray, Split, Video
from csl_dist.video import frame_times, sampled_times

PROBE_THREADS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitSummary:
    """What one split holds."""

    split: Split
    num_videos: int
    hours: float
    num_frames: int
    class_frames_C: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoFacts:
    """What was found out about one video, or what is wrong with it."""

    video: Video
    seconds: float = 0.0
    class_frames_C: IntArray | None = None
    num_frames: int = 0
    problem: str | None = None


def look_at_videos(dataset: Dataset, fps: float | None) -> Iterator[VideoFacts]:
    """Reads every label file and the timestamps of every video, several at once."""
    with ThreadPoolExecutor(PROBE_THREADS) as pool:
        yield from pool.map(lambda video: _look_at(dataset, video, fps), dataset.videos)


def _look_at(dataset: Dataset, video: Video, fps: float | None) -> VideoFacts:
    try:
        times_T = sampled_times(frame_times(video.source), fps)
        labels_T = dataset.labels(video, times_T)
    except DataError as error:
        return VideoFacts(video=video, problem=str(error))
    labelled = labels_T[labels_T != UNLABELLED]
    return VideoFacts(
        video=video,
        seconds=float(times_T[-1]),
        num_frames=len(times_T),
        class_frames_C=np.bincount(labelled, minlength=len(dataset.classes)),
    )


def summaries(dataset: Dataset, facts: list[VideoFacts]) -> list[SplitSummary]:
    """One line per split that has videos."""
    lines = []
    for split in Split:
        found = [f for f in facts if f.video.split is split]
        counts = [f.class_frames_C for f in found if f.class_frames_C is not None]
        if found:
            total_C = np.sum([np.zeros(len(dataset.classes)), *counts], axis=0)
            lines.append(
                SplitSummary(
                    split=split,
                    num_videos=len(found),
                    hours=sum(f.seconds for f in found) / 3600,
                    num_frames=sum(f.num_frames for f in found),
                    class_frames_C=tuple(int(n) for n in total_C),
                )
            )
    return lines


def dataset_problems(dataset: Dataset, lines: list[SplitSummary]) -> list[str]:
    """What is wrong with the dataset as a whole."""
    by_split = {line.split: line for line in lines}
    problems = [
        f"there are no {split} videos; mark some in the manifest"
        for split in (Split.TRAIN, Split.AUDIT)
        if split not in by_split
    ]
    if Split.TRAIN in by_split:
        problems += [
            f"class {name!r} never occurs in training; no checkpoint can know it"
            for name, count in zip(
                dataset.classes, by_split[Split.TRAIN].class_frames_C, strict=True
            )
            if count == 0
        ]
    return problems
