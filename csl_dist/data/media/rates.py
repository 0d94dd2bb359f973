"""Rates that label files do not tell: of the frames that they count, of features beside them.

Labels are read without a decoder or Zarr, so that what needs these is imported by what uses it.
"""

from collections.abc import Mapping
from pathlib import PurePosixPath

import numpy as np

from csl_dist.data.media.sources import MediaFinder
from csl_dist.storage.files import AnyPath
from csl_dist.storage.requests import at_once
from csl_dist.types import frame_seconds

FEATURE_RATES = (
    *(0.2, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 12.5),
    *(15.0, 20.0, 24.0, 25.0, 30.0, 50.0, 60.0, 100.0, 120.0),
)
"""How many features a second people extract or record."""
FILES_LOOKED_AT = 40


def guessed_label_rate(path: AnyPath) -> tuple[float, str]:
    """The rate of the first video beside label files, for formats that count its frames."""
    from csl_dist.data.media.video import VideoFile

    finder = MediaFinder(path if path.is_dir() else path.parent)
    first = finder.first_video()
    if first is None:
        return 25.0, "a guess: the frames in a second that its frame numbers count"
    interval = frame_seconds(VideoFile(first).times(), default=0.04)
    return round(1 / interval, 4), f"of {PurePosixPath(first).name}; the frames its numbers count"


def guessed_features_rate(
    files: Mapping[str, str], last_seconds: Mapping[str, float]
) -> tuple[float, str] | None:
    """The highest usual rate at which no video's labels go on after its features, and why.

    `files` and the end of the last label by video. None where the files do not tell which of their
    axes are frames: that whose size differs from file to file.
    """
    from csl_dist.data.feature_files import feature_shape

    videos = list(files)[:FILES_LOOKED_AT]
    shapes_N2 = np.array(at_once(lambda video: feature_shape(files[video]), videos))
    is_width = [len(set(sizes)) == 1 for sizes in shapes_N2.T.tolist()]
    if sum(is_width) != 1:
        return None
    frames_N = shapes_N2[:, is_width.index(False)]
    last_N = np.array([last_seconds[video] for video in videos])
    fitting = [r for r in FEATURE_RATES if ((frames_N + 1) / r >= last_N).all()]
    if not fitting:
        return None
    share = float(np.median(last_N / (frames_N / fitting[-1])))
    return fitting[-1], f"a guess: labels then end at {share:.0%} of the features' length"
