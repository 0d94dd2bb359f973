"""When more checkpoints would change little: the top of the list is settled."""

from typing import Any

import pandas as pd

from csl_dist.flag.edits.lists import ListName

TOP = 50
"""Flags that are compared, worst first."""
MOST_CHANGED = 0.1
"""Share of them that may have no like in the other list."""
FEW = 2
"""So many may always: of a short list a tenth is less than one."""
EVEN = 0.6
"""Probability below which a flag is about as likely right as wrong, and may come and go."""


def is_settled(before: pd.DataFrame, now: pd.DataFrame) -> bool:
    """Whether two lists of flags, worst first, have about the same top.

    At most a tenth of the first 50 flags of either list, or two, have no like among the first 50 of
    the other; flags are alike that lie in one video and share half of the frames of the longer one.
    A change of flags that are no more than even is none. Order is left out: it rests on labels
    alone, which are the same in both.
    """
    before, now = (flags[flags.list != ListName.ORDER] for flags in (before, now))
    return all(
        num_changed(_likely(first), second) <= max(FEW, MOST_CHANGED * len(first.head(TOP)))
        for first, second in ((before, now), (now, before))
    )


def _likely(flags: pd.DataFrame) -> pd.DataFrame:
    """Those of the first flags that have no probability, or one that is more than even."""
    top = flags.head(TOP)
    return top[~(top.probability < EVEN)]


def num_changed(flags: pd.DataFrame, others: pd.DataFrame) -> int:
    """How many of the first flags have no like among the first of another list."""
    top, other_top = flags.head(TOP), others.head(TOP)
    by_video: dict[str, list[Any]] = {}
    for flag in other_top.itertuples():
        by_video.setdefault(str(flag.video), []).append(flag)
    return sum(
        not any(_alike(flag, other) for other in by_video.get(str(flag.video), ()))
        for flag in top.itertuples()
    )


def _alike(a: Any, b: Any) -> bool:
    shared = min(a.stop, b.stop) - max(a.start, b.start)
    return bool(shared >= max(a.stop - a.start, b.stop - b.start) / 2)
