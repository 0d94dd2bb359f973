"""Which of a training's checkpoints an audit uses: the paper's sampling strategies."""

from collections.abc import Sequence
from typing import Literal, get_args

from csl_dist.errors import ConfigError, nearest

NamedStrategy = Literal["full", "every_2nd", "every_5th", "every_10th", "hybrid", "last"]
Strategy = NamedStrategy | tuple[int, ...]
"""A name, or the epochs themselves."""

STEPS = {"every_2nd": 2, "every_5th": 5, "every_10th": 10}
SWEEPS: tuple[NamedStrategy, ...] = ("every_10th", "every_5th", "every_2nd", "full")
"""What prediction in sweeps takes, one after the other."""


def known_strategy(value: object) -> object:
    """The value itself; ValueError where it is neither a strategy's name nor a list of epochs."""
    names = get_args(NamedStrategy)
    if isinstance(value, list | tuple):
        fits = len(value) > 0 and all(isinstance(epoch, int) and epoch >= 1 for epoch in value)
    else:
        fits = value in names
    if fits:
        return value
    raise ValueError(f"{value!r} is neither one of {', '.join(names)} nor a list of epochs")


def _named(strategy: str) -> str:
    """A strategy's name; ConfigError with the nearest one where there is none such."""
    names = get_args(NamedStrategy)
    if strategy not in names:
        raise ConfigError(f"there is no strategy {strategy!r}; {nearest(strategy, names)}")
    return strategy


def selected_epochs(epochs: Sequence[int], strategy: Strategy) -> list[int]:
    """The epochs that a strategy picks of those that there are, ascending; at least one.

    `every_2nd` takes epochs 2, 4, 6 … of 1, 2, 3 …; `hybrid` every 2nd in the first quarter and
    every 5th after it.
    """
    ordered = sorted(epochs)
    if isinstance(strategy, str):
        _named(strategy)
    if not ordered:
        return []
    if not isinstance(strategy, str):
        missing = sorted(set(strategy) - set(ordered))
        if missing:
            raise ConfigError(
                f"checkpoints: epochs {', '.join(map(str, missing))} are selected, but there are "
                f"only {ordered[0]} to {ordered[-1]}"
            )
        return sorted(set(strategy))
    if strategy == "full":
        return ordered
    picked: list[int] = []
    if strategy in STEPS:
        picked = _every(ordered, STEPS[strategy])
    elif strategy == "hybrid":
        quarter = len(ordered) // 4
        picked = [*_every(ordered[:quarter], 2), *_every(ordered[quarter:], 5)]
    # A training shorter than the step still has a last checkpoint.
    return picked or ordered[-1:]


def first_late(epochs: Sequence[int]) -> int:
    """Place of the first late one among ascending epochs, some of which may be lacking.

    Late are those of the later half of the training. Of 10 and 16 both are, where half of their
    number would be the last one alone.
    """
    return sum(2 * epoch <= epochs[-1] for epoch in epochs)


def swept_epochs(epochs: Sequence[int], sweep: int) -> set[int]:
    """Epochs that are done after a sweep and all before it; the last one is in the first."""
    picked = (selected_epochs(epochs, strategy) for strategy in SWEEPS[: sweep + 1])
    return set(sorted(epochs)[-1:]).union(*picked)


def _every(epochs: list[int], step: int) -> list[int]:
    return epochs[step - 1 :: step]
