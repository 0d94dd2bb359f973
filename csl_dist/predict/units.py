"""Units of prediction: one checkpoint on one group of videos of like length.

Groups follow from the videos' lengths alone, never from the number of workers, so that any cluster
produces the same bytes.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, zip_longest

from csl_dist.predict.trajectories import Group
from csl_dist.storage.ledger import Unit
from csl_dist.training.checkpoints import CheckpointInfo
from csl_dist.types import Annotation, fingerprint

LENGTH_RATIO = 1.2
"""Lengths of videos in one group differ by at most about this factor, which bounds padding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictUnit:
    """One checkpoint to be evaluated on one group of videos."""

    checkpoint: CheckpointInfo
    group: Group
    numbers: str
    """Type of the log-probabilities, and whether they are computed fast."""

    @property
    def unit(self) -> Unit:
        """Its record: the name tells the place, the fingerprint all that went in."""
        name = f"{self.group.key}/{self.checkpoint.name}"
        made_from = fingerprint(self.checkpoint.content_hash, self.group.fingerprint, self.numbers)
        return Unit(name, made_from)


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictSlice:
    """Units that go together: of one checkpoint, so that it is loaded once; or of one group that
    is decoded as it is read, so that this is done once for many checkpoints."""

    scorer: str
    units: tuple[PredictUnit, ...]
    batch_frames: int
    """Most frames in one forward pass."""

    @property
    def checkpoint(self) -> CheckpointInfo:
        """The only one, or the first; all are of one model and fold."""
        return self.units[0].checkpoint

    @property
    def num_frames(self) -> int:
        return sum(unit.group.num_frames for unit in self.units)


def split_slices(slices: Sequence[PredictSlice], at_least: int) -> list[PredictSlice]:
    """Halves the largest slices until there are enough for all workers, or nothing to halve."""
    parts = list(slices)
    while len(parts) < at_least:
        divisible = [part for part in parts if len(part.units) > 1]
        if not divisible:
            break
        largest = max(divisible, key=lambda part: part.num_frames)
        parts.remove(largest)
        # Every other unit: groups are ordered by length, and halves shall be alike.
        parts += [replace(largest, units=largest.units[i::2]) for i in (0, 1)]
    return parts


def spread_over_groups(slices: Sequence[PredictSlice], num_workers: int) -> list[PredictSlice]:
    """An order in which workers begin with different groups, whose features each decodes once.

    So many groups at a time, since the features of a few stay in memory.
    """
    by_group = [list(own) for _, own in groupby(slices, key=lambda part: part.units[0].group)]
    spread: list[PredictSlice] = []
    for first in range(0, len(by_group), num_workers):
        turns = zip_longest(*by_group[first : first + num_workers])
        spread += [part for turn in turns for part in turn if part is not None]
    return spread


def row_of(checkpoint: CheckpointInfo, features: str, num_frames: int, numbers: str) -> str:
    """Fingerprint of one video's row, which other videos of its group have no part in."""
    return fingerprint(checkpoint.content_hash, features, num_frames, numbers)


def plan_groups(
    annotations: Sequence[Annotation],
    features: Mapping[str, str],
    *,
    fold: int,
    group_frames: int,
) -> list[Group]:
    """Videos of like length together, up to `group_frames` frames a group."""
    classes: dict[int, list[Annotation]] = {}
    for annotation in sorted(annotations, key=lambda a: a.video):
        classes.setdefault(length_class(annotation.num_frames), []).append(annotation)
    return [
        Group(
            fold=fold,
            videos=tuple(a.video for a in group),
            lengths=tuple(a.num_frames for a in group),
            features=tuple(features[a.video] for a in group),
        )
        for _, members in sorted(classes.items())
        for group in _filled(members, group_frames)
    ]


def length_class(num_frames: int) -> int:
    """Equal for lengths that differ by at most about a fifth."""
    return round(math.log(num_frames) / math.log(LENGTH_RATIO))


def _filled(members: list[Annotation], group_frames: int) -> Iterator[list[Annotation]]:
    """Cuts members into groups of at most so many frames, unless one alone has more."""
    group: list[Annotation] = []
    for annotation in members:
        if group and sum(a.num_frames for a in group) + annotation.num_frames > group_frames:
            yield sorted(group, key=lambda a: (a.num_frames, a.video))
            group = []
        group.append(annotation)
    yield sorted(group, key=lambda a: (a.num_frames, a.video))
