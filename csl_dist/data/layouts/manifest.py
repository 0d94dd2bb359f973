"""The `manifest` layout: a CSV that lists videos and their label files.

Columns: id, source (video file, frame folder, or feature file), labels (a text file with one class
name per entry, `-` being unlabelled), split (train, val or audit; may be left out with
folds), fps (label entries per second), and optionally source_fps (of frame folders and features;
else fps), group, procedure and annotator. Several rows may name one video with an annotator each;
lint compares them, everything else wants one. Paths are relative to the CSV. Classes are the lines
of `classes.txt` beside it, or else all names in the label files, sorted.
"""

import csv
import io
from pathlib import Path
from typing import ClassVar

from csl_dist.config import ManifestConfig
from csl_dist.data.dataset import Dataset
from csl_dist.data.layouts.entries import EntryFiles, EntryTracks
from csl_dist.data.layouts.layout import DEFAULT_FOLDS, Draft, FolderLayout, Parts
from csl_dist.data.layouts.pairing import paired_rows
from csl_dist.data.media.sources import MediaNeed, media_of
from csl_dist.data.text import UNLABELLED_NAMES, read_lines
from csl_dist.errors import DataError
from csl_dist.storage.files import AnyPath, joined, place, read_bytes
from csl_dist.types import Media, Split, Video


class ManifestLayout(FolderLayout):
    """Videos and label files that a CSV lists."""

    name: ClassVar[str] = "manifest"
    label_parts: ClassVar[Parts] = (("manifest.csv",),)

    def missing(self, path: AnyPath, need: MediaNeed = "required") -> list[str]:
        if path.suffix.lower() != ".csv" or not path.is_file():
            return super().missing(path, need)
        header = read_bytes(path).partition(b"\n")[0].decode("utf-8-sig", errors="replace")
        columns = {name.strip().strip('"') for name in header.split(",")}
        return [f"the column {name}" for name in ("id", "labels", "fps") if name not in columns]

    def draft(self, path: AnyPath, out: Path, *, fps: float | None = None) -> Draft:
        """Of a manifest that is there, or of one made of files of the same name.

        `fps` are label entries per second, which a manifest that is there says itself.
        """
        given = path if path.is_file() else path / "manifest.csv"
        if given.exists():
            if fps is not None:
                raise DataError(
                    f"{given} says the rate of labels in its column fps; leave --fps out"
                )
            return Draft(layout=self.name, dataset={"path": given}, notes={})
        if not isinstance(path, Path):
            raise DataError(
                f"{path} has no manifest.csv; write one with columns id, source, labels, fps"
            )
        rows = paired_rows(path, out.parent, fps=fps)
        manifest = out.with_suffix(".manifest.csv")
        if manifest.exists():
            raise DataError(f"{manifest} exists already; remove it, or give another --out")
        with manifest.open("w", newline="", encoding="utf-8") as file:
            columns = ["id", "source", "labels", "fps"]
            writer = csv.DictWriter(file, fieldnames=columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        return Draft(
            layout=self.name,
            dataset={"path": manifest, "folds": min(DEFAULT_FOLDS, len(rows))},
            notes={"folds": "or add a column `split` with train, val and audit, and remove this"},
        )

    def open(self, config: ManifestConfig, need: MediaNeed) -> Dataset:
        path = place(config.path)
        if path.is_dir():
            path = path / "manifest.csv"
        videos: list[Video] = []
        problems: list[str] = []
        for line, row in _read_rows(path, need):
            try:
                videos.append(_read_row(row, f"{path}:{line}", path.parent, need))
            except DataError as error:
                problems.append(str(error))
        classes = _read_classes(path.parent / "classes.txt", videos)
        return Dataset(
            classes=classes,
            videos=tuple(videos),
            read_track=EntryTracks(classes, 0.0),
            problems=tuple(problems),
        )

    def label_files(self, config: ManifestConfig) -> EntryFiles:
        path = place(config.path)
        # The dataset may be gone; then the name tells whether the path was that of the CSV.
        is_file = path.is_file() or (bool(path.suffix) and not path.is_dir())
        folder = path.parent if is_file else path
        return EntryFiles(folder, config.labels_fps or config.counted_fps)


LAYOUT = ManifestLayout()


def _read_rows(path: AnyPath, need: MediaNeed) -> list[tuple[int, dict[str, str]]]:
    columns = ("id", "source", "labels", "fps") if need == "required" else ("id", "labels", "fps")
    try:
        text = read_bytes(path).decode("utf-8-sig")
        reader = csv.DictReader(io.StringIO(text, newline=""))
        missing = [name for name in columns if name not in (reader.fieldnames or ())]
        if missing:
            raise DataError(f"{path}: column {', '.join(missing)} is missing")
        rows = [(reader.line_num, row) for row in reader]
    except (csv.Error, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not a CSV file in UTF-8: {error}") from error
    if not rows:
        raise DataError(f"{path} lists no videos")
    return rows


def _read_row(row: dict[str, str], where: str, folder: AnyPath, need: MediaNeed) -> Video:
    row = {name: (value or "").strip() for name, value in row.items() if name is not None}
    for name in ("id", "source", "labels") if need == "required" else ("id", "labels"):
        if not row[name]:
            raise DataError(f"{where}: {name} is empty")
    split = row.get("split") or Split.AUDIT
    if split not in list(Split):
        raise DataError(f"{where}: split is {split!r}, expected {', '.join(Split)}")
    fps = _rate(row["fps"], "fps", where)
    source = joined(folder, row["source"]) if row.get("source") else ""
    media = media_of(source) if source else Media.VIDEO
    source_fps = _rate(row["source_fps"], "source_fps", where) if row.get("source_fps") else fps
    return Video(
        id=row["id"],
        split=Split(split),
        source=source,
        labels=joined(folder, row["labels"]),
        media=media,
        source_fps=0.0 if media is Media.VIDEO else source_fps,
        labels_fps=fps,
        group=row.get("group") or None,
        procedure=row.get("procedure") or None,
        annotator=row.get("annotator") or None,
    )


def _rate(text: str, name: str, where: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate < float("inf"):
        raise DataError(f"{where}: {name} is {text!r}, expected a number above 0")
    return rate


def _read_classes(path: AnyPath, videos: list[Video]) -> tuple[str, ...]:
    if path.exists():
        return tuple(line for line in read_lines(path) if line)
    names: set[str] = set()
    for video in videos:
        if place(video.labels).exists():
            names.update(read_lines(video.labels))
    return tuple(sorted(names.difference(UNLABELLED_NAMES)))
