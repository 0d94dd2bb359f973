"""Rows of a manifest for a folder that has none: media and label files of the same name."""

import os
from collections import Counter
from pathlib import Path

from csl_dist.data.media.sources import FEATURE_SUFFIXES, VIDEO_SUFFIXES, files_below
from csl_dist.data.text import read_lines
from csl_dist.errors import DataError
from csl_dist.types import frame_seconds

LABEL_SUFFIXES = (".txt", ".csv")
MEDIA_SUFFIXES = (*VIDEO_SUFFIXES, *(s for s in FEATURE_SUFFIXES if s not in LABEL_SUFFIXES))


def paired_rows(path: Path, base: Path, *, fps: float | None = None) -> list[dict[str, object]]:
    """One row per media file that has a text file of its name; paths are relative to `base`.

    `fps` are label entries per second, which are else told by the length of videos.
    """
    files = files_below(path)
    labels = {file.stem: file for file in files if file.suffix.lower() in LABEL_SUFFIXES}
    media = {file.stem: file for file in files if file.suffix.lower() in MEDIA_SUFFIXES}
    stems = Counter(file.stem for file in files if file.suffix.lower() in MEDIA_SUFFIXES)
    repeated = sorted(stem for stem, count in stems.items() if count > 1)
    if repeated:
        raise DataError(
            f"{path}: several media files are named {repeated[0]!r}; write a manifest.csv with "
            "columns id, source, labels, split, fps"
        )
    paired = sorted(set(labels) & set(media))
    if len(paired) < 2:
        raise DataError(
            f"{path}: found {len(media)} media and {len(labels)} label files, but only "
            f"{len(paired)} of them share a name, as in case01.mp4 and case01.txt; write a "
            "manifest.csv with columns id, source, labels, split, fps"
        )
    return [
        {
            "id": stem,
            "source": os.path.relpath(media[stem], base),
            "labels": os.path.relpath(labels[stem], base),
            "fps": round(fps or _label_rate(media[stem], labels[stem]), 4),
        }
        for stem in paired
    ]


def _label_rate(media: Path, labels: Path) -> float:
    """Label entries per second: their number over the video's length."""
    if media.suffix.lower() not in VIDEO_SUFFIXES:
        raise DataError(
            f"nothing says how many labels a second there are in files such as {labels}, beside "
            f"{media.name}; give --fps, such as --fps 30 for one a frame at 30 frames a second"
        )
    # Decoding is imported late, so that what reads labels alone starts quickly.
    from csl_dist.data.media.video import VideoFile

    times_T = VideoFile(str(media)).times()
    interval = frame_seconds(times_T, default=1.0)
    rate = len(read_lines(labels)) / (float(times_T[-1]) + interval)
    # An entry per frame is what most people have; rounding hides a few missing ones for `check`.
    native = 1 / interval
    if abs(rate - native) < 0.02 * native:
        return native
    whole = round(rate)
    return float(whole) if whole and abs(rate - whole) < 0.02 * whole else rate
