"""The label documents of a dataset: corrected ones are read, and changed ones written."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from csl_dist.data.dataset import Dataset
from csl_dist.data.documents.document import Document
from csl_dist.data.documents.edits import Change, changes_of
from csl_dist.data.documents.segment import Segment
from csl_dist.data.formats.format import Format
from csl_dist.data.layouts.label_sets import SegmentTracks, Who
from csl_dist.data.layouts.layout import Edits
from csl_dist.data.layouts.places import found_at, places, put_bytes
from csl_dist.errors import DataError
from csl_dist.storage.files import AnyPath, read_bytes
from csl_dist.storage.output import OutputFolder
from csl_dist.types import Video


@dataclass(frozen=True, slots=True)
class DocumentFiles:
    """The label documents of a dataset, read and written without the rest of it."""

    folder: AnyPath
    format: Format
    config: Any

    def corrected(self, classes: tuple[str, ...], videos: Sequence[Video], path: Path) -> Dataset:
        files = found_at({video.labels for video in videos}, self.folder, path)
        documents = {str(file): self._parsed(str(file)) for file in set(files.values())}
        segments: dict[Who, tuple[Segment, ...]] = {}
        found = []
        for video in videos:
            file = files.get(video.labels)
            own = self._own(documents[str(file)], video) if file else ()
            if own:
                segments[video.id, video.annotator] = own
                found.append(replace(video, labels=str(file)))
        tracks = SegmentTracks(classes, segments, {}, getattr(self.config, "overlap", "error"))
        return Dataset(classes=classes, videos=tuple(found), read_track=tracks)

    def write(self, edits: Edits, out: OutputFolder) -> list[Path]:
        """Writes the documents of changed videos alone."""
        originals = places({video.labels for video in edits.videos}, self.folder)
        by_file: dict[str, list[Video]] = {}
        for video in edits.videos:
            by_file.setdefault(video.labels, []).append(video)
        made = [
            (out.file(originals[file]), self._edited(own, edits))
            for file, own in by_file.items()
            if any(video.id in edits.renamings for video in own)
        ]
        return [put_bytes(path, data) for path, data in made]

    def _parsed(self, file: str) -> Document:
        return self.format.parse(read_bytes(file), file, self.config)

    def _own(self, document: Document, video: Video) -> tuple[Segment, ...]:
        """The segments that the audit reads of a video."""
        track = getattr(self.config, "track", None)
        return tuple(
            segment
            for segment in document.segments
            if segment.video == video.id
            and (track is None or segment.track == track)
            and (segment.annotator in (None, video.annotator))
        )

    def _edited(self, videos: Sequence[Video], edits: Edits) -> bytes:
        document = self._newest(videos, edits)
        changes: list[Change] = []
        for video in videos:
            renamings = edits.renamings.get(video.id)
            if renamings:
                changes += changes_of(self._own(document, video), renamings, document.times.snapped)
        return document.edited(changes)

    def _newest(self, videos: Sequence[Video], edits: Edits) -> Document:
        """The document that has the present labels of all videos that share it."""
        documents = {file: self._parsed(file) for file in {edits.file_of(v) for v in videos}}

        def said(document: Document, video: Video) -> list[tuple[float, float, str]]:
            own = self._own(document, video)
            return [(s.start_seconds, s.stop_seconds, s.label) for s in own]

        wanted = {video.id: said(documents[edits.file_of(video)], video) for video in videos}
        for document in documents.values():
            if all(said(document, video) == wanted[video.id] for video in videos):
                return document
        raise DataError(
            f"the labels of {len(videos)} videos come from {len(documents)} versions of one file "
            f"({', '.join(sorted(documents))}), none of which has them all; merge these first"
        )
