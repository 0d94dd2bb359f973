"""Conventions: a disagreement that is the same in most videos, of all or of one group.

A whole dataset, or one annotator, may draw a step otherwise than models expect. That is a question
of definition: it is told once, instead of flag by flag.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from csl_dist.data.segments import segments_of
from csl_dist.flag.edits.labelled import LabelledVideo
from csl_dist.flag.edits.lists import ListName
from csl_dist.types import UNLABELLED, Flag

LEAST_VIDEOS = 5
"""Of all videos, for a habit of the dataset."""
LEAST_SHARE = 0.4
"""Of the videos that have the step, or the transition."""
LEAST_GROUP_VIDEOS = 3
"""Of a group's, for a habit of the group."""
LEAST_GROUP_SHARE = 0.75
MOST_ELSEWHERE = 0.25
"""How much rarer it is in other groups than in the group whose habit it is."""


class Pattern(NamedTuple):
    """What flags of one convention have in common."""

    list: str
    label: str
    suggested: str
    direction: str
    """Of a boundary: `later` or `earlier`; empty for the others."""

    @property
    def transition(self) -> tuple[str, str]:
        """Of a boundary: the steps before and after it."""
        later = self.direction == "later"
        return (self.suggested, self.label) if later else (self.label, self.suggested)

    def able(self, having: Mapping[tuple[str, ...], set[str]]) -> set[str]:
        """Videos in which the pattern could occur, of those that have each step and transition."""
        match self.list:
            case ListName.STEPS:
                return having[(self.label,)]
            case ListName.BOUNDARIES:
                return having[self.transition]
            case _:
                return having[(self.label,)] & having[(self.suggested,)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Convention:
    """A habit of labelling that models disagree with."""

    list: str
    label: str
    suggested: str
    direction: str
    group: str | None
    """Whose habit it is; None: the whole dataset's."""
    places: int
    videos: int
    of: int
    """Videos that have the step or the transition, of the group or of all."""

    def sentence(self) -> str:
        whose = f" of {self.group}" if self.group is not None else ""
        where = f"in {self.videos} of {self.of} videos{whose} ({self.places} places)"
        pattern = Pattern(self.list, self.label, self.suggested, self.direction)
        match self.list:
            case ListName.STEPS:
                what = f"{self.label} is labelled where models see {self.suggested}"
            case ListName.BOUNDARIES:
                before, after = pattern.transition
                what = f"models see {before} change to {after} {self.direction} than labelled"
            case _:
                what = f"{self.label} comes before {self.suggested}, which is unusual elsewhere"
        return f"{where}, {what}: a question of definition, to be decided once"


def conventions_of(
    flags: Sequence[Flag], videos: Iterable[LabelledVideo], classes: Sequence[str]
) -> tuple[list[Convention], set[int]]:
    """Conventions among flags, most places first, and rows of the flags that belong to one."""
    groups, having = _where(videos, classes)
    rows: dict[Pattern, list[int]] = defaultdict(list)
    for i, flag in enumerate(flags):
        rows[pattern_of(flag)].append(i)
    found: list[Convention] = []
    members: set[int] = set()
    for pattern, own in rows.items():
        able = pattern.able(having)
        for group, kept in _habits(own, flags, able, groups):
            of = [v for v in able if group is None or groups[v] == group]
            found.append(
                Convention(
                    **pattern._asdict(),
                    group=group,
                    places=len(kept),
                    videos=len({flags[i].video for i in kept}),
                    of=len(of),
                )
            )
            members |= set(kept)
    return sorted(found, key=lambda c: (-c.places, c.label, c.suggested)), members


def pattern_of(flag: Flag) -> Pattern:
    direction = flag.fix.direction if flag.fix is not None else ""
    return Pattern(str(flag.list), flag.label, flag.suggested, direction)


def _habits(
    own: Sequence[int],
    flags: Sequence[Flag],
    able: set[str],
    groups: Mapping[str, str],
) -> list[tuple[str | None, list[int]]]:
    """Whose habit a pattern is, with its rows: the dataset's, that of some groups, or nobody's."""
    videos = {flags[i].video for i in own}
    if len(videos) >= max(LEAST_VIDEOS, LEAST_SHARE * len(able)):
        return [(None, list(own))]
    habits: list[tuple[str | None, list[int]]] = []
    for group in sorted({groups[v] for v in videos}):
        mine = [i for i in own if groups[flags[i].video] == group]
        seen = {flags[i].video for i in mine}
        could = {v for v in able if groups[v] == group}
        elsewhere = len(videos - seen) / max(1, len(able - could))
        share = len(seen) / max(1, len(could))
        if (
            len(seen) >= max(LEAST_GROUP_VIDEOS, LEAST_GROUP_SHARE * len(could))
            and elsewhere <= MOST_ELSEWHERE * share
        ):
            habits.append((group, mine))
    return habits


def _where(
    videos: Iterable[LabelledVideo], classes: Sequence[str]
) -> tuple[dict[str, str], dict[tuple[str, ...], set[str]]]:
    """Groups by video, and the videos that have each step and each transition."""
    groups: dict[str, str] = {}
    having: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for video in videos:
        groups[video.id] = video.group
        segments = segments_of(video.labels_T)
        for segment in segments:
            if segment.label != UNLABELLED:
                having[(classes[segment.label],)].add(video.id)
        for first, second in pairwise(segments):
            if UNLABELLED not in (first.label, second.label):
                having[classes[first.label], classes[second.label]].add(video.id)
    return groups, having
