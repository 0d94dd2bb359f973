"""Label files of one class name per entry: the manifest's, and MS-TCN's."""

from dataclasses import dataclass

from csl_dist.data.text import class_ids, read_lines
from csl_dist.data.tracks import EntryTrack
from csl_dist.errors import DataError
from csl_dist.types import Video


@dataclass(frozen=True, slots=True)
class NameTracks:
    """Reads a video's label file by the dataset's class names."""

    classes: tuple[str, ...]
    fps: float
    """Label entries per second, of videos that do not say so themselves."""

    def __call__(self, video: Video) -> EntryTrack:
        names = read_lines(video.labels)
        if not names:
            raise DataError(f"{video.labels} holds no labels")
        ids_N = class_ids(names, self.classes, video.labels)
        return EntryTrack(ids_N, video.labels_fps or self.fps)
