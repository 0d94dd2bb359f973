"""Look at every label, video and feature file before any work is done with them.

Every problem is found in one pass, each told with its file; nothing stops at the first.
"""

import difflib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import combinations
from math import inf
from statistics import median

import numpy as np

from csl_dist.config import DatasetConfig, RunConfig
from csl_dist.data.dataset import Dataset, read_errors
from csl_dist.data.feature_files import FeatureFile, inspect_all
from csl_dist.data.media.pixels import pixel_source, whole_frames
from csl_dist.data.media.timeline import sampled
from csl_dist.data.planted import corrupted, planted_kinds
from csl_dist.data.splits import group_of
from csl_dist.data.tracks import SETTLE_OVERLAPS, EntryTrack, LabelTrack, Misfit, SegmentTrack
from csl_dist.errors import CslError, DataError
from csl_dist.types import UNLABELLED, IntArray, Media, Split, Timeline, Video

PROBE_THREADS = 8
OVERLAPS_SHOWN = 20
"""Of one video."""
LEAST_LABELLED = 0.7
"""Of the length of videos; where labels end earlier, their rate may be another."""
USUAL_FIT = 0.8
"""Share of videos whose labels must end with them before it means anything that others do not."""
SAME_END = 0.1
"""Seconds between the end of a video and of its labels."""
MISSPELT = 0.85
"""How alike two names are, from which on one may be a slip of the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoFacts:
    """What was found out about one video, and what is wrong with it."""

    video: Video
    problems: tuple[str, ...] = ()
    timeline: Timeline | None = None
    class_frames_C: IntArray | None = None
    file: FeatureFile | None = None
    """Of a video whose features the user brought."""
    labelled_share: float | None = None
    """Of the length of ready features or pictures, at which labels with times end."""
    labels_end: float | None = None
    """Second at which the labels end."""
    misfit: Misfit | None = None
    """What was trimmed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitSummary:
    """What one split holds."""

    split: Split
    num_videos: int
    hours: float
    num_frames: int
    class_frames_C: tuple[int, ...]


def look_at_videos(dataset: Dataset, config: DatasetConfig) -> Iterator[VideoFacts]:
    """Reads every label file and looks into every source, several at once."""
    tracks = {video.id: _track_or_error(dataset, video) for video in dataset.videos}
    readable = {
        v.id: track.num_frames(v.source_fps)
        for v in dataset.videos
        if v.media is Media.FEATURES and not isinstance(track := tracks[v.id], CslError)
    }
    files, refused = inspect_all(
        {video.id: video.source for video in dataset.videos if video.id in readable},
        readable,
        frames_last=dataset.features_frames_last,
        trim=config.length_mismatch == "trim",
    )

    def look_at(video: Video) -> VideoFacts:
        problems = [str(e) for e in (tracks[video.id], refused.get(video.id)) if _is_error(e)]
        problems += _overlap_problems(tracks[video.id])
        try:
            return _look_at(dataset, video, files.get(video.id), config, problems)
        except CslError as error:
            return VideoFacts(video=video, problems=(*problems, str(error)))

    if len(readable) == len(dataset.videos):
        yield from map(look_at, dataset.videos)  # nothing is left to wait for
        return
    with ThreadPoolExecutor(PROBE_THREADS) as pool:
        yield from pool.map(look_at, dataset.videos)


def _track_or_error(dataset: Dataset, video: Video) -> LabelTrack | CslError:
    try:
        return dataset.track(video)
    except CslError as error:
        return error


def _overlap_problems(track: LabelTrack | CslError) -> list[str]:
    """Every place where segments overlap, with the way out once."""
    found = track.unsettled_overlaps() if isinstance(track, SegmentTrack) else []
    if not found:
        return []
    more = len(found) - OVERLAPS_SHOWN
    rest = [f"and {more:,} more of this video start inside an earlier one"] if more > 0 else []
    return [f"{found[0]}; {SETTLE_OVERLAPS}", *found[1:OVERLAPS_SHOWN], *rest]


def _is_error(value: object) -> bool:
    return isinstance(value, CslError)


