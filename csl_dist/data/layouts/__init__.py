"""Datasets on disk, one object per layout.

`LAYOUTS` is the list of them. What opens a dataset, reads corrected labels or writes them asks the
layout that the config names, and adds what is the same for all.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from csl_dist.config import DatasetConfig
from csl_dist.data.dataset import (
    FORM_ERRORS,
    Dataset,
    Fold,
    KnownSegment,
    first_of,
    read_errors,
)
from csl_dist.data.documents.edits import Edge, Renaming
from csl_dist.data.formats import (
    anvil,
    boris,
    captaincook4d,
    cvat,
    elan,
    label_studio,
    via,
)
from csl_dist.data.formats.format import Format
from csl_dist.data.formats.tables import ASSEMBLY101, EPIC_KITCHENS, JIGSAWS, SEGMENTS
from csl_dist.data.layouts import activitynet, cholec80, egoper, lerobot, manifest, mstcn
from csl_dist.data.layouts.documents import DocumentLayout
from csl_dist.data.layouts.layout import Edits, Layout
from csl_dist.data.media.sources import MediaNeed
from csl_dist.data.splits import with_patterns, with_splits
from csl_dist.errors import DataError
from csl_dist.storage.files import forget_listings
from csl_dist.storage.output import OutputFolder
from csl_dist.types import Video

__all__ = [
    "LAYOUTS",
    "Dataset",
    "Edge",
    "Fold",
    "KnownSegment",
    "Renaming",
    "corrected_labels",
    "listed_in",
    "open_dataset",
    "read_dataset",
    "read_errors",
    "read_labelled",
    "write_renamed",
]

FOLDERS: tuple[Layout[Any], ...] = (
    manifest.LAYOUT,
    cholec80.LAYOUT,
    egoper.LAYOUT,
    mstcn.LAYOUT,
    activitynet.LAYOUT,
    lerobot.LAYOUT,
)
"""Layouts with folders or lists of their own."""
DOCUMENTS: tuple[Format, ...] = (
    elan.FORMAT,
    boris.FORMAT,
    label_studio.FORMAT,
    cvat.FORMAT,
    via.FORMAT,
    anvil.FORMAT,
    EPIC_KITCHENS,
    captaincook4d.FORMAT,
    ASSEMBLY101,
    JIGSAWS,
    SEGMENTS,
)
"""Formats of label documents, which lie in any folder."""
LAYOUTS: dict[str, Layout[Any]] = {
    layout.name: layout for layout in (*FOLDERS, *map(DocumentLayout, DOCUMENTS))
}


def read_dataset(config: DatasetConfig, *, media: MediaNeed = "required") -> Dataset:
    """The dataset that a config names, with the problems in its list of videos.

    Where media are optional, a video without any is listed with an empty source: its labels can
    be read, its frames can't.
    """
    forget_listings()
    try:
        dataset = LAYOUTS[config.layout].open(config, media)
    except FORM_ERRORS as error:
        raise _of_another_form(config.path, config, error) from error
    return with_splits(dataset, config)


def read_labelled(config: DatasetConfig) -> Dataset:
    """All videos that have labels, whatever they are used for, and several files of one video."""
    forget_listings()
    try:
        dataset = LAYOUTS[config.layout].open(config, "optional")
    except FORM_ERRORS as error:
        raise _of_another_form(config.path, config, error) from error
    return replace(dataset, videos=with_patterns(dataset.videos, config))


def open_dataset(config: DatasetConfig) -> Dataset:
    """The same, refused where the list of videos has problems."""
    dataset = read_dataset(config)
    if dataset.problems:
        raise first_of(dataset.problems)
    if not dataset.videos:
        raise DataError(f"{config.path} holds no videos")
    return dataset


def corrected_labels(
    config: DatasetConfig, classes: tuple[str, ...], videos: Sequence[Video], path: Path
) -> Dataset:
    """The videos whose labels are at a path, as a dataset that reads them from there.

    The dataset itself is not needed. What is given may hold the labels of some videos only.
    `videos` are all that the run scores, with the dataset's own label files.
    """
    if not path.exists():
        raise DataError(f"there are no labels at {path}")
    try:
        dataset = LAYOUTS[config.layout].label_files(config).corrected(classes, videos, path)
    except FORM_ERRORS as error:
        raise _of_another_form(str(path), config, error) from error
    if not dataset.videos:
        names = ", ".join(Path(video.labels).name for video in videos[:3])
        raise DataError(
            f"{path} has labels of none of the audited videos; expected files such as {names}, "
            f"in the {config.layout} layout"
        )
    return replace(dataset, length_mismatch=config.length_mismatch)


def write_renamed(
    config: DatasetConfig,
    videos: Sequence[Video],
    renamings: Mapping[str, Sequence[Renaming]],
    *,
    frame_rates: Mapping[str, float],
    out: Path,
    current: Mapping[str, str] | None = None,
    inputs: Iterable[str] = (),
) -> list[Path]:
    """Writes label files with spans renamed below `out`, in the dataset's own layout.

    Layouts with one label file a video get the files of changed videos alone, layouts with one
    file for all get that file whole; `corrected_labels` reads them. `videos`, `renamings`,
    `frame_rates` and `current` are as in `Edits`; `inputs` are further files that must not be
    overwritten, beside those that the videos are read from.
    """
    edits = Edits(
        videos=videos, renamings=renamings, frame_rates=frame_rates, current=current or {}
    )
    own = (file for video in videos for file in (video.labels, video.source) if file)
    folder = OutputFolder(out, [*listed_in(config), *own, *edits.current.values(), *inputs])
    try:
        return LAYOUTS[config.layout].label_files(config).write(edits, folder)
    except OSError as error:
        raise DataError(f"can't write to {out}: {error.strerror or error}") from error


def listed_in(config: DatasetConfig) -> list[str]:
    """Files that a dataset section names itself, and lists beside its labels.

    Of its folder these are what lies directly in it, such as `manifest.csv`, and in `splits`.
    """
    named = [path for path in (config.path, config.truth) if path is not None]
    folders = [Path(path) for path in named if Path(path).is_dir()]
    lists = (file for folder in folders for part in ("*", "splits/*") for file in folder.glob(part))
    return [
        *(path for path in named if not Path(path).is_dir()),
        *(str(file) for file in lists if file.is_file()),
    ]


def _of_another_form(path: str, config: DatasetConfig, error: Exception) -> DataError:
    return DataError(
        f"{path} does not have the form of the {config.layout} layout "
        f"({type(error).__name__}: {error})"
    )
