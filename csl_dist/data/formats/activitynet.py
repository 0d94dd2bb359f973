"""ActivityNet's JSON: `{"database": {id: {"annotations": [{"segment": [s, e], "label"}]}}}`."""

import math
from typing import Any, ClassVar

from csl_dist.data.documents.document import About, Parsed
from csl_dist.data.documents.json_text import JsonText, Node
from csl_dist.data.documents.listed import ListedDocument, Place
from csl_dist.data.documents.text import SourceText, decoded
from csl_dist.data.documents.times import Times
from csl_dist.errors import DataError


class ActivityNetFormat:
    """One file for all videos."""

    name: ClassVar[str] = "activitynet"
    patterns: ClassVar[tuple[str, ...]] = ("*.json",)
    needs_rate: ClassVar[bool] = False

    def looks_like(self, head: str) -> bool:
        return '"database"' in head

    def parse(self, data: bytes, file: str, config: Any) -> "ActivityNetDocument":
        return ActivityNetDocument(decoded(data, file))


FORMAT = ActivityNetFormat()


class ActivityNetDocument(ListedDocument):
    """Segments of all videos that have any; test sets are published without."""

    def __init__(self, source: SourceText):
        super().__init__(JsonText(source), Times(unit="s"))
        root = self.json.root
        database = root.value.get("database") if isinstance(root.value, dict) else None
        if not isinstance(database, dict) or not database:
            raise DataError(f'{source.file}: expected {{"database": {{id: …}}}}')
        self.database: dict[str, dict[str, Any]] = database
        parsed = Parsed(source.file)
        for member in root["database"].members or ():
            self._read(str(member.name), member.node, parsed)
        self.segments = parsed.segments

    def _read(self, video: str, entry: Node, parsed: Parsed) -> None:
        if not isinstance(entry.value, dict):
            raise DataError(
                f"{self.json.where(entry)}: video {video!r} is {entry.value!r:.60}, not an object"
            )
        length = entry.value.get("duration")
        self.about[video] = About(
            seconds=float(length) if isinstance(length, int | float) else None
        )
        annotations = entry.get("annotations")
        for number, member in enumerate((annotations and annotations.members) or ()):
            one = member.node
            value = one.value
            try:
                start, stop = (_finite(seconds) for seconds in value["segment"])
                label = str(value["label"])
            except (KeyError, TypeError, ValueError) as error:
                raise DataError(
                    f"{self.json.where(one)}: video {video!r}, annotation {number}: expected "
                    f'{{"segment": [start, end], "label": name}}, got {value} ({error})'
                ) from None
            parsed.add(
                video=video,
                start_seconds=start,
                stop_seconds=stop,
                label=label,
                line=self.json.line(one),
            )
            assert annotations is not None
            self.places.append(
                Place(annotations, member, one["segment"][0], one["segment"][1], one["label"])
            )

    def label_values(self, place: Place, label: str) -> dict[Node, Any]:
        values: dict[Node, Any] = {place.label: label}
        number = place.member.node.get("label_id")
        known = self.label_ids()
        if number is not None and label in known:
            values[number] = known[label]
        return values

    def label_ids(self) -> dict[str, int]:
        """Numbers of labels, where the file has any."""
        return {
            segment.label: place.member.node.value["label_id"]
            for segment, place in zip(self.segments, self.places, strict=True)
            if "label_id" in place.member.node.value
        }


def _finite(seconds: Any) -> float:
    if not math.isfinite(float(seconds)):
        raise ValueError(f"{seconds} is no time")
    return float(seconds)
