"""The three lists of findings: steps, boundaries and order.

Each has a curve of its own from log-odds to probabilities, as planted errors of one list say
nothing about how often those of another are found.
"""

from enum import StrEnum

from csl_dist.types import EditKind


class ListName(StrEnum):
    STEPS = "steps"
    BOUNDARIES = "boundaries"
    ORDER = "order"


LIST_OF = {
    EditKind.RENAME: ListName.STEPS,
    EditKind.DELETE: ListName.STEPS,
    EditKind.INSERT: ListName.STEPS,
    EditKind.BOUNDARY: ListName.BOUNDARIES,
    EditKind.SWAP: ListName.ORDER,
}
