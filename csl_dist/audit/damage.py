"""Damage: what is not as it was written, from when it is found until it is made again.

Forgetting it takes its record away, so that the next command makes it again, from the same inputs
and so with the same bytes; until one has, `damage.json` tells of it.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from csl_dist.errors import VERIFY, DamagedError
from csl_dist.storage.paths import RunPaths
from csl_dist.storage.url import Storage


class Kind(StrEnum):
    """What a run root holds; each is made again by a command."""

    RUN = "run"
    FEATURES = "features"
    CHECKPOINTS = "checkpoints"
    TRAJECTORIES = "trajectories"
    SCORES = "scores"
    AUDITS = "audits"
    REVIEWS = "reviews"


REMADE_BY = {
    Kind.RUN: "the next command on the config writes it again",
    Kind.FEATURES: "`csl extract` makes the features of this video again",
    Kind.CHECKPOINTS: "`csl train` trains these epochs again",
    Kind.TRAJECTORIES: "`csl audit` predicts it again",
    Kind.SCORES: "`csl audit` scores it again",
    Kind.AUDITS: "`csl audit` makes a new audit",
    Kind.REVIEWS: "nothing can make decisions again: restore a copy, or try `sqlite3 … .recover`",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """Something that is not as it was written."""

    kind: Kind
    what: str
    """Names it, and what is wrong."""
    remade: str
    """What makes it again."""
    forget: Callable[[], bool | None] | None
    """Takes it away, so that it is made again; True where it is whole at once. None where nothing
    that is in the root can make it again."""
    is_removed: bool = False
    """Whether it was taken away before, and is not made again yet."""


def damage_of(
    kind: Kind, what: str, forget: Callable[[], bool | None] | None, remade: str | None = None
) -> Damage:
    """Damage of a kind, which the kind's own command makes again unless `remade` says otherwise."""
    what = what.replace(VERIFY, "")  # that is what is being done
    return Damage(kind=kind, what=what, remade=remade or REMADE_BY[kind], forget=forget)


def forget(root: str, found: Sequence[Damage]) -> list[Damage]:
    """Takes away what is damaged, and keeps a list of what is to be made again; what it took."""
    storage = Storage(root)
    taken = [damage for damage in found if damage.forget is not None and not damage.is_removed]
    waiting = _waiting(storage)
    _put_removed(storage, [*waiting, *taken])  # first: what a kill leaves undone is listed
    left = [damage for damage in taken if damage.forget is not None and not damage.forget()]
    _put_removed(storage, [*waiting, *left])
    return taken


def settle(root: Storage, kinds: Collection[Kind]) -> None:
    """All that a command makes of these kinds is there: none of them is to be made again."""
    _put_removed(root, [damage for damage in _waiting(root) if damage.kind not in kinds])


def removed(root: Storage) -> list[Damage]:
    """What was damaged, is gone, and is not made again yet."""
    if not root.exists(RunPaths.DAMAGE):
        return []
    return root.read_json(
        RunPaths.DAMAGE,
        lambda content: [
            Damage(
                kind=Kind(told["kind"]),
                what=told["what"],
                remade=told["remade"],
                forget=lambda: None,
                is_removed=True,
            )
            for told in content["removed"]
        ],
    )


def _waiting(root: Storage) -> list[Damage]:
    """The same; none where the list itself is damaged, as every stage plans its work anew."""
    try:
        return removed(root)
    except DamagedError:
        return []


def _put_removed(root: Storage, damages: Sequence[Damage]) -> None:
    told = {d.what: {"kind": d.kind, "what": d.what, "remade": d.remade} for d in damages}
    if told:
        root.put_json(RunPaths.DAMAGE, {"removed": list(told.values())})
    elif root.exists(RunPaths.DAMAGE):
        root.delete(RunPaths.DAMAGE)
