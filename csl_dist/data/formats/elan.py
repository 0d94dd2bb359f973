"""ELAN: .eaf, XML with time slots in milliseconds and tiers of annotations.

A tier is a track. Slots without a time lie evenly between their neighbours of the same tier. An
annotation that refers to another has the times of that one, if it is the only one in its tier that
does; where several share one, they have no times, and are left out.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

from csl_dist.data.documents.document import About, Parsed
from csl_dist.data.documents.edits import Change
from csl_dist.data.documents.segment import Segment
from csl_dist.data.documents.text import Patch, SourceText, decoded
from csl_dist.data.documents.times import Times
from csl_dist.data.documents.xml_text import Element, XmlText
from csl_dist.data.formats.format import stem_of
from csl_dist.errors import DataError

VIDEO_TYPES = ("video/", "image/")


class ElanFormat:
    """One file a video; its tiers are tracks."""

    name: ClassVar[str] = "elan"
    patterns: ClassVar[tuple[str, ...]] = ("*.eaf",)
    needs_rate: ClassVar[bool] = False

    def looks_like(self, head: str) -> bool:
        return "<ANNOTATION_DOCUMENT" in head

    def parse(self, data: bytes, file: str, config: Any) -> "ElanDocument":
        return ElanDocument(decoded(data, file))


FORMAT = ElanFormat()


class ElanDocument:
    """All annotations with times of their own."""

    def __init__(self, source: SourceText):
        self.xml = XmlText(source)
        self.times = Times(unit="ms")
        self.notes: list[str] = []
        root = self.xml.root
        order = root.find("TIME_ORDER")
        if root.tag != "ANNOTATION_DOCUMENT" or order is None:
            raise DataError(f"{source.file} is no ELAN file: it has no <TIME_ORDER>")
        header = root.find("HEADER")
        units = header.attributes.get("TIME_UNITS", "milliseconds") if header else "milliseconds"
        if units != "milliseconds":
            raise DataError(
                f"{source.file}: times are in {units}; save it with ELAN, which writes milliseconds"
            )
        self._order = order
        self._slots = self._read_slots(order)
        video, media = self._video(header)
        self.about = {video: About(media=media)}
        self._annotations: list[tuple[Element, Element]] = []
        """<ANNOTATION> of each segment, and what is in it."""
        self._spans: dict[str, tuple[float, float]] = {}
        """Milliseconds of annotations, by their id."""
        tiers = root.find_all("TIER")
        for tier in tiers:
            self._read_times(tier)
        parsed = Parsed(source.file)
        for tier in tiers:
            self._read_tier(tier, parsed, video)
        self.segments = parsed.segments
        if not self.segments:
            raise DataError(f"{source.file} has no annotation with times in any tier")

    def _read_slots(self, order: Element) -> dict[str, int | None]:
        """Milliseconds by id; None where ELAN leaves the time open."""
        slots: dict[str, int | None] = {}
        for slot in order.find_all("TIME_SLOT"):
            name = self.xml.attribute(slot, "TIME_SLOT_ID")
            value = slot.attributes.get("TIME_VALUE")
            if name in slots:
                raise DataError(f"{self.xml.where(slot)}: time slot {name} is there twice")
            if value is not None and not value.strip().isdigit():
                raise DataError(
                    f"{self.xml.where(slot)}: TIME_VALUE is {value!r}, expected milliseconds"
                )
            slots[name] = None if value is None else int(value)
        return slots

    def _video(self, header: Element | None) -> tuple[str, str | None]:
        media = header.find_all("MEDIA_DESCRIPTOR") if header else []
        named = [
            url
            for one in media
            if one.attributes.get("MIME_TYPE", "video/").startswith(VIDEO_TYPES)
            and (url := one.attributes.get("RELATIVE_MEDIA_URL") or one.attributes.get("MEDIA_URL"))
        ]
        file = self.xml.source.file
        return (stem_of(named[0]), named[0]) if named else (stem_of(file), None)

    def _read_times(self, tier: Element) -> None:
        inner = [one for annotation in tier.find_all("ANNOTATION") for one in annotation.children]
        alignable = [one for one in inner if one.tag == "ALIGNABLE_ANNOTATION"]
        times = self._open_times(alignable)
        for one in alignable:
            span = times[self._slot(one, 1)], times[self._slot(one, 2)]
            self._spans[self.xml.attribute(one, "ANNOTATION_ID")] = span

    def _read_tier(self, tier: Element, parsed: Parsed, video: str) -> None:
        name = self.xml.attribute(tier, "TIER_ID")
        pairs = [(a, inner) for a in tier.find_all("ANNOTATION") for inner in a.children]
        num_sharing = Counter(one.attributes.get("ANNOTATION_REF") for _, one in pairs)
        left_out = 0
        for annotation, one in pairs:
            own = self.xml.attribute(one, "ANNOTATION_ID")
            parent = one.attributes.get("ANNOTATION_REF")
            if parent is not None:
                if num_sharing[parent] > 1 or parent not in self._spans:
                    left_out += 1
                    continue
                self._spans[own] = self._spans[parent]
            value = one.find("ANNOTATION_VALUE")
            if not (value and value.text.strip()):
                continue  # ELAN makes empty annotations for people to fill in
            start, stop = self._spans[own]
            parsed.add(
                video=video,
                start_seconds=start / 1000,
                stop_seconds=stop / 1000,
                label=value.text,
                line=one.line,
                track=name,
                annotator=tier.attributes.get("ANNOTATOR") or None,
            )
            self._annotations.append((annotation, one))
        if left_out:
            self.notes.append(
                f"{self.xml.source.file}: tier {name!r}: {left_out:,} annotations share what they "
                "refer to, so that they have no times of their own; they are left out"
            )

    def _slot(self, element: Element, number: int) -> str:
        name = self.xml.attribute(element, f"TIME_SLOT_REF{number}")
        if name not in self._slots:
            raise DataError(f"{self.xml.where(element)}: there is no time slot {name}")
        return name

    def _open_times(self, alignable: Sequence[Element]) -> dict[str, float]:
        """Milliseconds of a tier's slots; those without lie evenly between their neighbours."""
        chain: list[str] = []
        for element in alignable:
            for number in (1, 2):
                name = self._slot(element, number)
                if not chain or chain[-1] != name:
                    chain.append(name)
        times = {name: float(ms) for name in chain if (ms := self._slots[name]) is not None}
        at = 0
        while at < len(chain):
            if chain[at] in times:
                at += 1
                continue
            end = next((n for n in range(at, len(chain)) if chain[n] in times), None)
            if end is None or at == 0:
                raise DataError(
                    f"{self.xml.source.file}: time slot {chain[at]} has no time, and none "
                    f"{'after' if at else 'before'} it to lie between"
                )
            low, high = times[chain[at - 1]], times[chain[end]]
            for n in range(at, end):
                times[chain[n]] = low + (high - low) * (n - at + 1) / (end - at + 1)
            at = end
        return times

    def edited(self, changes: Sequence[Change]) -> bytes:
        patches: list[Patch] = []
        new_slots: list[int] = []
        numbers = [int(n) for s in self._slots if (n := s.lstrip("ts")).isdigit()]
        first_slot = max(numbers, default=0) + 1

        def slot(seconds: float) -> str:
            """One of its own: those of the file may be shared by several annotations."""
            new_slots.append(round(seconds * 1000))
            return f"ts{first_slot + len(new_slots) - 1}"

        next_id = self._next_id()
        removed: dict[int, Element] = {}
        for change in changes:
            annotation, element = self._annotations[change.old.key]
            if change.new is None:
                removed |= {one.start: one for one in self._with_dependents(annotation, element)}
                continue
            own = self._own_patches(element, change.old, change.new, slot)
            if change.added:
                own.append(self.xml.set_attribute(element, "ANNOTATION_ID", f"a{next_id}"))
                next_id += 1
                text = self.xml.copy(annotation, own)
                patches.append(Patch(annotation.stop, annotation.stop, text))
            else:
                patches += own
        patches += [self.xml.without(annotation) for annotation in removed.values()]
        patches += self._slot_patches(first_slot, new_slots)
        patches += self._last_used(next_id)
        return self.xml.source.patched(patches)

    def _own_patches(
        self, element: Element, old: Segment, new: Segment, slot: Callable[[float], str]
    ) -> list[Patch]:
        patches = []
        times = (old.start_seconds, new.start_seconds), (old.stop_seconds, new.stop_seconds)
        for number, (before, after) in enumerate(times, start=1):
            if before != after and element.tag == "REF_ANNOTATION":
                raise DataError(
                    f"{self.xml.where(element)}: tier {old.track!r} takes its times from the tier "
                    "that it refers to, so that no part of a segment can be renamed; use ELAN"
                )
            if before != after:
                name = f"TIME_SLOT_REF{number}"
                patches.append(self.xml.set_attribute(element, name, slot(after)))
        if new.label != old.label:
            value = element.find("ANNOTATION_VALUE")
            assert value is not None
            patches.append(self.xml.set_text(value, new.label))
        return patches

    def _with_dependents(self, annotation: Element, element: Element) -> Iterator[Element]:
        """An annotation, and those that refer to it: without it they would point to nothing."""
        yield annotation
        own = element.attributes["ANNOTATION_ID"]
        for tier in self.xml.root.find_all("TIER"):
            for other in tier.find_all("ANNOTATION"):
                for inner in other.children:
                    if inner.attributes.get("ANNOTATION_REF") == own:
                        yield from self._with_dependents(other, inner)

    def _slot_patches(self, first: int, new: Sequence[int]) -> list[Patch]:
        """New slots among the old ones; ELAN wants them in the order of time."""
        made: dict[int, str] = {}
        elements = self._order.find_all("TIME_SLOT")
        for number, milliseconds in sorted(enumerate(new), key=lambda pair: pair[1]):
            before = [
                one
                for one in elements
                if (ms := self._slots[one.attributes["TIME_SLOT_ID"]]) is not None
                and ms <= milliseconds
            ]
            template = before[-1] if before else elements[0]
            start, _ = self.xml.with_blank(template)
            text = self.xml.text[start : template.start]
            text += f'<TIME_SLOT TIME_SLOT_ID="ts{first + number}" TIME_VALUE="{milliseconds}"/>'
            place = template.stop if before else start
            made[place] = made.get(place, "") + text
        return [Patch(place, place, text) for place, text in made.items()]

    def _next_id(self) -> int:
        ids = [e.attributes.get("ANNOTATION_ID", "")[1:] for e in self.xml.root.walk()]
        noted = [one.text.strip() for one in self._noted_ids()]
        return max((int(i) for i in [*ids, *noted] if i.isdigit()), default=0) + 1

    def _noted_ids(self) -> list[Element]:
        """Where ELAN notes the last id that it gave."""
        header = self.xml.root.find("HEADER")
        properties = header.find_all("PROPERTY") if header else []
        return [p for p in properties if p.attributes.get("NAME") == "lastUsedAnnotationId"]

    def _last_used(self, next_id: int) -> list[Patch]:
        if next_id == self._next_id():
            return []
        return [self.xml.set_text(one, str(next_id - 1)) for one in self._noted_ids()]
