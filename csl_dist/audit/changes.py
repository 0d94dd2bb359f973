"""What changed from one audit of a run to another: in what it was made from, and in its flags."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from csl_dist.audit.reader import Audit
from csl_dist.audit.revision import AuditStore
from csl_dist.audit.seen import SeenLabels
from csl_dist.config import config_as_dict
from csl_dist.flag.record import AuditRecord
from csl_dist.storage.paths import RunPaths
from csl_dist.storage.run_file import read_run_file
from csl_dist.storage.url import Storage
from csl_dist.types import Span, Split, Video
from csl_dist.words import counted

MAX_NAMED = 3
"""Settings that a line names one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditLine:
    """One audit in the list of all."""

    number: int
    created: float
    num_videos: int
    num_flags: int
    changes: tuple[str, ...]
    """Since the audit before, in words."""


def audit_lines(root: str) -> list[AuditLine]:
    """Every finished audit of a run, the first first."""
    read_run_file(root)
    store = AuditStore(RunPaths(Storage(root)))
    lines: list[AuditLine] = []
    before: _Made | None = None
    for number, record in store.records().items():
        videos = store.videos(number)
        made = _Made(record=record, videos=videos, seen=partial(store.seen, number))
        rests_on = () if record.sweep is None else (record.sweep.sentence(),)
        lines.append(
            AuditLine(
                number=number,
                created=record.created,
                num_videos=sum(video.split is Split.AUDIT for video in videos),
                num_flags=len(store.flags(number)),
                changes=_changes(before, made) if before else rests_on,
            )
        )
        before = made
    return lines


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    """What an audit was made from."""

    record: AuditRecord
    videos: list[Video]
    seen: Callable[[], SeenLabels | None]
    """Its labels, which are read where they are asked for."""

    def num_labelled_as(self, other: "_Made", videos: Iterable[str]) -> int:
        """Videos that have the same labels in both; none where one of them does not say."""
        own, others = self.seen(), other.seen()
        if own is None or others is None:
            return 0
        shared = [video for video in videos if video in own and video in others]
        return sum(np.array_equal(own.labels(v), others.labels(v)) for v in shared)


def _changed_labels(before: _Made, after: _Made) -> list[str]:
    """Whose labels an audit saw: corrected ones, or the dataset's own, which may be these too."""
    old, new = before.record, after.record
    if new.corrects is not None:
        return [f"labels that correct audit {new.corrects}"]
    if old.corrects is None:
        return []
    kept = after.num_labelled_as(before, old.labels)
    if not kept:
        return ["the dataset's own labels again"]
    words = [f"corrected labels of {counted(kept, 'video')}, now the dataset's own"]
    if left := len(old.labels) - kept:
        words.append(f"the dataset's own labels of {counted(left, 'video')} again")
    return words


def _changes(before: _Made, after: _Made) -> tuple[str, ...]:
    old, new, old_videos, new_videos = before.record, after.record, before.videos, after.videos
    words = _changed_labels(before, after)
    if new.sweep is not None:
        words.append(new.sweep.sentence())
    elif old.sweep is not None:
        words.append("rests on all checkpoints")
    settings = _changed_settings(config_as_dict(old.config), config_as_dict(new.config))
    words += settings[:MAX_NAMED]
    if len(settings) > MAX_NAMED:
        words.append(f"{counted(len(settings) - MAX_NAMED, 'more setting')}")
    if old.classes != new.classes:
        words.append("classes")
    old_ids, new_ids = ({video.id for video in videos} for videos in (old_videos, new_videos))
    for what, ids in (("new", new_ids - old_ids), ("removed", old_ids - new_ids)):
        if ids:
            words.append(counted(len(ids), f"{what} video"))
    changed = {
        video
        for scorer, made in new.scores.items()
        for video, version in made.items()
        if old.scores.get(scorer, {}).get(video, version) != version
    }
    if changed:
        words.append(f"scores of {counted(len(changed), 'video')}")
    if old.rule_version != new.rule_version and old.config.flag.rule == new.config.flag.rule:
        words.append("the rule of another version of csl_dist")
    if new.num_reviewed and old.num_reviewed != new.num_reviewed:
        earlier = "" if old.num_reviewed is None else f", {old.num_reviewed} before"
        words.append(f"decisions on {counted(new.num_reviewed, 'span')}{earlier}")
    return tuple(words) or ("known errors, skipped checkpoints, or decisions of reviewers",)


def _changed_settings(old: Mapping[str, Any], new: Mapping[str, Any], where: str = "") -> list[str]:
    """Settings that differ, as `section.key old → new`; the run's root is no setting."""
    words = []
    for key in dict.fromkeys([*new, *old]):  # what is gone is a change, too
        name, before, after = f"{where}{key}", old.get(key), new.get(key)
        if isinstance(before, dict) and isinstance(after, dict):
            words += _changed_settings(before, after, f"{name}.")
        elif before != after and name != "root":
            words.append(f"{name} {before} → {after}")
    return words


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagChanges:
    """How the flags of two audits differ."""

    came: pd.DataFrame
    went: pd.DataFrame
    moved: pd.DataFrame
    """Flags that overlap one of before and have other ends, kind or suggestion."""
    num_same: int


def flag_changes(before: Audit, after: Audit) -> FlagChanges:
    """Compares two audits flag by flag; flags that share frames are one that moved."""
    old, new = before.flags(), after.flags()
    partner = {row.Index: _most_shared(row, old) for row in new.itertuples()}
    same, moved = 0, []
    for row in new.itertuples():
        match = partner[row.Index]
        if match is None:
            continue
        was = old.loc[match]
        if all(getattr(row, name) == was[name] for name in COMPARED):
            same += 1
        else:
            moved.append(
                {"video": row.video, "label": row.label}
                | {f"{name} before": was[name] for name in COMPARED}
                | {f"{name} now": getattr(row, name) for name in COMPARED}
            )
    return FlagChanges(
        came=new[[partner[i] is None for i in new.index]],
        went=old[[_most_shared(row, new) is None for row in old.itertuples()]],
        moved=pd.DataFrame(moved),
        num_same=same,
    )


COMPARED = ("start", "stop", "kind", "suggested")


def _most_shared(row: Any, others: pd.DataFrame) -> Any | None:
    """The index of the flag of the same video that shares most frames with one, if any does."""
    span = Span(int(row.start), int(row.stop))
    own = others[others.video == row.video]
    shared = own.stop.clip(upper=span.stop) - own.start.clip(lower=span.start)
    return shared.idxmax() if (shared > 0).any() else None
