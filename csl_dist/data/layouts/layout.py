"""What a layout is: one object that recognises a folder, drafts a config, reads and writes labels.

A new layout is a module with such an object, its line in `LAYOUTS`, and its section in
`config/dataset.py`. One whose labels are a file of segments needs a format instead
(`data/formats`): `DocumentLayout` does the rest.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, Protocol, TypeVar

from csl_dist.data.dataset import Dataset
from csl_dist.data.documents.edits import Renaming
from csl_dist.data.media.sources import MediaNeed
from csl_dist.errors import DataError
from csl_dist.storage.files import AnyPath
from csl_dist.storage.output import OutputFolder
from csl_dist.types import Video

DEFAULT_FOLDS = 5

Parts = tuple[tuple[str, ...], ...]
"""Groups of patterns; of each group, one must match in a folder."""

Section = TypeVar("Section", contravariant=True)


class Layout(Protocol[Section]):
    """One way in which datasets lie on disk; `Section` is its class of the dataset section."""

    @property
    def name(self) -> str: ...

    def missing(self, path: AnyPath, need: MediaNeed = "required") -> list[str]:
        """What a folder or file lacks to be of this layout; nothing where it is."""
        ...

    def draft(self, path: AnyPath, out: Path) -> "Draft":
        """What `csl init` writes for a folder; may write a manifest beside the config `out`."""
        ...

    def open(self, config: Section, need: MediaNeed) -> Dataset:
        """The videos, and what is wrong with their list; label files are read later."""
        ...

    def label_files(self, config: Section) -> "LabelFiles":
        """The form in which labels are read and written without the rest of the dataset."""
        ...


class LabelFiles(Protocol):
    """Labels of a dataset, at another place than the dataset's own."""

    def corrected(self, classes: tuple[str, ...], videos: Sequence[Video], path: Path) -> Dataset:
        """Those videos whose labels are at a path, as a dataset that reads them from there."""
        ...

    def write(self, edits: "Edits", out: OutputFolder) -> list[Path]:
        """Writes labels with spans renamed, and returns the files."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A config in the making."""

    layout: str
    dataset: dict[str, object]
    """Keys of the dataset section, in order."""
    notes: dict[str, str]
    """What stands behind a key as a comment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits:
    """Spans to rename, and in which files they are now."""

    videos: Sequence[Video]
    """All that the run scores, with the dataset's own label files."""
    renamings: Mapping[str, Sequence[Renaming]]
    """By video, in their order; a later one wins where two overlap."""
    frame_rates: Mapping[str, float]
    """Of the frames that are used, by video."""
    current: Mapping[str, str]
    """Files that hold a video's labels now, where these are not the dataset's own."""

    def file_of(self, video: Video) -> str:
        return self.current.get(video.id, video.labels)


class FolderLayout:
    """What layouts with folders of their own share: patterns tell whether a folder is theirs."""

    name: ClassVar[str]
    label_parts: ClassVar[Parts]
    """What a folder of this layout holds beside its media; of each group, one."""
    media_parts: ClassVar[Parts] = ()

    def missing(self, path: AnyPath, need: MediaNeed = "required") -> list[str]:
        names = {PurePosixPath(one).name for group in self.label_parts for one in group}
        if path.is_file() and path.name not in names:
            return [" or ".join(patterns) for patterns in self.label_parts]
        folder = path if path.is_dir() else path.parent
        parts = self.label_parts + (self.media_parts if need == "required" else ())
        return [
            " or ".join(patterns)
            for patterns in parts
            if not any(next(folder.glob(pattern), None) for pattern in patterns)
        ]


def refuse_missing(layout: Layout[Any], path: AnyPath) -> None:
    """Raises DataError where a folder, or that of a file, is not of the layout."""
    missing = layout.missing(path)
    if missing:
        raise DataError(f"{path} is not in the {layout.name} layout: it lacks {', '.join(missing)}")
