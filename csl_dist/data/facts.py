"""Facts about a dataset that settings are chosen by: from its labels alone, in seconds."""

import importlib.util
from dataclasses import dataclass, replace

import numpy as np

from csl_dist.data.dataset import Dataset
from csl_dist.data.splits import group_of
from csl_dist.data.tracks import SegmentTrack
from csl_dist.errors import CslError
from csl_dist.types import UNLABELLED, FloatArray, Media, Video, runs_of

LOOKS_PER_SECOND = 10.0
"""How often labels are looked at; steps shorter than a tenth of a second are not seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetFacts:
    """How much there is, and how long its steps are."""

    seconds: dict[str, float]
    """Length of each video by its labels, which may end before it does."""
    step_seconds_S: FloatArray
    """Length of every labelled segment."""
    classes: dict[str, frozenset[int]]
    """Those that occur in each video."""
    num_classes: int
    num_groups: int
    """People, or whatever else stays together; without groups, videos."""
    has_pixels: bool
    source_fps: float | None
    """The least rate of ready features or frame folders, or that of the first video file."""

    @property
    def num_videos(self) -> int:
        return len(self.seconds)

    @property
    def hours(self) -> float:
        return sum(self.seconds.values()) / 3600


def dataset_facts(dataset: Dataset) -> DatasetFacts:
    """Reads all labels; a video whose labels can't be read is left out, `csl check` tells of it."""
    found = dataset.each(lambda video: _steps(dataset, video), dataset.videos)
    known = {v.id: own for v, own in zip(dataset.videos, found, strict=True) if own is not None}
    return DatasetFacts(
        seconds={video: seconds for video, (seconds, _, _) in known.items()},
        step_seconds_S=np.concatenate([np.empty(0), *(steps for _, steps, _ in known.values())]),
        classes={video: classes for video, (_, _, classes) in known.items()},
        num_classes=len(dataset.classes),
        num_groups=len({group_of(video) for video in dataset.videos}),
        has_pixels=any(video.media is not Media.FEATURES for video in dataset.videos),
        source_fps=_source_fps(dataset),
    )


def _source_fps(dataset: Dataset) -> float | None:
    rates = [v.source_fps for v in dataset.videos if v.media is not Media.VIDEO and v.source_fps]
    if rates:
        return min(rates)
    files = [v.source for v in dataset.videos if v.media is Media.VIDEO and v.source]
    if not files or importlib.util.find_spec("av") is None:
        return None
    from csl_dist.data.media.video import header_rate

    return header_rate(files[0])


def _steps(dataset: Dataset, video: Video) -> tuple[float, FloatArray, frozenset[int]] | None:
    """Seconds of a video, those of its steps, and their classes."""
    try:
        track = dataset.track(video)
    except CslError:
        return None
    if isinstance(track, SegmentTrack):
        track = replace(track, overlap="last")  # however the user settles that, or has to
    seconds = track.num_frames(LOOKS_PER_SECOND)[0] / LOOKS_PER_SECOND
    ids_T = track.at(np.arange(0, seconds, 1 / LOOKS_PER_SECOND))
    steps = [len(run) for run in runs_of(ids_T) if ids_T[run.start] != UNLABELLED]
    classes = frozenset(np.unique(ids_T).tolist()) - {UNLABELLED}
    return seconds, np.array(steps) / LOOKS_PER_SECOND, classes
