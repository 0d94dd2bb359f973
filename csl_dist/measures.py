"""Names of the scores: what is measured, over which checkpoints, and how it is smoothed.

`margin_late_segment` is the margin over the later half of the checkpoints, smoothed by segment.
"""

from csl_dist.errors import nearest
from csl_dist.types import ErrorKind

LATE = "_late"
"""Over the later half of the selected checkpoints alone, by their number. By epoch, as what models
say of a frame (`strategies.first_late`), stored scores would be others where checkpoints lie
unevenly far apart, and every audit would have to be made anew."""

SMOOTHED = "_smoothed"
"""The paper's local mean over `score.window` frames."""

SEGMENT = "_segment"
"""A local mean that stops at changes of the label, averaged with the whole segment's mean."""

MEASURES = ("csl", "margin", "aum")
BASES = (*MEASURES, *(f"{name}{LATE}" for name in MEASURES), "final")
"""What is stored; smoothing is applied when a score is read."""

SUSPICION = "suspicion"
"""Of a frame: what speaks for a change of its step or of a boundary; by the rule `edits` alone."""
ORDER = "order"
"""Of a frame: what speaks for its step being out of order; by the rule `edits` alone."""
FRAME_SCORES = (SUSPICION, ORDER)

DECIDING = "deciding"
"""The score behind the flags of an audit, whichever it is."""

PAPERS_SCORE = f"csl{SMOOTHED}"

SMOOTHINGS = ("", SMOOTHED, SEGMENT)
SCORE_NAMES = tuple(f"{base}{smoothing}" for base in BASES for smoothing in SMOOTHINGS)


def base_and_smoothing(name: str) -> tuple[str, str]:
    """A score's name in two: what is stored, and the ending that says how it is smoothed."""
    for ending in (SMOOTHED, SEGMENT):
        if name.endswith(ending):
            return name.removesuffix(ending), ending
    return name, ""


def known_score(name: str) -> str:
    """The name itself; ValueError with the nearest one where there is no such score."""
    if name not in SCORE_NAMES:
        raise ValueError(f"there is no score {name!r}; {nearest(name, SCORE_NAMES)}")
    return name


def own_score(deciding: str, kind: str) -> str:
    """The score that a kind of error is judged by: order is a list of its own beside suspicion."""
    return ORDER if deciding == SUSPICION and kind == ErrorKind.DISORDER else deciding