def _look_at(
    dataset: Dataset,
    video: Video,
    file: FeatureFile | None,
    config: DatasetConfig,
    problems: list[str],
) -> VideoFacts:
    """What a video holds, beside the problems that are known already."""
    timeline: Timeline | None = None
    if file is not None:
        timeline, _ = sampled(np.arange(file.num_frames) / video.source_fps, config.fps)
        problems = problems + _value_problems(video, file)
    elif video.media is not Media.FEATURES:
        timeline = _look_at_pixels(video, config.fps)
    if timeline is None or problems:
        return VideoFacts(video=video, problems=tuple(problems), timeline=timeline, file=file)
    track = dataset.track(video)
    end = _end(track)
    try:
        labels_T = dataset.labels(video, timeline)
    except CslError as error:
        return VideoFacts(video=video, problems=(str(error),), timeline=timeline, labels_end=end)
    labelled = labels_T[labels_T != UNLABELLED]
    if not len(labelled):
        problems = [f"{video.labels}: video {video.id!r} has no labelled frame"]
    is_timed = isinstance(track, SegmentTrack) and video.media is not Media.VIDEO
    share = end / timeline.duration if end is not None and is_timed else None
    return VideoFacts(
        video=video,
        problems=tuple(problems),
        timeline=timeline,
        class_frames_C=np.bincount(labelled, minlength=len(dataset.classes)),
        file=file,
        labelled_share=share,
        labels_end=end,
        misfit=track.misfit(timeline),
    )


def _end(track: LabelTrack) -> float | None:
    """Second at which labels end, with entries that say that there is none."""
    if isinstance(track, EntryTrack):
        return len(track.ids_N) / track.fps
    return track.last if isinstance(track, SegmentTrack) else None


def _look_at_pixels(video: Video, fps: float | None) -> Timeline:
    """The timeline, after the first and last frames that will be used were really decoded."""
    source = pixel_source(video)
    timeline, _ = sampled(source.times(), fps)
    for place in (0, -1):
        list(whole_frames(source.decode(timeline.times_T[[place]])))
    return timeline


def _value_problems(video: Video, file: FeatureFile) -> list[str]:
    """Features that can't be learned from."""
    features_TD = file.read()
    if len(features_TD) > 1 and (features_TD == features_TD[0]).all():
        return [f"{video.source}: features are the same in every frame; extract them again"]
    return []


def summaries(dataset: Dataset, facts: list[VideoFacts]) -> list[SplitSummary]:
    """One line per split that has videos."""
    lines = []
    for split in Split:
        found = [f for f in facts if f.video.split is split]
        counts = [f.class_frames_C for f in found if f.class_frames_C is not None]
        timelines = [f.timeline for f in found if f.timeline is not None]
        if found:
            total_C = np.sum([np.zeros(len(dataset.classes)), *counts], axis=0)
            lines.append(
                SplitSummary(
                    split=split,
                    num_videos=len(found),
                    hours=sum(timeline.duration for timeline in timelines) / 3600,
                    num_frames=sum(len(timeline.times_T) for timeline in timelines),
                    class_frames_C=tuple(int(n) for n in total_C),
                )
            )
    return lines


def all_problems(dataset: Dataset, facts: list[VideoFacts], config: RunConfig) -> list[str]:
    """Everything that is wrong: with the list, with each video, and with all together."""
    problems = [*dataset.problems, *(p for found in facts for p in found.problems)]
    problems = list(dict.fromkeys(problems))  # two videos may share one, as exchanged labels do
    problems += _width_problems(facts)
    path = config.dataset.path
    if not dataset.videos and problems:
        return problems  # what else is wrong follows from these
    if len({video.media is Media.FEATURES for video in dataset.videos}) > 1:
        problems.append(f"{path}: some videos have ready features and others do not; set source")
    if not any(fold.train for fold in dataset.folds):
        problems.append(f"{path}: there are no training videos; mark some, or use folds")
    if not dataset.in_split(Split.AUDIT):
        problems.append(f"{path}: there are no videos to audit; mark some, or use folds")
    return problems + _class_problems(dataset, facts) + _truth_problems(dataset, facts, config)


