"""Which videos train, validate and are audited: the dataset's own word, lists, or folds."""

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from csl_dist.config import DatasetConfig, SplitLists
from csl_dist.data.dataset import Dataset, Fold
from csl_dist.errors import ConfigError
from csl_dist.storage.files import is_url
from csl_dist.types import Split, Video, fingerprint

SHARED_SECONDS = 0.01
"""Ends of videos that follow each other in one file may be off by as much."""
SEEDS_TRIED = 200
"""Seeds among which `csl init` looks for folds of like size."""


def with_splits(dataset: Dataset, config: DatasetConfig) -> Dataset:
    """The dataset with the config's lists and folds applied, and with what is wrong with them."""
    problems = list(dataset.problems)
    for video, count in Counter(video.id for video in dataset.videos).items():
        if count > 1:
            people = sorted({v.annotator or "" for v in dataset.videos if v.id == video})
            if len(people) > 1:
                problems.append(
                    f"{config.path}: video {video!r} is labelled by {', '.join(people)}; choose "
                    "one with dataset.annotator"
                )
                continue
            splits = sorted({v.split for v in dataset.videos if v.id == video})
            where = f"in the splits {' and '.join(splits)}" if len(splits) > 1 else "twice"
            problems.append(f"{config.path}: video {video!r} is listed {where}; keep one")
    if isinstance(config.splits, SplitLists):
        dataset, found = _by_lists(dataset, config.splits)
        problems += found
    videos = {video.id: video for video in with_patterns(dataset.videos, config)}
    problems += _shared_sources(list(videos.values()))
    if config.folds is None:
        problems += _shared_groups(list(videos.values()))
    dataset = replace(
        dataset, videos=tuple(videos.values()), length_mismatch=config.length_mismatch
    )
    num_groups = len({group_of(video) for video in dataset.videos})
    if config.folds is None:
        dataset = replace(dataset, folds=(_only_fold(dataset),))
    elif not dataset.videos and problems:
        pass  # why there are none is told already
    elif num_groups < config.folds:
        problems.append(
            f"dataset.folds is {config.folds}, but there are only {num_groups} videos or groups; "
            "lower it"
        )
    else:
        dataset = _by_folds(dataset, config.folds, config.fold_seed)
    return replace(dataset, problems=tuple(problems))


def _shared_sources(videos: list[Video]) -> list[str]:
    """Footage that is listed under several ids: trained on under one, audited under another."""
    by_source: dict[str, list[Video]] = {}
    for video in (video for video in videos if video.source):
        source = video.source if is_url(video.source) else os.path.realpath(video.source)
        by_source.setdefault(source, []).append(video)
    problems = []
    for source, own in by_source.items():
        whole = [video for video in own if video.stop_seconds is None]
        if whole and len(own) > 1:
            ids = ", ".join(video.id for video in own)
            problems.append(f"{source} is listed as {len(own)} videos ({ids}); keep one")
            continue
        ranges = sorted((v.start_seconds, v.stop_seconds or 0.0, v.id) for v in own)
        problems += [
            f"{source}: videos {one!r} and {other!r} share its seconds {start:g} to {stop:g}"
            for (_, stop, one), (start, _, other) in pairwise(ranges)
            if start < stop - SHARED_SECONDS
        ]
    return problems


def _shared_groups(videos: list[Video]) -> list[str]:
    """Groups, such as a surgeon, of whom some videos are trained on and others audited."""
    splits: dict[str, set[Split]] = {}
    for video in videos:
        if video.group is not None:
            splits.setdefault(video.group, set()).add(video.split)
    return [
        f"group {group!r} is both in train and in audit; keep a group together, or use folds"
        for group, found in splits.items()
        if {Split.TRAIN, Split.AUDIT} <= found
    ]


