"""AuditRecord: `audit.json`, what an audit was made from and what decided on its flags.

A reader has neither the dataset nor the models, and the config of the run may have changed since:
it takes everything from here.
"""

from dataclasses import asdict, dataclass, field
from typing import Any

from pydantic import TypeAdapter

from csl_dist.config import RunConfig, config_as_dict, parse_config
from csl_dist.score.settings import AuditSettings
from csl_dist.score.store import Versions
from csl_dist.types import ErrorKind, PlantedError, Span

FILES = "files"
"""Key of the digests of an audit's other files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """How much of the trajectories a preliminary audit rests on."""

    checkpoints: int
    """That all videos were run through."""
    of: int
    asked: str
    """Fingerprint of labels, settings and trainings: the same in all sweeps of one prediction."""
    settled: bool
    """Whether the top of the list is that of the sweep before."""

    def sentence(self) -> str:
        settled = ", by which the top of the list is settled" * self.settled
        return f"rests on {self.checkpoints:,} of {self.of:,} checkpoints{settled}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """How the flags of an audit came about."""

    made_from: str
    """Fingerprint of labels, classes, trajectories and settings: all that decides on the audit."""
    created: float
    """Seconds since 1970."""
    config: RunConfig
    """Of the run when the audit was made."""
    settings: AuditSettings
    classes: tuple[str, ...]
    scores: Versions
    """Which version of its scores each video has."""
    thresholds: dict[str, float]
    """The score above which a frame is flagged, by audit video; empty by the rule `edits`."""
    scales: tuple[tuple[float, float], tuple[float, float]] | None
    """Mean and deviation of the temporal and the framewise score; None without an ensemble."""
    known_errors: tuple[PlantedError, ...] = ()
    skipped: dict[str, str] = field(default_factory=dict)
    """Why checkpoints are not part of the trajectories, by scorer, fold and epoch."""
    labels: dict[str, str] = field(default_factory=dict)
    """Where the corrected labels of a video came from; the dataset's own where it is not here."""
    corrects: int | None = None
    """The audit whose labels this one corrected; None for an audit of the dataset's own labels."""
    sweep: Sweep | None = None
    """None for an audit that rests on all checkpoints."""
    rule_version: int | None = None
    """None where it was not kept yet."""
    num_reviewed: int | None = None
    """Spans on which decisions of reviewers went in; None where it was not kept yet."""

    def as_json(self) -> dict[str, Any]:
        content = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return content | {
            "config": config_as_dict(self.config),
            "settings": _SETTINGS.dump_python(self.settings, mode="json"),
            "known_errors": [asdict(error) for error in self.known_errors],
            "sweep": self.sweep and asdict(self.sweep),
        }

    @classmethod
    def from_json(cls, content: dict[str, Any], where: str) -> "AuditRecord":
        """What `audit.json` says; it also has the digests of the audit's other files."""
        content.pop(FILES, None)
        scales = content["scales"]
        return cls(
            **content
            | {
                "config": parse_config(content["config"], where=where),
                "settings": _SETTINGS.validate_python(content["settings"]),
                "classes": tuple(content["classes"]),
                "scales": scales and (tuple(scales[0]), tuple(scales[1])),
                "known_errors": tuple(_known_error(error) for error in content["known_errors"]),
                "sweep": (sweep := content.get("sweep")) and Sweep(**sweep),
            }
        )


_SETTINGS = TypeAdapter(AuditSettings)


def _known_error(content: dict[str, Any]) -> PlantedError:
    kind, span = ErrorKind(content["kind"]), Span(**content["span"])
    return PlantedError(**content | {"kind": kind, "span": span})
