"""CaptainCook4D: one JSON file of recordings, steps in seconds; a step left out has times of -1.

`error_annotations.json` is a list of recordings with `step_annotations`,
`complete_step_annotations.json` a dict of them with `steps`. A recipe is a procedure, a person a
group.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from csl_dist.data.documents.document import About, Parsed
from csl_dist.data.documents.json_text import JsonText, Node
from csl_dist.data.documents.listed import ListedDocument, Place
from csl_dist.data.documents.text import SourceText, decoded
from csl_dist.data.documents.times import Times
from csl_dist.errors import DataError

LISTS = ("step_annotations", "steps")


class CaptainCook4DFormat:
    """One file for all recordings."""

    name: ClassVar[str] = "captaincook4d"
    patterns: ClassVar[tuple[str, ...]] = ("*annotations.json",)
    needs_rate: ClassVar[bool] = False

    def looks_like(self, head: str) -> bool:
        return '"recording_id"' in head and '"step_id"' in head

    def parse(self, data: bytes, file: str, config: Any) -> "CaptainCook4DDocument":
        return CaptainCook4DDocument(decoded(data, file))


FORMAT = CaptainCook4DFormat()


class CaptainCook4DDocument(ListedDocument):
    """Steps that were done."""

    def __init__(self, source: SourceText):
        super().__init__(JsonText(source), Times(unit="s"))
        parsed = Parsed(source.file)
        num_omitted = 0
        for recording in self._recordings():
            num_omitted += self._read(recording, parsed)
        self.segments: Sequence[Any] = parsed.segments
        if num_omitted:
            self.notes.append(
                f"{source.file}: {num_omitted:,} steps that were left out have no times"
            )
        if not self.segments:
            raise DataError(f"{source.file} has no step with times")

    def _recordings(self) -> list[Node]:
        root = self.json.root
        if not isinstance(root.value, list | dict):
            raise DataError(f"{self.json.source.file}: expected recordings, got {root.value!r:.60}")
        return list(root)

    def _read(self, recording: Node, parsed: Parsed) -> int:
        value = recording.value
        name = next((n for n in LISTS if isinstance(value, dict) and n in value), None)
        if name is None or "recording_id" not in value or not isinstance(value[name], list):
            raise DataError(
                f"{self.json.where(recording)}: expected a recording with recording_id and "
                f"{' or '.join(LISTS)}"
            )
        video = str(value["recording_id"])
        self.about.setdefault(video, About(media=None))
        person = value.get("person_id")
        procedure = value.get("activity_name") or value.get("activity_id")
        num_omitted = 0
        for member in recording[name].members or ():
            step = member.node
            if (
                not isinstance(step.value, dict)
                or not {"start_time", "end_time", "description"} <= step.value.keys()
            ):
                raise DataError(
                    f"{self.json.where(step)}: expected a step with start_time, end_time and "
                    f"description, got {step.value!r:.80}"
                )
            line = self.json.line(step)
            start = parsed.seconds(self.times.start, step.value["start_time"], "start_time", line)
            stop = parsed.seconds(self.times.stop, step.value["end_time"], "end_time", line)
            if start < 0 and stop < 0:
                num_omitted += 1
                continue
            parsed.add(
                video=video,
                start_seconds=start,
                stop_seconds=stop,
                label=str(step.value["description"]),
                line=line,
                procedure=None if procedure is None else str(procedure),
                group=None if person is None else f"person {person}",
            )
            self.places.append(
                Place(
                    recording[name],
                    member,
                    step["start_time"],
                    step["end_time"],
                    step["description"],
                )
            )
        return num_omitted

    def label_values(self, place: Place, label: str) -> dict[Node, Any]:
        """The description, and the number that goes with it."""
        known = {
            segment.label: place.member.node.value.get("step_id")
            for segment, place in zip(self.segments, self.places, strict=True)
        }
        values: dict[Node, Any] = {place.label: label}
        step_id = place.member.node.get("step_id")
        if step_id is not None and known.get(label) is not None:
            values[step_id] = known[label]
        return values
