"""Frame scores of other methods, one file a video, to be measured and drawn beside ours.

`VIDEO.npy` holds a score (T,) for every sampled frame. `VIDEO.csv` has a column `score`, a line for
every sampled frame, or also a column `seconds`: then each frame gets the score nearest in time,
whatever the rate. Higher is more suspicious.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from csl_dist.errors import ConfigError, DataError
from csl_dist.types import UNLABELLED, Annotation, FloatArray

BroughtScores = dict[str, dict[str, FloatArray]]
"""Scores (T,) by the method's name, then video; NaN on frames without a label."""


def named_folders(options: Sequence[str]) -> dict[str, Path]:
    """`NAME=DIR` options as folders by name."""
    folders: dict[str, Path] = {}
    for option in options:
        name, equals, folder = option.partition("=")
        if not (equals and name and folder):
            raise ConfigError(f"--scores {option!r} must have the form NAME=DIR")
        if name in folders:
            raise ConfigError(f"--scores: {name!r} is given twice; give each method its own name")
        if not Path(folder).is_dir():
            raise ConfigError(f"--scores {name}: there is no folder {folder}")
        folders[name] = Path(folder)
    return folders


def read_scores(folders: Mapping[str, Path], annotations: Sequence[Annotation]) -> BroughtScores:
    """The scores of every method for all of these videos."""
    return {
        name: {a.video: _video_scores(name, folder, a) for a in annotations}
        for name, folder in folders.items()
    }


def _video_scores(name: str, folder: Path, annotation: Annotation) -> FloatArray:
    paths = [folder / f"{annotation.video}{suffix}" for suffix in (".npy", ".csv")]
    path = next((path for path in paths if path.exists()), None)
    if path is None:
        raise DataError(
            f"--scores {name}: {folder} has neither {paths[0].name} nor {paths[1].name}; every "
            "audited video needs one"
        )
    score_T = _read_npy(path) if path.suffix == ".npy" else _read_csv(path, annotation)
    if score_T.shape != (annotation.num_frames,):
        raise DataError(
            f"{path}: {len(score_T):,} scores, but video {annotation.video!r} has "
            f"{annotation.num_frames:,} sampled frames; write one score a frame, or a CSV with the "
            "columns seconds and score"
        )
    labelled_T = annotation.labels_T != UNLABELLED
    if not np.isfinite(score_T[labelled_T]).all():
        frame = int(np.flatnonzero(labelled_T & ~np.isfinite(score_T))[0])
        raise DataError(f"{path}: the score of frame {frame} is not a number")
    return np.where(labelled_T, score_T, np.nan)


def _read_npy(path: Path) -> FloatArray:
    try:
        return np.load(path, allow_pickle=False).astype(np.float64).reshape(-1)
    except (OSError, ValueError) as error:
        raise DataError(f"{path} is not a .npy file of numbers, as np.save writes it") from error


def _read_csv(path: Path, annotation: Annotation) -> FloatArray:
    try:
        table = pd.read_csv(path)
        columns = {name: table[name].to_numpy(np.float64) for name in table.columns}
    except (OSError, ValueError) as error:
        raise DataError(f"{path} is not a CSV of numbers: {error}") from error
    if "score" not in columns or not len(table):
        names = ", ".join(map(str, table.columns))
        raise DataError(f"{path} needs a column `score` with numbers, but has {names or 'none'}")
    if "seconds" not in columns:
        return columns["score"]
    order = np.argsort(columns["seconds"], kind="stable")
    seconds, score = columns["seconds"][order], columns["score"][order]
    middles = (seconds[1:] + seconds[:-1]) / 2
    nearest_T: FloatArray = score[np.searchsorted(middles, annotation.source_times_T)]
    return nearest_T
