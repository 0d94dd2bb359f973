"""Features that the user brings, as a source of features like our own store."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from csl_dist.config import DatasetConfig, RunConfig
from csl_dist.data.content import Contents
from csl_dist.data.dataset import Dataset, first_of
from csl_dist.data.feature_files import FeatureFile, feature_content, inspect_all
from csl_dist.data.media.sources import find_features
from csl_dist.data.media.timeline import sampled
from csl_dist.errors import ConfigError, DataError
from csl_dist.features.source import ALL_FRAMES, Features, FeatureSource, Frames, SideBySide
from csl_dist.storage.files import place
from csl_dist.storage.requests import at_once
from csl_dist.types import FloatArray, IntArray, Media, Timeline, fingerprint


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyEntry:
    """A video whose features the user brought."""

    file: FeatureFile
    fps: float
    fingerprint: str


class ReadyFeatures:
    """The user's own feature files, sampled at a rate; nothing is copied."""

    encoder = "ready-made"

    def __init__(self, entries: Mapping[str, ReadyEntry], fps: float | None):
        self._entries = entries
        self._fps = fps

    def __repr__(self) -> str:
        return f"ReadyFeatures({len(self._entries)} videos)"

    def missing(self) -> list[str]:
        return []

    def timeline(self, video: str) -> Timeline:
        return self._sampled(video)[0]

    def read(self, video: str, frames: Frames = ALL_FRAMES) -> Features:
        features_TD = self._entries[video].file.read()
        return features_TD[self._sampled(video)[1]][frames]

    def width(self) -> int:
        return next(iter(self._entries.values())).file.width

    def fingerprint(self, video: str) -> str:
        return self._entries[video].fingerprint

    def _sampled(self, video: str) -> tuple[Timeline, IntArray]:
        entry = self._entries[video]
        times_N: FloatArray = np.arange(entry.file.num_frames) / entry.fps
        return sampled(times_N, self._fps)


def uses_ready_features(dataset: Dataset) -> bool:
    """Whether the user brought features; a mixture of features and pixels is refused."""
    media = {video.media is Media.FEATURES for video in dataset.videos}
    if len(media) > 1:
        example = next(v.id for v in dataset.videos if v.media is not Media.FEATURES)
        raise DataError(
            f"some videos have ready features and others, such as {example!r}, do not; set "
            "dataset.source, or give features of all"
        )
    return media == {True}


def ready_features(dataset: Dataset, config: DatasetConfig, contents: Contents) -> ReadyFeatures:
    """The user's feature files, their orientation told by their labels."""
    files, problems = inspect_all(
        {video.id: video.source for video in dataset.videos},
        {
            video.id: track.num_frames(video.source_fps)
            for video, track in zip(dataset.videos, dataset.tracks(dataset.videos), strict=True)
        },
        frames_last=dataset.features_frames_last,
        trim=config.length_mismatch == "trim",
        contents=contents,
    )
    if problems:
        raise first_of(problems.values())
    found = at_once(lambda video: feature_content(video.source, contents), dataset.videos)
    entries = {}
    for video, content in zip(dataset.videos, found, strict=True):
        file = files[video.id]
        parts = fingerprint("ready", content, file.frames_last, video.source_fps, config.fps)
        entries[video.id] = ReadyEntry(file=file, fps=video.source_fps, fingerprint=parts)
    widths = {entry.file.width: video for video, entry in entries.items()}
    if len(widths) > 1:
        names = ", ".join(f"{video!r} has {width}" for width, video in widths.items())
        raise DataError(f"features must have one width, but {names}")
    return ReadyFeatures(entries, config.fps)


def brought_features(dataset: Dataset, config: RunConfig, contents: Contents) -> FeatureSource:
    """The user's feature files, and beside them those of other folders."""
    sources = [ready_features(dataset, config.dataset, contents)]
    for other in config.features.beside:
        if other.files is None:
            raise ConfigError(
                f"features.beside: the dataset brings ready-made features, so that there are no "
                f"pixels for {other.encoder}; name a folder of features (files) instead"
            )
        videos = tuple(
            replace(video, source=_file_of(other.files, video.id)) for video in dataset.videos
        )
        sources.append(ready_features(replace(dataset, videos=videos), config.dataset, contents))
    return sources[0] if len(sources) == 1 else SideBySide(sources)


def _file_of(folder: str, video: str) -> str:
    found = find_features(place(folder), video)
    if found is None:
        raise DataError(
            f"features.beside: {folder} has no features of video {video!r}; expected {video}.npy "
            "or another feature file of that name"
        )
    return str(found)
