"""What has been done: one small record per unit of work, written after the unit's data.

A unit is done if and only if its record is there. The record's name holds the fingerprint of all
that went into the unit, so one listing tells what is left to do, and a changed input makes a unit
undone by itself. Before data is overwritten, records of its other versions are retired: otherwise
going back to earlier inputs would find a record whose data is gone.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from csl_dist.storage.requests import at_once
from csl_dist.storage.url import Storage

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece of work: its name (`/` allowed) and the fingerprint of its inputs."""

    name: str
    fingerprint: str


class Ledger:
    """The records of one kind of unit, below one key."""

    def __init__(self, storage: Storage):
        self._storage = storage

    def __repr__(self) -> str:
        return f"Ledger({self._storage.url!r})"

    def done(self, folder: str = "") -> set[Unit]:
        """Every unit on record, or those whose names lie in a folder; a single listing."""
        keys = (key.removesuffix(".json") for key in self._storage.list_keys(folder))
        return {Unit(*key.rsplit("@", 1)) for key in keys if "@" in key}

    def has(self, unit: Unit) -> bool:
        """Whether one unit is on record; for many, `done` takes fewer requests."""
        return self._storage.exists(self._key(unit))

    def write(self, unit: Unit, **facts: Any) -> None:
        """Records a unit as done; call it after the unit's data is written."""
        self._storage.put_json(self._key(unit), facts)

    def read(self, unit: Unit, build: Callable[[dict[str, Any]], Result]) -> Result:
        """What `build` makes of the facts recorded with a unit."""
        return self._storage.read_json(self._key(unit), build)

    def retire(self, units: Iterable[Unit], folder: str = "") -> None:
        """Deletes the records of other versions of these units, whose data is about to go."""
        current = set(units)
        names = {unit.name for unit in current}
        self.forget(u for u in self.done(folder) if u.name in names and u not in current)

    def forget(self, units: Iterable[Unit]) -> None:
        at_once(self._storage.delete, map(self._key, units))

    @staticmethod
    def _key(unit: Unit) -> str:
        return f"{unit.name}@{unit.fingerprint}.json"
