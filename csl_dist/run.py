"""Run: a configuration, its dataset, and where its results go; what every stage starts from."""

from dataclasses import dataclass

from csl_dist.config import RunConfig
from csl_dist.data.dataset import Dataset
from csl_dist.data.layouts import open_dataset
from csl_dist.storage.paths import RunPaths
from csl_dist.storage.url import Storage


@dataclass(frozen=True, slots=True)
class Run:
    """One configuration with the videos that it names and the root that it writes to."""

    config: RunConfig
    paths: RunPaths
    dataset: Dataset


def open_run(config: RunConfig) -> Run:
    """Reads the list of a dataset's videos; writes nothing. A label file is read once for all."""
    dataset = open_dataset(config.dataset).remembered()
    return Run(config, RunPaths(Storage(config.root)), dataset)


def feature_storage(config: RunConfig) -> Storage:
    """The feature store of a run: its own, or one that runs share."""
    shared = config.features.store
    return Storage(shared) if shared else RunPaths(Storage(config.root)).features
