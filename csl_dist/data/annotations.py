"""Annotations: labels of a run's videos, frame by frame, with the errors that its config plants.

Label files and timelines are read once, however many stages ask for them.
"""

from collections.abc import Callable, Sequence
from functools import cached_property

from csl_dist.config import RunConfig, num_swapped_copies
from csl_dist.data.dataset import Dataset, read_errors
from csl_dist.data.planted import (
    Corruption,
    PlantedVideo,
    copy_id,
    corrupted,
    planted_kinds,
    planted_videos,
    with_errors,
)
from csl_dist.types import (
    Annotation,
    DerivedFrames,
    ErrorKind,
    IntArray,
    PlantedError,
    Span,
    Split,
    Timeline,
    rate_of,
    spans_where,
)

ReadTimelines = Callable[[Sequence[str]], list[Timeline]]
"""From ids of videos to when their frames are shown."""


class Annotations:
    """The labels of a run; each use of a video sees the errors that are planted for that use."""

    def __init__(self, dataset: Dataset, config: RunConfig, read_timelines: ReadTimelines):
        self._dataset = dataset
        self._config = config
        self._read_timelines = read_timelines
        self._videos = {video.id: video for video in dataset.videos}
        self._clean: dict[str, Annotation] = {}
        self._derived: dict[Split, dict[str, DerivedFrames]] = {split: {} for split in Split}
        self._made: dict[tuple[str, Split], Annotation] = {}

    def __repr__(self) -> str:
        return f"Annotations({len(self._videos)} videos, {len(self._clean)} read)"

    def of(self, videos: Sequence[str], use: Split) -> list[Annotation]:
        """Labels of videos as one use of them sees them."""
        self._read(videos)
        for video in videos:
            if (video, use) not in self._made:
                self._made[video, use] = self._planted(video, use)
        return [self._made[video, use] for video in videos]

    def in_split(self, split: Split) -> list[Annotation]:
        """The annotations of all audit, or all validation, videos."""
        return self.of([video.id for video in self._dataset.in_split(split)], split)

    def held_out(self) -> list[Annotation]:
        """All that no training sees: videos to audit, those that set the threshold, and copies."""
        copies = [copy.wrong for copy in self.swapped_copies]
        return [*self.in_split(Split.AUDIT), *self.in_split(Split.VAL), *copies]

    @cached_property
    def swapped_copies(self) -> list[PlantedVideo]:
        """Copies of some held-out videos, each with two neighbouring steps swapped."""
        return planted_videos(
            [a for a in self.in_split(self.calibrated_on) if copy_id(a.video) not in self._videos],
            ErrorKind.DISORDER,
            self._config.corrupt,
            num_classes=len(self._dataset.classes),
            most=num_swapped_copies(self._config),
        )

    @property
    def calibrated_on(self) -> Split:
        """Where errors are planted for calibration: validation videos, or else those to audit."""
        return Split.VAL if self._dataset.in_split(Split.VAL) else Split.AUDIT

    def derived(self, use: Split) -> dict[str, DerivedFrames]:
        """Derived videos among those read for a use, by id; those of an audit with its copies."""
        if use is Split.TRAIN:
            return self._derived[Split.TRAIN]
        self.held_out()
        videos = self._derived[Split.AUDIT] | self._derived[Split.VAL]
        return videos | {c.wrong.video: self._frames_of(c, videos) for c in self.swapped_copies}

    def known_errors(self) -> list[PlantedError]:
        """Label errors of the audit videos whose place is known: planted, listed, or annotated."""
        path = self._config.dataset.truth
        errors = list(read_errors(path)) if path else []
        for seen in self.in_split(Split.AUDIT):
            clean = self._clean[seen.video]
            corruption = self._corruption(clean, Split.AUDIT)
            if corruption is not None:
                errors += self._planted_errors(clean, corruption)
            for known in self._dataset.known_segments(self._videos[seen.video]):
                shown_T = seen.source_times_T
                inside_T = (shown_T >= known.start_seconds) & (shown_T < known.stop_seconds)
                errors += [
                    PlantedError(video=seen.video, kind=known.kind, span=span)
                    for span in spans_where(inside_T)
                ]
        return errors

    def has_known_errors(self) -> bool:
        """Whether there is anything that `evaluate` could compare with."""
        if self._config.dataset.truth or self._kinds[Split.AUDIT]:
            return True
        audited = self._dataset.in_split(Split.AUDIT)
        return any(self._dataset.known_segments(video) for video in audited)

    @cached_property
    def _kinds(self) -> dict[Split, dict[str, ErrorKind]]:
        """Kinds of errors to plant, by what the video is used for, then id."""
        dataset = self._dataset
        return planted_kinds(dataset.audited_ids(), dataset.trained_ids(), self._config.corrupt)

    def _read(self, videos: Sequence[str]) -> None:
        """Reads the labels of videos that have not been read yet."""
        missing = [video for video in videos if video not in self._clean]
        if not missing:
            return
        self._dataset.tracks([self._videos[video] for video in missing])  # many at once
        for video, timeline in zip(missing, self._read_timelines(missing), strict=True):
            self._clean[video] = Annotation(
                video=video,
                labels_T=self._dataset.labels(self._videos[video], timeline),
                times_T=timeline.times_T,
                source_fps=timeline.source_fps,
                duration=timeline.duration,
            )

    def _planted(self, video: str, use: Split) -> Annotation:
        clean = self._clean[video]
        corruption = self._corruption(clean, use)
        if corruption is None:
            return clean
        if corruption.moves_frames:
            frames = DerivedFrames(original=video, order_T=corruption.order_T)
            self._derived[use][video] = frames
        return with_errors(clean, corruption, video=video)

    def _corruption(self, clean: Annotation, use: Split) -> Corruption | None:
        """The error planted in a video for one use of it, if any."""
        kind = self._kinds.get(use, {}).get(clean.video)
        if kind is None:
            return None
        num_classes = len(self._dataset.classes)
        config = self._config.corrupt
        return corrupted(
            clean.labels_T,
            kind,
            clean.video,
            config,
            num_classes=num_classes,
            fps=rate_of(clean),
        )

    def _planted_errors(self, clean: Annotation, corruption: Corruption) -> list[PlantedError]:
        def true_label(span: Span) -> str | None:
            if corruption.moves_frames:
                return None
            return self._dataset.classes[int(clean.labels_T[span.start])]

        return [
            PlantedError(
                video=clean.video, kind=corruption.kind, span=span, true_label=true_label(span)
            )
            for span in corruption.spans
        ]

    @staticmethod
    def _frames_of(copy: PlantedVideo, videos: dict[str, DerivedFrames]) -> DerivedFrames:
        """The frames of a copy in those of the dataset's video; its video may be derived, too."""
        assert copy.order_T is not None
        before = videos.get(copy.clean.video)
        order_T: IntArray = copy.order_T if before is None else before.order_T[copy.order_T]
        return DerivedFrames(original=copy.clean.original, order_T=order_T)
