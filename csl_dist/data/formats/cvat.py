"""CVAT 1.1: tracks of a video (frames from 0, a box that is `outside` ends one), or tags on frames.

A track is a segment from its first box that is inside to the first that is outside. Tags of one
label on frames that follow each other are one segment.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, ClassVar
from xml.sax.saxutils import quoteattr

from csl_dist.data.documents.document import About, Parsed
from csl_dist.data.documents.edits import Change
from csl_dist.data.documents.segment import Segment
from csl_dist.data.documents.text import Patch, SourceText, decoded
from csl_dist.data.documents.times import Times
from csl_dist.data.documents.xml_text import Element, XmlText
from csl_dist.data.formats.format import stem_of
from csl_dist.errors import DataError

EXPORT_NAME = "annotations"
"""CVAT calls every export so; then the folder says which it is."""
TRACKS, TAGS = "tracks", "tags"


class CvatFormat:
    """One file a video."""

    name: ClassVar[str] = "cvat"
    patterns: ClassVar[tuple[str, ...]] = ("*.xml",)
    needs_rate: ClassVar[bool] = True

    def looks_like(self, head: str) -> bool:
        return "<annotations" in head

    def parse(self, data: bytes, file: str, config: Any) -> "CvatDocument":
        if config.labels_fps is None:
            raise DataError(
                f"{file} counts frames and does not say how many there are in a second; set "
                "dataset.labels_fps to the rate of the video"
            )
        return CvatDocument(decoded(data, file), Times(unit="frames", fps=config.labels_fps))


FORMAT = CvatFormat()


@dataclass(frozen=True, slots=True)
class Tagged:
    """Tags that are one segment, by frame."""

    tags: dict[int, Element]


class CvatDocument:
    """Tracks and tags as segments."""

    def __init__(self, source: SourceText, times: Times):
        self.xml = XmlText(source)
        self.times = times
        self.notes: list[str] = []
        self._places: list[Element | Tagged] = []
        root = self.xml.root
        if root.tag != "annotations":
            raise DataError(f"{source.file} is no export of CVAT: it begins with <{root.tag}>")
        texts = {one.tag: one.text.strip() for one in root.walk() if not one.children}
        step = texts.get("frame_filter", "").partition("step=")[2]
        self.step = int(step) if step.isdigit() else 1
        video, media = self._video(texts)
        self.about = {video: About(media=media)}
        parsed = Parsed(source.file)
        for track in root.find_all("track"):
            self._read_track(track, parsed, video)
        self._images = {self._frame(image, "id"): image for image in root.find_all("image")}
        self._read_tags(parsed, video)
        self.segments = parsed.segments
        if not self.segments:
            raise DataError(f"{source.file} has neither a <track> nor a <tag>")

    def _video(self, texts: dict[str, str]) -> tuple[str, str | None]:
        if texts.get("source"):
            return stem_of(texts["source"]), texts["source"]
        path = PurePosixPath(self.xml.source.file)
        return (path.parent.name if path.stem == EXPORT_NAME else path.stem), None

    def _frame(self, element: Element, name: str) -> int:
        text = self.xml.attribute(element, name)
        if not text.isdigit():
            raise DataError(
                f"{self.xml.where(element)}: {name} is {text!r}, expected a frame number"
            )
        return int(text)

    def _read_track(self, track: Element, parsed: Parsed, video: str) -> None:
        shapes = [(self._frame(one, "frame"), one) for one in track.children]
        inside = [frame for frame, one in shapes if not _outside(one)]
        if not inside:
            raise DataError(f"{self.xml.where(track)}: the track has no shape that is inside")
        start = min(inside)
        ends = [frame for frame, one in shapes if _outside(one) and frame > start]
        stop = min(ends) if ends else max(inside) + self.step
        if any(frame > stop for frame in inside):
            raise DataError(
                f"{self.xml.where(track)}: the track is outside at frame {stop} and comes back "
                "later; split it into two tracks"
            )
        self._add(
            parsed, video, start, stop, self.xml.attribute(track, "label"), track.line, TRACKS
        )
        self._places.append(track)

    def _read_tags(self, parsed: Parsed, video: str) -> None:
        runs: list[tuple[str, dict[int, Element]]] = []
        last: dict[str, dict[int, Element]] = {}
        for frame in sorted(self._images):
            now: dict[str, dict[int, Element]] = {}
            for tag in self._images[frame].find_all("tag"):
                label = self.xml.attribute(tag, "label")
                if label not in last:
                    runs.append((label, {}))
                    last[label] = runs[-1][1]
                last[label][frame] = tag
                now[label] = last[label]
            last = now if frame + self.step in self._images else {}
        for label, tags in runs:
            line = next(iter(tags.values())).line
            self._add(parsed, video, min(tags), max(tags) + self.step, label, line, TAGS)
            self._places.append(Tagged(tags))

    def _add(
        self, parsed: Parsed, video: str, start: int, stop: int, label: str, line: int, track: str
    ) -> None:
        parsed.add(
            video=video,
            start_seconds=self.times.start(str(start)),
            stop_seconds=self.times.stop(str(stop)),
            label=label,
            line=line,
            track=track,
        )

    def _frames(self, segment: Segment) -> range:
        start = int(self.times.start_number(segment.start_seconds))
        stop = int(self.times.stop_number(segment.stop_seconds))
        return range(start, stop, self.step)

    def edited(self, changes: Sequence[Change]) -> bytes:
        patches: list[Patch] = []
        ids = [self._frame(one, "id") for one in self.xml.root.find_all("track")]
        next_id = max(ids, default=-1) + 1
        labels: dict[int, str | None] = {}
        tags: dict[int, Element] = {}
        for change in changes:
            place = self._places[change.old.key]
            if isinstance(place, Tagged):
                tags |= place.tags
                if not change.added:
                    labels = dict.fromkeys(place.tags) | labels
                if change.new is not None:
                    labels |= dict.fromkeys(self._frames(change.new), change.new.label)
                    labels = {n: v for n, v in labels.items() if n in self._images}
            elif change.new is None:
                patches.append(self.xml.without(place))
            elif change.added:
                own = self._track_patches(place, change.old, change.new)
                own.append(self.xml.set_attribute(place, "id", str(next_id)))
                next_id += 1
                patches.append(Patch(place.stop, place.stop, self.xml.copy(place, own)))
            else:
                patches += self._track_patches(place, change.old, change.new)
        patches += [
            p
            for frame, label in labels.items()
            for p in self._tag_patches(frame, tags.get(frame), label)
        ]
        return self.xml.source.patched(patches)

    def _track_patches(self, track: Element, old: Segment, new: Segment) -> list[Patch]:
        patches = []
        if new.label != old.label:
            patches.append(self.xml.set_attribute(track, "label", new.label))
        frames = self._frames(new)
        if self._frames(old) != frames:
            patches.append(self._shapes_patch(track, frames))
        return patches

    def _shapes_patch(self, track: Element, frames: range) -> Patch:
        """Shapes of other frames: those that stay as they are, one at each new end."""
        inside = {self._frame(s, "frame"): s for s in track.children if not _outside(s)}
        kept = {frame: self._shape(s) for frame, s in inside.items() if frame in frames}
        for frame, outside in ((frames.start, "0"), (frames.stop, "1")):
            near = min(inside, key=lambda own: abs(own - frame))
            if frame not in kept:
                kept[frame] = self._shape(
                    inside[near], frame=str(frame), outside=outside, keyframe="1"
                )
        start, _ = self.xml.with_blank(track.children[0])
        text = "".join(kept[frame] for frame in sorted(kept))
        return Patch(start, track.children[-1].stop, text)

    def _shape(self, shape: Element, **values: str) -> str:
        own = [
            self.xml.set_attribute(shape, name, value)
            for name, value in values.items()
            if name in shape.attributes
        ]
        return self.xml.copy(shape, own)

    def _tag_patches(self, frame: int, tag: Element | None, label: str | None) -> list[Patch]:
        """Another label on one frame."""
        if tag is not None and label is None:
            return [self.xml.without(tag)]
        if tag is not None and label is not None:
            same = tag.attributes["label"] == label
            return [] if same else [self.xml.set_attribute(tag, "label", label)]
        if label is None:
            return []
        image = self._images[frame]
        text = f'<tag label={quoteattr(label)} source="manual"/>'
        if image.stop == image.opened:
            opening = self.xml.text[image.start : image.opened - 2].rstrip()
            return [Patch(image.start, image.stop, f"{opening}>{text}</image>")]
        return [Patch(image.closing, image.closing, text)]


def _outside(shape: Element) -> bool:
    return shape.attributes.get("outside", "0") == "1"
