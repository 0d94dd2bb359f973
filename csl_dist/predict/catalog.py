"""Catalog: where every trajectory lies that an audit was made of, as one table.

Without it, whoever wants one frame has to ask which version of a video counts, then for its record
and its array's metadata. The catalog of an audit spares the next one these questions, too, for
all videos that did not change.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict

import pandas as pd

from csl_dist.predict.published import Location, Trajectory
from csl_dist.predict.trajectories import TrajectoryStore
from csl_dist.storage.paths import RunPaths
from csl_dist.storage.url import key_part
from csl_dist.storage.zarr import ArrayForm

Locations = Mapping[str, Mapping[str, Location]]
"""By scorer, then by `key_part` of the video."""


class TrajectoryCatalog:
    """Trajectories of some scorers, each read without asking where it lies; goes to workers."""

    def __init__(self, paths: RunPaths, locations: Locations):
        self.locations = locations
        self._stores = {scorer: TrajectoryStore(paths.scorer(scorer)) for scorer in locations}

    def __repr__(self) -> str:
        counts = {scorer: len(own) for scorer, own in self.locations.items()}
        return f"TrajectoryCatalog({counts})"

    def __call__(self, scorer: str, video: str) -> Trajectory:
        location = self.locations[scorer].get(key_part(video))
        return self._stores[scorer].trajectory(video, location)


def catalog_table(locations: Locations) -> pd.DataFrame:
    """A row a trajectory."""
    rows = [
        {
            "scorer": scorer,
            "part": part,
            **{name: getattr(location, name) for name in ("array", "fold", "fingerprint")},
            "epochs": json.dumps(location.epochs),
            "form": json.dumps(asdict(location.form)),
        }
        for scorer, own in locations.items()
        for part, location in own.items()
    ]
    return pd.DataFrame(rows)


def locations_in(table: pd.DataFrame) -> dict[str, dict[str, Location]]:
    """What `catalog_table` made a table of."""
    epochs = {text: tuple(json.loads(text)) for text in table.epochs.unique()}
    forms = {text: ArrayForm.from_json(json.loads(text)) for text in table.form.unique()}
    found: dict[str, dict[str, Location]] = {}
    for row in table.itertuples(index=False):
        found.setdefault(str(row.scorer), {})[str(row.part)] = Location(
            array=str(row.array),
            fold=int(row.fold),  # type: ignore[arg-type]
            epochs=epochs[str(row.epochs)],
            fingerprint=str(row.fingerprint),
            form=forms[str(row.form)],
        )
    return found
