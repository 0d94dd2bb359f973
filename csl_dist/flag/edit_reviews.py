"""Reviewed spans: what reviewers say of a finding, and whether the labels follow it by now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from csl_dist.flag.edits.lists import ListName
from csl_dist.types import IntArray

ReviewedSpan = tuple[str, int, int]
"""Video, start and stop."""
Change = tuple[int, int, str]
"""Start and stop of frames, and their right label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What reviewers agree on about a span."""

    is_error: bool
    is_order_alone: bool = False
    """Labels name what is to be seen, but the steps come in the wrong order."""
    changes: tuple[Change, ...] = ()
    """What puts it right; may be empty of an error in the order alone."""
    flagged: tuple[ListName, float] | None = None
    """The list of the flag that they looked at, and its log-odds of an error; None where these
    are not known."""

    def is_wrong(self, name: ListName, labels_T: IntArray, classes: Sequence[str]) -> bool | None:
        """Whether a finding of a list is right about the labels of a video as they are now.

        None where reviewers did not say.
        """
        if not self.is_error or self.is_corrected(labels_T, classes):
            return False
        return True if name is ListName.ORDER or not self.is_order_alone else None

    def is_corrected(self, labels_T: IntArray, classes: Sequence[str]) -> bool:
        """Whether labels are by now as the reviewers said."""
        if not self.changes or any(label not in classes for *_, label in self.changes):
            return False
        right_T = labels_T.copy()
        for start, stop, label in self.changes:
            right_T[start:stop] = classes.index(label)
        return bool((right_T == labels_T).all())

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Verdict":
        flagged = data["flagged"]
        return cls(
            **data
            | {
                "changes": tuple((start, stop, label) for start, stop, label in data["changes"]),
                "flagged": flagged and (ListName(flagged[0]), flagged[1]),
            }
        )


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


def corrected_log_odds(
    verdicts: Mapping[ReviewedSpan, Verdict],
    labels: Mapping[str, IntArray],
    classes: Sequence[str],
) -> dict[ListName, list[float]]:
    """Log-odds that errors had before they were corrected, by list.

    No finding tells of them any more; without them only what reviewers rejected would count.
    """
    found: dict[ListName, list[float]] = {name: [] for name in ListName}
    for (video, _, _), verdict in verdicts.items():
        if verdict.flagged and video in labels and verdict.is_corrected(labels[video], classes):
            name, log_odds = verdict.flagged
            found[name].append(log_odds)
    return found