def with_patterns(videos: Sequence[Video], config: DatasetConfig) -> tuple[Video, ...]:
    """Videos with the group and the procedure that the config's patterns find in their ids."""
    for name in ("group", "procedure"):
        pattern = getattr(config, name)
        if pattern is not None:
            found: list[dict[str, Any]] = [{name: _matched(v.id, name, pattern)} for v in videos]
            if videos and not any(part[name] for part in found):
                raise ConfigError(
                    f"the pattern {pattern!r} of dataset.{name} (--{name} of csl lint) is in none "
                    f"of the {len(videos):,} ids, such as {videos[0].id!r}"
                )
            videos = [replace(v, **part) for v, part in zip(videos, found, strict=True)]
    return tuple(videos)


def _matched(video: str, name: str, pattern: str) -> str | None:
    """What a pattern matches in an id; its first parenthesis where it has one."""
    try:
        found = re.search(pattern, video)
    except re.error as error:
        raise ConfigError(
            f"dataset.{name} (--{name} of csl lint) {pattern!r} is no regular expression: {error}"
        ) from error
    if found is None:
        return None
    return found.group(1) if found.groups() else found.group()


def _only_fold(dataset: Dataset) -> Fold:
    return Fold(
        index=0,
        train=tuple(v.id for v in dataset.in_split(Split.TRAIN)),
        held_out=tuple(v.id for v in dataset.in_split(Split.AUDIT, Split.VAL)),
    )


def _by_lists(dataset: Dataset, lists: SplitLists) -> tuple[Dataset, list[str]]:
    """Videos of the lists alone; an id that is unknown, or in two lists, is a problem."""
    known = {video.id for video in dataset.videos}
    chosen: dict[str, Split] = {}
    problems = []
    for split in Split:
        for video in getattr(lists, split):
            if video not in known:
                problems.append(f"dataset.splits.{split}: there is no video {video!r}")
            elif video in chosen:
                problems.append(
                    f"dataset.splits: video {video!r} is in {chosen[video]} and in {split}"
                )
            else:
                chosen[video] = split
    videos = (replace(v, split=chosen[v.id]) for v in dataset.videos if v.id in chosen)
    return replace(dataset, videos=tuple(videos)), problems


def fold_of(group: str, num_folds: int, seed: int) -> int:
    """The fold of a group, which no other group changes: rendezvous hashing."""
    return max(range(num_folds), key=lambda fold: fingerprint(seed, group, fold))


def balanced_seed(
    videos: Sequence[Video], num_folds: int, classes: Mapping[str, frozenset[int]]
) -> int:
    """The seed, among the first, whose folds are all there, train on the most classes of those
    that occur in each video, and have the most equal numbers of videos."""
    own: dict[str, set[int]] = {}
    for video in videos:
        own.setdefault(group_of(video), set()).update(classes.get(video.id, ()))
    every = set[int]().union(*own.values())
    sizes = Counter(group_of(video) for video in videos)

    def badness(seed: int) -> tuple[int, int, int]:
        folds = {group: fold_of(group, num_folds, seed) for group in own}
        counts: Counter[int] = Counter()
        for group, fold in folds.items():
            counts[fold] += sizes[group]
        unseen = sum(
            len(every.difference(*(own[group] for group, f in folds.items() if f != fold)))
            for fold in counts
        )
        return num_folds - len(counts), unseen, max(counts.values(), default=0)

    return min(range(SEEDS_TRIED), key=badness)


def group_of(video: Video) -> str:
    """What stays together in one fold: the video's group, or the video alone."""
    return video.group or video.id


def groups_of(videos: Iterable[Video]) -> dict[str, str]:
    """What stays together, by id of the video."""
    return {video.id: group_of(video) for video in videos}


def _by_folds(dataset: Dataset, num_folds: int, seed: int) -> Dataset:
    """Every video is audited once; videos of one group stay together. Empty folds are left out."""
    videos = tuple(replace(video, split=Split.AUDIT) for video in dataset.videos)
    folds = {video.id: fold_of(group_of(video), num_folds, seed) for video in videos}
    return replace(
        dataset,
        videos=videos,
        folds=tuple(
            Fold(
                index=index,
                train=tuple(video for video, fold in folds.items() if fold != index),
                held_out=tuple(video for video, fold in folds.items() if fold == index),
            )
            for index in sorted(set(folds.values()))
        ),
    )