def _class_problems(dataset: Dataset, facts: list[VideoFacts]) -> list[str]:
    """Classes that occur, or are declared, but that a fold's training never sees."""
    problems = _alike_names(dataset.classes)
    if len(dataset.classes) == 1:
        problems.append(
            f"all labels are {dataset.classes[0]!r}; with a single class nothing can be mistaken "
            "for another: label at least two, or mark frames without a step as `-`"
        )
    counts = {f.video.id: f.class_frames_C for f in facts if f.class_frames_C is not None}
    is_folded = len(dataset.folds) > 1
    lone = _lone_groups(dataset, facts)
    for fold in dataset.folds:
        trained = [counts[video] for video in fold.train if video in counts]
        if not trained:
            continue
        seen_C = np.sum(trained, axis=0)
        where = f" of fold {fold.index}" if is_folded else ""
        way_out = "; another dataset.fold_seed may help" if is_folded else ""
        problems += [
            f"class {name!r} never occurs in training{where}; no checkpoint can know it{way_out}"
            for name, count in zip(dataset.classes, seen_C, strict=True)
            if count == 0 and name not in lone
        ]
    return problems


def lone_classes(dataset: Dataset, facts: list[VideoFacts]) -> str | None:
    """A sentence on classes of one person or video alone, which no fold can learn and audit."""
    lone = [f"{name!r} ({group})" for name, group in _lone_groups(dataset, facts).items()]
    if not lone:
        return None
    slips = [
        f"; is {name!r} a slip of {near!r}?"
        for name in _lone_groups(dataset, facts)
        if (near := _nearly(name, dataset.classes)) is not None
    ]
    return (
        f"classes of one person or video alone: {', '.join(lone)}; the models that audit it never "
        f"saw them, and make no claim where they stand{''.join(slips)}"
    )


def _nearly(name: str, classes: Sequence[str]) -> str | None:
    """A class of nearly the same name; names that differ in their digits are others on purpose."""

    def digits(text: str) -> list[str]:
        return re.findall(r"\d+", text)

    others = [other for other in classes if other != name and digits(other) == digits(name)]
    return next(iter(difflib.get_close_matches(name, others, n=1, cutoff=MISSPELT)), None)


def exchanged_labels(facts: Sequence[VideoFacts]) -> Iterator[str]:
    """A sentence for each two videos whose labels end with the other, where most fit their own."""
    known = [f for f in facts if f.labels_end is not None and f.timeline is not None]

    def apart(labelled: VideoFacts, seen: VideoFacts) -> float:
        if labelled.labels_end is None or seen.timeline is None:
            return inf
        return abs(labelled.labels_end - seen.timeline.duration)

    wrong = [found for found in known if apart(found, found) > SAME_END]
    if len(wrong) > (1 - USUAL_FIT) * len(known):
        return
    for first, second in combinations(wrong, 2):
        if apart(first, second) <= SAME_END and apart(second, first) <= SAME_END:
            yield (
                f"exchanged? The labels of {first.video.id!r} end with the video of "
                f"{second.video.id!r}, at {first.labels_end:.1f} s, and the other way round, at "
                f"{second.labels_end:.1f} s; {len(known) - len(wrong):,} of {len(known):,} videos "
                "end with their own labels"
            )


def _lone_groups(dataset: Dataset, facts: list[VideoFacts]) -> dict[str, str]:
    """Classes that one person, or one video without a group, alone has, and who that is.

    The fold that audits them can't have seen these, however folds are drawn; none without folds.
    """
    if len(dataset.folds) == 1:
        return {}
    groups: dict[str, set[str]] = {}
    for found in facts:
        if found.class_frames_C is not None:
            for c in np.flatnonzero(found.class_frames_C):
                groups.setdefault(dataset.classes[c], set()).add(group_of(found.video))
    return {name: own.pop() for name, own in groups.items() if len(own) == 1}


def _alike_names(classes: Sequence[str]) -> list[str]:
    """Classes whose names are the same but for case and blanks."""
    alike: dict[str, list[str]] = {}
    for name in classes:
        alike.setdefault(" ".join(name.casefold().split()), []).append(name)
    return [
        f"classes {', '.join(map(repr, names))} differ only in case or blanks; write them alike in "
        "the label files, or models learn them as different steps"
        for names in alike.values()
        if len(names) > 1
    ]


