"""What lint tells: findings, each with its place, its score and a sentence with counts."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from csl_dist.words import clock, counted


class Kind(StrEnum):
    """Kinds of finding, in the order in which they are shown."""

    ORDER = "order"
    MISSING = "missing"
    REPEATED = "repeated"
    INSERTED = "inserted"
    DURATION = "duration"
    FLICKER = "flicker"
    GAP = "gap"
    OVERLAP = "overlap"
    BEYOND_END = "beyond_end"
    EMPTY = "empty"
    UNLABELLED = "unlabelled"
    UNREADABLE = "unreadable"
    CLASS_NAMES = "class_names"
    DUPLICATE = "duplicate"
    MIXED_UP = "mixed_up"
    SOLE_USER = "sole_user"
    DEFINITION = "definition"


TITLES = {
    Kind.ORDER: "Steps out of order",
    Kind.MISSING: "Missing steps",
    Kind.REPEATED: "Repeated steps",
    Kind.INSERTED: "Steps where none are expected",
    Kind.DURATION: "Odd durations",
    Kind.FLICKER: "Flicker",
    Kind.GAP: "Gaps",
    Kind.OVERLAP: "Overlaps",
    Kind.BEYOND_END: "Steps outside of the video",
    Kind.EMPTY: "Steps without duration",
    Kind.UNLABELLED: "Unlabelled time",
    Kind.UNREADABLE: "Labels that can't be read",
    Kind.CLASS_NAMES: "Class names",
    Kind.DUPLICATE: "Label files that are the same, or in part",
    Kind.MIXED_UP: "Label files that fit another video",
    Kind.SOLE_USER: "Classes that one person alone uses",
    Kind.DEFINITION: "Definitions that differ",
}


class TimeUnit(StrEnum):
    """What times are counted in."""

    SECONDS = "seconds"
    ENTRIES = "entries"
    """Of label files whose rate is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing to look at."""

    kind: Kind
    video: str | None
    """None for a finding about the whole dataset."""
    file: str | None = None
    """The label file; one file may hold the labels of many videos."""
    annotator: str | None = None
    start_seconds: float | None = None
    stop_seconds: float | None = None
    label: str | None = None
    score: float
    """Higher is more suspicious; comparable within a kind only."""
    probability: float | None = None
    """Of an error, measured on planted errors; None where that can't be measured."""
    sentence: str
    evidence: dict[str, float | int | str] = field(default_factory=dict)
    """Figures behind the sentence."""


def grouped(findings: Iterable[Finding]) -> dict[Kind, list[Finding]]:
    """Findings by kind in the order of kinds, worst first."""
    by_kind: dict[Kind, list[Finding]] = {}
    for finding in findings:
        by_kind.setdefault(finding.kind, []).append(finding)
    return {kind: sorted(by_kind[kind], key=_worst_first) for kind in Kind if kind in by_kind}


def _worst_first(finding: Finding) -> tuple[float, float, str, float]:
    return (
        -(finding.probability or 0.0),
        -finding.score,
        finding.video or "",
        finding.start_seconds or 0.0,
    )


def place_text(finding: Finding, unit: TimeUnit = TimeUnit.SECONDS) -> str:
    """`1:05 to 1:12`, or nothing for a finding without a place."""
    if finding.start_seconds is None:
        return ""
    start = time_text(finding.start_seconds, unit)
    stop = start if finding.stop_seconds is None else time_text(finding.stop_seconds, unit)
    return start if stop == start else f"{start} to {stop}"


def time_text(seconds: float, unit: TimeUnit) -> str:
    """Minutes and seconds, or the number of an entry."""
    return f"{round(seconds):,}" if unit is TimeUnit.ENTRIES else clock(seconds)


def length_text(seconds: float, unit: TimeUnit = TimeUnit.SECONDS) -> str:
    """A duration as people say it: `0.12 s`, `2.1 s`, `48 s`, `13 min`, or `31 entries`."""
    if unit is TimeUnit.ENTRIES:
        return counted(round(seconds), "entry", "entries")
    size = abs(seconds)
    if size < 1:
        return f"{seconds:.2f} s"
    if size < 10:
        return f"{seconds:.1f} s"
    return f"{seconds:.0f} s" if size < 300 else f"{seconds / 60:.0f} min"
