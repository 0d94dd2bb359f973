"""Verdicts of reviewers on spans: whether they still hold, and what they teach.

A verdict is about the labels that the reviewer saw. Once these are others, the place is open again,
and what is left of the verdict is that a flag of such evidence was right, or was not.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from csl_dist.flag.edits.lists import ListName
from csl_dist.types import UNLABELLED, IntArray, label_name, runs_of

ReviewedSpan = tuple[str, int, int]
"""Video, start and stop."""
NamedFrames = tuple[int, int, str]
"""Start and stop of frames, and their label; an empty one for none."""
Decisions = dict[ListName, list[tuple[float, bool]]]
"""By list, what evidence of an error findings had, as log-odds, and whether they were right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What reviewers agree on about a span."""

    is_error: bool
    is_order_alone: bool = False
    """Labels name what is to be seen, but the steps come in the wrong order."""
    changes: tuple[NamedFrames, ...] = ()
    """What puts it right; may be empty of an error in the order alone."""
    seen: tuple[NamedFrames, ...] | None = None
    """Labels of the span, and of all that would change; None where these are not known."""
    flagged: tuple[ListName, float] | None = None
    """The list of the flag that they looked at, and its evidence; None of what was not flagged."""

    def is_wrong(self, name: ListName, labels_T: IntArray, classes: Sequence[str]) -> bool | None:
        """Whether a finding of a list is right about the labels of a video as they are now.

        None where reviewers did not say.
        """
        if not self.is_open(labels_T, classes):
            return False if self._is_corrected(labels_T, classes) else None
        if self.flagged is not None and self.flagged[0] is not name:
            return None
        return self.is_error and not (self.is_order_alone and name is not ListName.ORDER)

    def is_open(self, labels_T: IntArray, classes: Sequence[str]) -> bool:
        """Whether labels are still those that the reviewers saw."""
        if self.seen is None:
            return not self._is_corrected(labels_T, classes)
        return all(_is_labelled(labels_T, frames, classes) for frames in self.seen)

    def _is_corrected(self, labels_T: IntArray, classes: Sequence[str]) -> bool:
        """Whether labels are by now as the reviewers said."""
        if not self.is_error or not self.changes:
            return False
        return all(_is_labelled(labels_T, frames, classes) for frames in self.changes)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Verdict":
        def frames(rows: Iterable[Sequence[Any]]) -> tuple[NamedFrames, ...]:
            return tuple((start, stop, label) for start, stop, label in rows)

        seen, flagged = data.get("seen"), data["flagged"]
        return cls(
            **data
            | {
                "changes": frames(data["changes"]),
                "seen": None if seen is None else frames(seen),
                "flagged": flagged and (ListName(flagged[0]), flagged[1]),
            }
        )


def named_frames(
    labels_T: IntArray, start: int, stop: int, classes: Sequence[str]
) -> tuple[NamedFrames, ...]:
    """Labels of frames [start, stop), by their names."""
    runs = [(start + run.start, start + run.stop) for run in runs_of(labels_T[start:stop])]
    return tuple((a, b, label_name(int(labels_T[a]), classes)) for a, b in runs)


def verdicts_from_json(rows: Sequence[Sequence[Any]]) -> dict[ReviewedSpan, Verdict]:
    """Verdicts of an audit; those of before the rule's fourth version have a label alone."""
    verdicts = {}
    for video, start, stop, said in rows:
        if isinstance(said, dict):
            verdict = Verdict.from_json(said)
        elif said is None:
            verdict = Verdict(is_error=False)
        else:
            verdict = Verdict(is_error=True, changes=((start, stop, said),))
        verdicts[video, start, stop] = verdict
    return verdicts


def earlier_decisions(
    verdicts: Mapping[ReviewedSpan, Verdict],
    labels: Mapping[str, IntArray],
    classes: Sequence[str],
) -> Decisions:
    """Decisions on flags whose labels are others by now, so that no finding tells of them.

    Without these, errors that are corrected would be forgotten, and only false flags would count.
    """
    found: Decisions = {name: [] for name in ListName}
    for (video, _, _), verdict in verdicts.items():
        if verdict.flagged and video in labels and not verdict.is_open(labels[video], classes):
            name, evidence = verdict.flagged
            found[name].append((evidence, verdict.is_error))
    return found


def _is_labelled(labels_T: IntArray, frames: NamedFrames, classes: Sequence[str]) -> bool:
    start, stop, name = frames
    if name and name not in classes:
        return False
    label = classes.index(name) if name else UNLABELLED
    return stop <= len(labels_T) and bool((labels_T[start:stop] == label).all())
