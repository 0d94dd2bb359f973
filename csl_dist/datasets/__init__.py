"""Datasets on disk, one module per layout."""

from csl_dist.config import DatasetConfig
from csl_dist.datasets.dataset import Dataset, LabelTrack, read_errors
from csl_dist.datasets.manifest import open_manifest

__all__ = ["Dataset", "LabelTrack", "open_dataset", "read_errors"]

_OPENERS = {"manifest": open_manifest}


def open_dataset(config: DatasetConfig) -> Dataset:
    """The dataset that a config names, by its layout."""
    return _OPENERS[config.layout](config)
