"""Corrected labels from decisions: of frames, and as label files for `csl relabel`."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from csl_dist.audit.reader import Audit
from csl_dist.audit.relabel import changed_annotations
from csl_dist.data.layouts import Edge, Renaming, corrected_labels, write_renamed
from csl_dist.errors import DataError
from csl_dist.review.edits import SpanEdit, edited
from csl_dist.review.store import (
    CurrentDecisions,
    Review,
    ReviewStore,
    SpanKey,
    is_disputed,
    of_revision,
)
from csl_dist.types import Annotation, IntArray, Timeline, runs_of

ROUNDING = 1e-4
"""Seconds by which the time of an entry may be before an edge that is at the entry."""


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


def corrections(current: Mapping[SpanKey, Sequence[Review]]) -> dict[str, list[SpanEdit]]:
    """Edits of each video by the last decision on each span, oldest first."""
    last = sorted((reviews[-1] for reviews in current.values()), key=lambda r: r.number)
    by_video: dict[str, list[SpanEdit]] = {}
    for review in last:
        if review.changes:
            by_video.setdefault(review.video, []).extend(review.changes)
    return by_video


def write_corrected(
    audit: Audit, current: Mapping[SpanKey, Sequence[Review]], out: Path, *, store: ReviewStore
) -> WrittenLabels:
    """Writes the labels of corrected videos to a folder, in the dataset's own layout.

    `current` are the decisions that hold in the audit, `store` has those on earlier audits too.
    """
    by_video = corrections(current)
    if not by_video:
        raise DataError(
            f"audit {audit.revision} of {audit.paths.root.url} has no decision "
            f"{_nothing_left(audit, store)} spans with `csl serve`"
        )
    wanted = {
        video: _in_source_order(audit.annotation(video), own, audit.classes)
        for video, own in by_video.items()
    }
    files = write_renamed(
        audit.config.dataset,
        audit.held_out_videos(),
        {
            video: _renamings(audit, before_T, after_T, video, by_video[video])
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
        num_spans=sum(bool(reviews[-1].changes) for reviews in current.values()),
        num_videos=len(by_video),
        num_disputed=sum(is_disputed(reviews) for reviews in current.values()),
        num_off=_frames_off(audit, by_video, out),
    )


def _nothing_left(audit: Audit, store: ReviewStore) -> str:
    """Whether no decision changes a label, or all that do are in the labels; part of a sentence."""
    everywhere = CurrentDecisions(store, of_revision(None)).by_span()
    made = Counter(
        reviews[-1].revision
        for reviews in everywhere.values()
        if reviews[-1].revision < audit.revision and _is_made(audit, reviews[-1])
    )
    if not made:
        return "that changes a label yet; review some"
    counts = ", ".join(f"{count} of audit {number}" for number, count in sorted(made.items()))
    return f"left that changes a label: {counts} are in its labels already; review more"


def _is_made(audit: Audit, review: Review) -> bool:
    """Whether a decision changes labels, and the audit saw them as it leaves them."""
    if not review.changes or review.video not in audit.videos_by_id:
        return False
    if not {edit.label for edit in review.changes} <= set(audit.classes):
        return False
    labels_T = audit.annotation(review.video).labels_T
    return bool((labels_T == edited(labels_T, review.changes, audit.classes)).all())


def _in_source_order(
    annotation: Annotation, own: Sequence[SpanEdit], classes: tuple[str, ...]
) -> tuple[IntArray, IntArray]:
    """Labels (T,) before and after, in the order of the source's frames."""
    before_T = annotation.labels_T
    after_T = edited(before_T, own, classes)
    # In a derived video, frames are not in the order of the source.
    back_T = np.argsort(annotation.source_times_T, kind="stable")
    return before_T[back_T], after_T[back_T]


def _renamings(
    audit: Audit, before_T: IntArray, after_T: IntArray, video: str, own: Sequence[SpanEdit]
) -> list[Renaming]:
    """Spans whose label changes, with the times of their edges."""
    annotation = audit.annotation(video)
    timeline = annotation.timeline
    # Times of a derived video are not those of its source.
    exact = _exact_edges(own) if annotation.derived_from is None else {}
    changed_T = np.where(before_T != after_T, after_T, -2)
    return [
        Renaming(
            start=_edge(timeline, span.start, exact),
            stop=_edge(timeline, span.stop, exact),
            label=audit.classes[int(after_T[span.start])],
        )
        for span in runs_of(changed_T)
        if changed_T[span.start] != -2
    ]


def _exact_edges(own: Sequence[SpanEdit]) -> dict[int, float]:
    """Times of edges that reviewers set between two frames, by the frame after."""
    pairs = [pair for e in own for pair in ((e.start, e.start_seconds), (e.stop, e.stop_seconds))]
    return {frame: seconds for frame, seconds in pairs if seconds is not None}


def _edge(timeline: Timeline, frame: int, exact: Mapping[int, float]) -> Edge:
    """The edge before a frame, or after the last frame."""
    times_T = timeline.times_T
    seconds = exact.get(frame, np.inf)
    if 0 < frame < len(times_T) and times_T[frame - 1] < seconds <= times_T[frame]:
        return Edge(after=seconds, at=seconds, middle=seconds - ROUNDING)
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


def _frames_off(audit: Audit, by_video: Mapping[str, Sequence[SpanEdit]], out: Path) -> int:
    """Number of frames that have another label than decided when the files are read back."""
    read = {annotation.video: annotation for annotation in changed_annotations(audit, out)}
    off = 0
    for video, own in by_video.items():
        annotation = audit.annotation(video)
        wanted_T = edited(annotation.labels_T, own, audit.classes)
        off += int((read.get(video, annotation).labels_T != wanted_T).sum())
    return off
