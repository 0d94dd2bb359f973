"""The constants of the order score, in one place, so that a benchmark can choose them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderConstants:
    """How counts become scores of order.

    Chosen by `benchmarks/lint.py --choose` among the values that it lists. The figures that it
    prints for a dataset are by constants that were chosen on the other datasets; what stands here
    is the choice on all of them.
    """

    smoothing: float = 1.0
    """Added to each count of a transition over all videos."""
    back_off: float = 5.0
    """So many transitions of a procedure outweigh what all procedures together say."""
    context_back_off: float = 2.0
    """So many transitions after two certain steps outweigh those after the second of them."""
    least_violation: float = 1.0
    """Terms of precedence below it are dropped: a sum of many weak ones is noise."""
    repeats_for_swap: float = 0.25
    """Share of repeated segments from which a swap with a neighbour counts in full.

    Where each step comes once, pairwise precedence tells all about order and the few transitions
    that were seen tell little; where steps come again and again it is the other way round.
    """
    predictable: tuple[float, float] = (0.8, 0.9)
    """Mean probability of a transition from which a swap counts at all, and counts in full, without
    repeats: where one step nearly always follows another, a swap with a neighbour is telling."""
    precedence_given_up: float = 0.5
    """Share of precedence that a swap in full replaces."""


CONSTANTS = OrderConstants()
