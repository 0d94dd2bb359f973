"""Ready-made feature files: npy, HDF5, Zarr or text, either way round.

A file may hold (T, D) or (D, T). Which of the two is told by the number of frames that the labels
lead one to expect; a file that fits neither is refused.
"""

import io
import math
import threading
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tokenize import TokenError
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from csl_dist.data.content import Contents, Shape
from csl_dist.data.dataset import FORM_ERRORS
from csl_dist.data.media.sources import FEATURE_SUFFIXES, PICKLE_SUFFIXES, file_and_array
from csl_dist.data.text import require_file
from csl_dist.data.tracks import TRIM_SHARE
from csl_dist.errors import CslError, DataError
from csl_dist.storage.files import exists, is_url, open_file, read_bytes
from csl_dist.storage.requests import at_once
from csl_dist.storage.url import Storage
from csl_dist.storage.zarr import open_array, read_array
from csl_dist.types import fingerprint

NUMPY_HEADER_LOCK = threading.Lock()
"""NumPy parses a file's header as Python source, and Python 3.11 miscounts its parser's depth when
two threads parse at once: a SystemError now and then."""

UNREADABLE = (*FORM_ERRORS, BadZipFile, EOFError, SyntaxError, TokenError)
"""What reading a file of another form raises; NumPy opens what begins as a zip file as one."""
SAVE_NUMBERS = "np.save('features.npy', np.asarray(array, dtype='float32'))"
NO_NUMBERS = (
    "it is no array of numbers as np.save writes one, and unpickling anything else would run the "
    f"code inside; make it again: {SAVE_NUMBERS}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureFile:
    """A feature file whose orientation is known."""

    path: str
    """`file.h5#name` names an array inside a file."""
    num_frames: int
    width: int
    frames_last: bool
    """True for (D, T), as MS-TCN stores them."""

    def read(self) -> npt.NDArray[np.floating[Any]]:
        """Features (T, D), in float16 where the file is, else in float32.

        DataError where one of them is not a number.
        """
        with open_features(self.path) as array:
            values = np.asarray(array[:])
            if values.dtype != np.float16:
                values = values.astype(np.float32, copy=False)
        if not np.isfinite(values).all():
            frame = int(np.argwhere(~np.isfinite(values))[0][1 if self.frames_last else 0])
            raise DataError(
                f"{self.path}: the features of frame {frame} are NaN or infinite; a model can't "
                "learn from these, make the file again"
            )
        return np.ascontiguousarray(values.T if self.frames_last else values)


def inspect(
    path: str,
    expected: tuple[int, int],
    *,
    width: int | None = None,
    shape: Shape | None = None,
) -> FeatureFile:
    """Finds out the orientation of a file, from its shape alone, which is read unless given.

    `expected` are the fewest and most frames that go with the labels. Where both ways round fit,
    the axis that has the `width` of the other files is the width.
    """
    shape = shape or feature_shape(path)
    fewest, most = expected
    fits = [fewest <= size <= most for size in shape]
    if not any(fits):
        frames = f"{fewest:,}" if fewest == most else f"{fewest:,} or more"
        raise DataError(
            f"{path}: features are {shape[0]:,} x {shape[1]:,}, but the labels have {frames} "
            "frames, which fits neither axis; correct the file, its fps, or set "
            "dataset.length_mismatch: trim"
        )
    frames_last = fits[1] and not fits[0]
    if all(fits) and shape[0] != shape[1] and width in shape:
        frames_last = shape[0] == width
    num_frames, found = shape[::-1] if frames_last else shape
    return FeatureFile(path=path, num_frames=num_frames, width=found, frames_last=frames_last)


def inspect_all(
    paths: dict[str, str],
    expected: dict[str, tuple[int, int]],
    *,
    frames_last: bool,
    trim: bool,
    contents: Contents | None = None,
) -> tuple[dict[str, FeatureFile], dict[str, DataError]]:
    """Files whose orientation is settled together, and what is wrong with the others, by video.

    A file that fits both ways, such as a square one, lies as most others do, or as its layout has
    it (`frames_last`). Two videos whose labels fit each other's file share one sentence.
    """
    found = dict(zip(paths, at_once(partial(_known_shape, contents), paths.values()), strict=True))
    shapes = {video: shape for video, shape in found.items() if not isinstance(shape, DataError)}
    problems = {video: error for video, error in found.items() if isinstance(error, DataError)}
    sizes = Counter(size for shape in shapes.values() for size in set(shape))
    width = sizes.most_common(1)[0][0] if len(shapes) > 1 else None
    files: dict[str, FeatureFile] = {}
    for video in shapes:
        try:
            files[video] = inspect(
                paths[video],
                slackened(expected[video], trim),
                width=width,
                shape=shapes[video],
            )
        except DataError as error:
            problems[video] = error
    unfit = {video: shape for video, shape in shapes.items() if video in problems}
    for pair in _exchanged(unfit, expected):
        problems |= dict.fromkeys(pair, _exchange_error(pair, paths, expected))
    sure = [f.frames_last for v, f in files.items() if shapes[v][0] != shapes[v][1]]
    usual = sum(sure) > len(sure) / 2 if sure else frames_last
    for video, file in files.items():
        if shapes[video][0] == shapes[video][1]:
            files[video] = replace(file, frames_last=usual)
    return files, problems


def _exchanged(
    shapes: Mapping[str, Shape], expected: Mapping[str, tuple[int, int]]
) -> Iterator[tuple[str, str]]:
    """Pairs of videos that fit no labels but each other's, of those that do not fit their own."""
    of_size: dict[int, list[str]] = defaultdict(list)
    for video, shape in shapes.items():
        for size in set(shape):
            of_size[size].append(video)
    fitting = {v: [other for n in set(expected[v]) for other in of_size[n]] for v in shapes}
    only = {video: others[0] for video, others in fitting.items() if len(others) == 1}
    for first, second in only.items():
        if first < second and only.get(second) == first:
            yield first, second


def _exchange_error(
    pair: tuple[str, str], paths: Mapping[str, str], expected: Mapping[str, tuple[int, int]]
) -> DataError:
    first, second = pair
    return DataError(
        f"the labels of {first!r} ({expected[first][0]:,} frames) are as long as the features of "
        f"{second!r} ({paths[second]}), and those of {second!r} ({expected[second][0]:,} frames) "
        f"as the features of {first!r} ({paths[first]}): were the two label files exchanged? "
        "Exchange them back, or correct the files"
    )


def _known_shape(contents: Contents | None, source: str) -> Shape | DataError:
    """The shape of an array, from what is known of its file where it is; or what is wrong."""
    file, _ = file_and_array(source)
    try:
        # A Zarr array is a folder, whose time does not tell what is below.
        if contents is None or file.endswith(".zarr"):
            return feature_shape(source)
        return contents.shape(source, file, feature_shape)
    except DataError as error:
        return error


def slackened(expected: tuple[int, int], trim: bool) -> tuple[int, int]:
    """The range of lengths that trimming accepts."""
    if not trim:
        return expected
    fewest, most = expected
    return math.floor(fewest * (1 - TRIM_SHARE)), math.ceil(most * (1 + TRIM_SHARE))


def feature_shape(path: str) -> Shape:
    with open_features(path) as array:
        shape = tuple(array.shape)
    if len(shape) != 2:
        raise DataError(f"{path}: features must have two axes, frames and width, but are {shape}")
    return shape[0], shape[1]


def feature_content(source: str, contents: Contents) -> str:
    """Changes with what is in a feature file; a Zarr array is a folder of files."""
    path, name = file_and_array(source)
    if path.endswith(".zarr"):
        return contents.of_folder(f"{path}/{name}" if name else path)
    return fingerprint(contents.of_file(path), name)


@contextmanager
def open_features(path: str) -> Iterator[Any]:
    """The array in a file, not yet read where the format allows that."""
    file, name = file_and_array(path)
    suffix = Path(file).suffix.lower()
    if suffix in PICKLE_SUFFIXES:
        raise DataError(
            f"{file} is a pickle, and reading it would run the code inside; convert it: "
            f"{SAVE_NUMBERS}"
        )
    if suffix not in FEATURE_SUFFIXES:
        raise DataError(f"{file} is no feature file; expected one of {', '.join(FEATURE_SUFFIXES)}")
    if not exists(file):
        raise DataError(f"the feature file {file} does not exist")
    require_file(file)
    try:
        if suffix == ".npy":
            with NUMPY_HEADER_LOCK:
                array = _RemoteArray(file) if is_url(file) else np.load(file, mmap_mode="r")
            yield array
        elif suffix == ".txt":
            with open_file(file) as text, warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a file without numbers: it has no frames
                array = np.loadtxt(text, dtype=np.float32, ndmin=2)
            yield array
        elif suffix == ".zarr":
            yield _ZarrFile(Storage(file), name)
        else:
            import h5py  # only these files need it

            with open_file(file) as opened, h5py.File(opened) as content:
                yield content[name or _only_array(content, file)]
    except CslError:
        raise
    except (*UNREADABLE, OSError, RuntimeError) as error:
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        if suffix == ".npy" and not _holds_numbers(file):
            reason = NO_NUMBERS  # NumPy's own words advise to unpickle it
        raise DataError(f"{path} can't be read as features: {reason}") from error


class _ZarrFile:
    """A Zarr array, which need not be opened to be read as a whole."""

    def __init__(self, storage: Storage, name: str):
        self._storage = storage
        self._name = name

    @property
    def shape(self) -> tuple[int, ...]:
        return open_array(self._storage, self._name, any_format=True).shape

    def __getitem__(self, selection: slice) -> npt.NDArray[Any]:
        return read_array(self._storage, self._name, any_format=True)[selection]


def _holds_numbers(file: str) -> bool:
    """Whether a .npy file begins as one with numbers; others hold Python objects, or anything."""
    try:
        with NUMPY_HEADER_LOCK:
            return not _npy_header(file)[1].hasobject
    except UNREADABLE:
        return False


def _npy_header(file: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """The shape and type of the array in a .npy file."""
    with open_file(file) as opened:
        version = np.lib.format.read_magic(opened)
        read = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, _, dtype = read(opened)
    return shape, dtype


class _RemoteArray:
    """A .npy file at a URL: its shape is read alone, its values when they are asked for."""

    def __init__(self, url: str):
        self._url = url
        self.shape = _npy_header(url)[0]

    def __getitem__(self, index: slice) -> npt.NDArray[Any]:
        values: npt.NDArray[Any] = np.load(io.BytesIO(read_bytes(self._url)), allow_pickle=False)
        return values[index]


def _only_array(content: Any, file: str) -> str:
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
