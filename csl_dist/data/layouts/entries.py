"""Label files with one entry per line, a file a video: the manifest's, MS-TCN's, Cholec80's.

Corrected files are found at the place that `places` gives the original, or by its name where no
other label file has the same.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from csl_dist.data.dataset import Dataset
from csl_dist.data.documents.edits import Renaming
from csl_dist.data.layouts.layout import Edits
from csl_dist.data.layouts.places import found_at, places, put_bytes
from csl_dist.data.text import class_ids, read_lines
from csl_dist.data.tracks import EntryTrack
from csl_dist.errors import DataError
from csl_dist.storage.files import AnyPath
from csl_dist.storage.output import OutputFolder
from csl_dist.types import Video


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryForm:
    """How the lines of a label file look."""

    read: Callable[[str], list[str]]
    """The class name of every entry of a file."""
    text: Callable[[str, list[str]], str]
    """What a file says with other names in their place."""
    first_line: int = 1
    """Line number of the first entry."""


def read_names(path: str) -> list[str]:
    names = read_lines(path)
    if not names:
        raise DataError(f"{path} holds no labels")
    return names


def names_text(path: str, names: list[str]) -> str:
    return "\n".join(names) + "\n"


NAME_LINES = EntryForm(read=read_names, text=names_text)
"""A class name a line, and nothing else."""


@dataclass(frozen=True, slots=True)
class EntryTracks:
    """Reads a video's label file by the dataset's class names."""

    classes: tuple[str, ...]
    fps: float
    """Label entries per second, of videos that do not say so themselves."""
    form: EntryForm = NAME_LINES

    def names(self, video: Video) -> list[str]:
        """The class name of every entry, known or not."""
        return self.form.read(video.labels)

    def rate(self, video: Video) -> float:
        """Label entries per second."""
        return video.labels_fps or self.fps

    def __call__(self, video: Video) -> EntryTrack:
        names = self.names(video)
        ids_N = class_ids(names, self.classes, video.labels, first_line=self.form.first_line)
        return EntryTrack(ids_N, self.rate(video))


@dataclass(frozen=True, slots=True)
class EntryFiles:
    """The label files of a dataset."""

    folder: AnyPath
    """Of the dataset."""
    fps: float
    """Label entries per second, of videos that do not say so themselves."""
    form: EntryForm = NAME_LINES

    def corrected(self, classes: tuple[str, ...], videos: Sequence[Video], path: Path) -> Dataset:
        files = found_at({video.labels for video in videos}, self.folder, path)
        return Dataset(
            classes=classes,
            videos=tuple(
                replace(v, labels=str(files[v.labels])) for v in videos if v.labels in files
            ),
            read_track=EntryTracks(classes, self.fps, self.form),
        )

    def write(self, edits: Edits, out: OutputFolder) -> list[Path]:
        """Writes the files of changed videos alone."""
        originals = places({video.labels for video in edits.videos}, self.folder)
        changed: dict[Path, list[Video]] = {}
        for video in edits.videos:
            if video.id in edits.renamings:
                changed.setdefault(originals[video.labels], []).append(video)
        # All files are looked at before the first is written.
        made = [(out.file(place), self._text(own, edits)) for place, own in changed.items()]
        return [put_bytes(path, text.encode()) for path, text in made]

    def _text(self, videos: Sequence[Video], edits: Edits) -> str:
        """A label file with the changes to all videos that share it."""
        file = edits.file_of(videos[0])
        names = self.form.read(file)
        for video in videos:
            fps = video.labels_fps or self.fps
            # A sparser entry than frames stands for all frames until the next: its middle counts.
            shift = 0.0 if fps > 0.99 * edits.frame_rates[video.id] else 0.5
            names = renamed_entries(names, edits.renamings[video.id], fps=fps, shift=shift)
        return self.form.text(file, names)


def renamed_entries(
    names: list[str], renamings: Sequence[Renaming], *, fps: float, shift: float
) -> list[str]:
    """The class names of entries; entry i stands at `(i + shift) / fps` seconds."""
    names = list(names)
    for renaming in renamings:
        for i in range(len(names)):
            if renaming.start.middle <= (i + shift) / fps < renaming.stop.middle:
                names[i] = renaming.label
    return names
