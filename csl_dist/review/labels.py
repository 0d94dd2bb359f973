"""Corrected labels from decisions: of frames, and as label files for `csl relabel`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from csl_dist.audit.reader import Audit
from csl_dist.audit.relabel import changed_annotations
from csl_dist.data.layouts import Edge, Renaming, corrected_labels, write_renamed
from csl_dist.errors import DataError
from csl_dist.review.store import Decision, Review, SpanKey, is_disputed
from csl_dist.types import Annotation, IntArray, Span, Timeline, runs_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """A span that gets another label."""

    video: str
    span: Span
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenLabels:
    """Result of writing corrected labels."""

    files: list[Path]
    num_spans: int
    num_videos: int
    num_disputed: int
    """Spans that reviewers decided differently; the last decision counts."""
    num_off: int
    """Frames whose label the file can't express, as its entries are farther apart than frames."""


def corrections(current: Mapping[SpanKey, Sequence[Review]]) -> list[Correction]:
    """Corrections by the last decision on each span, oldest first."""
    last = sorted((reviews[-1] for reviews in current.values()), key=lambda r: r.number)
    return [found for review in last if (found := correction(review)) is not None]


def correction(review: Review) -> Correction | None:
    """The correction by a decision; None if the annotated label stays."""
    if review.decision not in (Decision.WRONG, Decision.BOUNDARY) or review.label is None:
        return None
    span = Span(review.start, review.stop)
    if review.new_start is not None and review.new_stop is not None:
        span = Span(review.new_start, review.new_stop)
    return Correction(video=review.video, span=span, label=review.label)


def corrected(labels_T: IntArray, own: Sequence[Correction], classes: tuple[str, ...]) -> IntArray:
    """A video's class ids (T,) after its corrections; a later one overwrites an earlier one."""
    corrected_T = labels_T.copy()
    for one in own:
        corrected_T[one.span.start : one.span.stop] = classes.index(one.label)
    return corrected_T


def write_corrected(
    audit: Audit, current: Mapping[SpanKey, Sequence[Review]], out: Path
) -> WrittenLabels:
    """Writes the labels of corrected videos to a folder, in the dataset's own layout."""
    made = corrections(current)
    if not made:
        raise DataError(
            f"audit {audit.revision} of {audit.paths.root.url} has no decision that changes a "
            "label yet; review some spans with `csl serve`"
        )
    by_video: dict[str, list[Correction]] = {}
    for one in made:
        by_video.setdefault(one.video, []).append(one)
    wanted = {
        video: _in_source_order(audit.annotation(video), own, audit.classes)
        for video, own in by_video.items()
    }
    files = write_renamed(
        audit.config.dataset,
        audit.held_out_videos(),
        {
            video: _renamings(audit, before_T, after_T, video)
            for video, (before_T, after_T) in wanted.items()
        },
        frame_rates={video: audit.annotation(video).timeline.fps for video in wanted},
        out=out,
        current=_current_files(audit),
        inputs=[
            *(video.labels for video in audit.videos_by_id.values()),
            *audit.paths.own(audit.config.scorers),
        ],
    )
    return WrittenLabels(
        files=files,
        num_spans=len(made),
        num_videos=len(by_video),
        num_disputed=sum(is_disputed(reviews) for reviews in current.values()),
        num_off=_frames_off(audit, by_video, out),
    )


def _in_source_order(
    annotation: Annotation, own: Sequence[Correction], classes: tuple[str, ...]
) -> tuple[IntArray, IntArray]:
    """Labels (T,) before and after, in the order of the source's frames."""
    before_T = annotation.labels_T
    after_T = corrected(before_T, own, classes)
    # In a derived video, frames are not in the order of the source.
    back_T = np.argsort(annotation.source_times_T, kind="stable")
    return before_T[back_T], after_T[back_T]


def _renamings(audit: Audit, before_T: IntArray, after_T: IntArray, video: str) -> list[Renaming]:
    """Spans whose label changes, with the times of their edges."""
    timeline = audit.annotation(video).timeline
    changed_T = np.where(before_T != after_T, after_T, -2)
    return [
        Renaming(
            start=_edge(timeline, span.start),
            stop=_edge(timeline, span.stop),
            label=audit.classes[int(after_T[span.start])],
        )
        for span in runs_of(changed_T)
        if changed_T[span.start] != -2
    ]


def _edge(timeline: Timeline, frame: int) -> Edge:
    """The edge before a frame, or after the last frame."""
    times_T = timeline.times_T
    if frame == 0:
        return Edge(after=-np.inf, at=0.0, middle=-np.inf)
    before = float(times_T[frame - 1])
    if frame == len(times_T):
        end = max(timeline.duration, before + 1 / timeline.fps)
        return Edge(after=before, at=end, middle=np.inf)
    at = float(times_T[frame])
    return Edge(after=before, at=at, middle=(before + at) / 2)


def _current_files(audit: Audit) -> dict[str, str]:
    """Label files that this audit read instead of those of the dataset, by video."""
    videos = audit.held_out_videos()
    sources = {video.id: audit.labels_from(video.id) for video in videos}
    files: dict[str, str] = {}
    for source in {source for source in sources.values() if source is not None}:
        found = corrected_labels(audit.config.dataset, audit.classes, videos, Path(source))
        files |= {v.id: v.labels for v in found.videos if sources[v.id] == source}
    return files


def _frames_off(audit: Audit, by_video: Mapping[str, Sequence[Correction]], out: Path) -> int:
    """Number of frames that have another label than decided when the files are read back."""
    read = {annotation.video: annotation for annotation in changed_annotations(audit, out)}
    off = 0
    for video, own in by_video.items():
        annotation = audit.annotation(video)
        wanted_T = corrected(annotation.labels_T, own, audit.classes)
        off += int((read.get(video, annotation).labels_T != wanted_T).sum())
    return off