def _truth_problems(dataset: Dataset, facts: list[VideoFacts], config: RunConfig) -> list[str]:
    """Known errors that can't be read, and errors that can't be planted."""
    problems = []
    try:
        if config.dataset.truth is not None:
            problems += _wrong_rows(dataset, facts, config.dataset.truth)
        for video in dataset.in_split(Split.AUDIT):
            dataset.known_segments(video)
        planted = planted_kinds(dataset.audited_ids(), dataset.trained_ids(), config.corrupt)
        chosen = [pair for kinds in planted.values() for pair in kinds.items()]
    except CslError as error:
        return [str(error)]
    timelines = {f.video.id: (f.video, f.timeline) for f in facts if f.timeline and not f.problems}
    for video_id, kind in chosen:
        if video_id in timelines:
            video, timeline = timelines[video_id]
            labels_T = dataset.labels(video, timeline)
            try:
                corrupted(
                    labels_T,
                    kind,
                    video_id,
                    config.corrupt,
                    num_classes=len(dataset.classes),
                    fps=timeline.fps or 1.0,
                )
            except DataError as error:
                problems.append(str(error))
    return problems


def _wrong_rows(dataset: Dataset, facts: list[VideoFacts], path: str) -> list[str]:
    """Known errors of videos, frames or classes that there are not."""
    frames = {f.video.id: len(f.timeline.times_T) if f.timeline else None for f in facts}
    problems = []
    for number, known in enumerate(read_errors(path), start=2):
        span, length = known.span, frames.get(known.video)
        if known.video not in frames:
            wrong = f"there is no video {known.video!r}"
        elif not 0 <= span.start < span.stop or (length is not None and span.stop > length):
            wrong = (
                f"frames {span.start} to {span.stop} of video {known.video!r}, which has {length}"
            )
        elif known.true_label is not None and known.true_label not in dataset.classes:
            wrong = f"there is no class {known.true_label!r}"
        else:
            continue
        problems.append(f"{path}:{number}: {wrong}")
    return problems


def _width_problems(facts: list[VideoFacts]) -> list[str]:
    """Feature files that are not as wide as most."""
    widths = Counter(f.file.width for f in facts if f.file is not None)
    if len(widths) < 2:
        return []
    usual = widths.most_common(1)[0][0]
    return [
        f"{f.file.path}: features are {f.file.width} wide, but {usual} in most other videos"
        for f in facts
        if f.file is not None and f.file.width != usual
    ]


def doubtful_rate(facts: list[VideoFacts]) -> str | None:
    """A sentence where labels end long before ready features or pictures do: as at a wrong rate."""
    shares = [f.labelled_share for f in facts if f.labelled_share is not None]
    if not shares or (share := median(shares)) >= LEAST_LABELLED:
        return None
    rates = sorted({f.video.source_fps for f in facts if f.labelled_share is not None})
    return (
        f"rate: labels end at {share:.0%} of the length of what they label, in the median; are "
        f"there really {' and '.join(f'{rate:g}' for rate in rates)} frames or features a second? "
        "If not, set dataset.features_fps or dataset.frames_fps"
    )


def trimmed(facts: Sequence[VideoFacts]) -> str | None:
    """A sentence where labels and frames differ in length and are used as far as both reach."""
    found = [(f.misfit.share, f.misfit.words, f.video.id) for f in facts if f.misfit is not None]
    if not found:
        return None
    share, words, video = max(found)
    return (
        f"trimmed: {len(found):,} of {len(facts):,} videos have more labels than frames or fewer, "
        f"by {share:.1%} at most ({video!r}: {words})"
    )


def orientation(facts: list[VideoFacts]) -> str | None:
    """How ready-made features lie in their files, in words."""
    files = [f.file for f in facts if f.file is not None]
    if not files:
        return None
    turned = sum(file.frames_last for file in files)
    return (
        f"features: {len(files) - turned:,} files are (frames, width), {turned:,} are "
        "(width, frames), decided by the number of labels"
    )
