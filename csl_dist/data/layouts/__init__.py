"""Datasets on disk, one module per layout.

A layout is a function from the config to a Dataset. It reads the list of videos and collects what
is wrong with it; label files are read later, one by one.
"""

from typing import Protocol

from csl_dist.config import DatasetConfig
from csl_dist.data.dataset import FORM_ERRORS, Dataset, Fold, KnownSegment, read_errors
from csl_dist.data.layouts.activitynet import open_activitynet
from csl_dist.data.layouts.cholec80 import open_cholec80
from csl_dist.data.layouts.egoper import open_egoper
from csl_dist.data.layouts.manifest import open_manifest
from csl_dist.data.layouts.mstcn import open_mstcn
from csl_dist.data.splits import with_splits
from csl_dist.errors import DataError

__all__ = ["Dataset", "Fold", "KnownSegment", "open_dataset", "read_dataset", "read_errors"]


class Layout(Protocol):
    """What every layout's module offers."""

    def __call__(self, config: DatasetConfig) -> Dataset: ...


LAYOUTS: dict[str, Layout] = {
    "manifest": open_manifest,
    "cholec80": open_cholec80,
    "egoper": open_egoper,
    "mstcn": open_mstcn,
    "activitynet": open_activitynet,
}


def read_dataset(config: DatasetConfig) -> Dataset:
    """The dataset that a config names, with the problems in its list of videos."""
    try:
        dataset = LAYOUTS[config.layout](config)
    except FORM_ERRORS as error:
        raise DataError(
            f"{config.path} does not have the form of the {config.layout} layout "
            f"({type(error).__name__}: {error})"
        ) from error
    return with_splits(dataset, config)


def open_dataset(config: DatasetConfig) -> Dataset:
    """The same, refused where the list of videos has problems."""
    dataset = read_dataset(config)
    if dataset.problems:
        more = len(dataset.problems) - 1
        rest = f" (and {more} more problems; `csl check` lists them)" if more else ""
        raise DataError(dataset.problems[0] + rest)
    if not dataset.videos:
        raise DataError(f"{config.path} holds no videos")
    return dataset
