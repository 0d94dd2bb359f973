"""Ready-made feature files: npy, HDF5, Zarr or text, either way round.

A file may hold (T, D) or (D, T). Which of the two is told by the number of frames that the labels
lead one to expect; a file that fits neither is refused.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from csl_dist.arrays import open_array
from csl_dist.errors import CslError, DataError
from csl_dist.storage import Storage

SUFFIXES = (".npy", ".h5", ".hdf5", ".zarr", ".txt")
PICKLE_SUFFIXES = (".pkl", ".pickle", ".pt", ".pth")
TRIM_SHARE = 0.05
"""With `length_mismatch: trim`, lengths may differ by this share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureFile:
    """A feature file whose orientation is known."""

    path: str
    """`file.h5#name` names an array inside a file."""
    num_frames: int
    width: int
    frames_last: bool
    """True for (D, T), as MS-TCN stores them."""

    def read(self) -> npt.NDArray[np.float32]:
        """Features (T, D)."""
        with open_features(self.path) as array:
            values = np.asarray(array[:], dtype=np.float32)
        return np.ascontiguousarray(values.T if self.frames_last else values)


def inspect(path: str, num_expected: int, *, trim: bool = False) -> FeatureFile:
    """Finds out the orientation of a file, from its shape alone."""
    with open_features(path) as array:
        shape = tuple(array.shape)
    if len(shape) != 2:
        raise DataError(f"{path}: features must have two axes, frames and width, but are {shape}")
    slack = max(1, round(num_expected * TRIM_SHARE)) if trim else 0
    misfit = [abs(size - num_expected) for size in shape]
    if min(misfit) > slack:
        raise DataError(
            f"{path}: features are {shape[0]:,} x {shape[1]:,}, but the labels have "
            f"{num_expected:,} frames, which fits neither axis; correct the file, its fps, or set "
            "dataset.length_mismatch: trim"
        )
    frames_last = misfit[1] < misfit[0]
    num_frames, width = shape[::-1] if frames_last else shape
    return FeatureFile(path=path, num_frames=num_frames, width=width, frames_last=frames_last)


@contextmanager
def open_features(path: str) -> Iterator[Any]:
    """The array in a file, not yet read where the format allows that."""
    file, _, name = path.partition("#")
    suffix = Path(file).suffix.lower()
    if suffix in PICKLE_SUFFIXES:
        raise DataError(
            f"{file} is a pickle, and reading it would run the code inside; convert it: "
            "np.save('features.npy', np.asarray(array, dtype='float32'))"
        )
    if suffix not in SUFFIXES:
        raise DataError(f"{file} is no feature file; expected one of {', '.join(SUFFIXES)}")
    if not Path(file).exists():
        raise DataError(f"the feature file {file} does not exist")
    try:
        if suffix == ".npy":
            yield np.load(file, mmap_mode="r", allow_pickle=False)
        elif suffix == ".txt":
            yield np.loadtxt(file, dtype=np.float32, ndmin=2)
        elif suffix == ".zarr":
            yield open_array(Storage(file), name)
        else:
            with h5py.File(file) as content:
                yield content[name or _only_array(content, file)]
    except CslError:
        raise
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{path} can't be read as features: {error}") from error


def _only_array(content: h5py.File, file: str) -> str:
    names: list[str] = []
    content.visititems(
        lambda name, item: names.append(name) if getattr(item, "ndim", 0) == 2 else None
    )
    if len(names) != 1:
        raise DataError(
            f"{file} holds {len(names)} two-axis arrays; name one as {file}#name "
            f"({', '.join(names[:4])})"
        )
    return names[0]
