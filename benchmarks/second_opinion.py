"""Findings in labels that nothing was planted in, judged beside an independent annotation.

COMPASS (github.com/UVA-DSA/COMPASS) labelled the same recordings of knot tying and needle passing
again: who holds the needle or thread when, as a consensus of three people. All findings of steps
with log-odds of at least -3, and as many low ones, were judged by it in one list that did not tell
which is which. `right`: the gesture that is labelled there is not what was done; `unclear`: the two
annotations do not decide it. Nothing of either dataset is kept here, only the verdicts.
"""

import csv
from functools import cache
from pathlib import Path
from typing import NamedTuple

VERDICTS = Path(__file__).with_name("second_opinion.csv")
FRAMES_PER_SECOND = 30
"""Of the frames that places are told in."""
SHARED = 0.5
"""Of the frames of two spans: from here on they are the same place."""


class Judged(NamedTuple):
    """A place in unchanged labels, in seconds, and whether the labels are wrong there."""

    start: float
    stop: float
    verdict: str


def verdict_of(dataset: str, video: str, start: float, stop: float) -> str | None:
    """`right`, `wrong` or `unclear` of a finding by its seconds; None where nobody looked."""
    for judged in _judged().get((dataset, video), ()):
        shared = min(stop, judged.stop) - max(start, judged.start)
        either = max(stop, judged.stop) - min(start, judged.start)
        if shared / either >= SHARED:
            return judged.verdict
    return None


@cache
def _judged() -> dict[tuple[str, str], list[Judged]]:
    found: dict[tuple[str, str], list[Judged]] = {}
    with VERDICTS.open(newline="") as file:
        for row in csv.DictReader(file):
            start, stop = (int(row[column]) / FRAMES_PER_SECOND for column in ("start", "stop"))
            judged = Judged(start, stop, row["verdict"])
            found.setdefault((row["dataset"], row["video"]), []).append(judged)
    return found
