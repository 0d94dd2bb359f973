"""What an audit found and was decided by: `flags.parquet`, and `audit.json` for later readers.

The threshold, the scorers behind it, and the known errors come from the dataset and the models;
a reader has neither.
"""

from dataclasses import asdict, dataclass, field
from typing import Any

import pandas as pd

from csl_dist.errors import NotReadyError
from csl_dist.storage.paths import RunPaths
from csl_dist.storage.tables import read_table
from csl_dist.types import ErrorKind, PlantedError, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """How the flags of an audit came about."""

    scorer: str
    """Whose score decides on flags: a scorer, or `ensemble`."""
    temporal: str
    """The scorer that explains flags."""
    framewise: str | None
    """The scorer that sees single frames only, if the run has one."""
    score: str
    """Name of the score that is compared with the threshold."""
    thresholds: dict[str, float]
    """The score above which a frame is flagged, by audit video."""
    scales: tuple[tuple[float, float], tuple[float, float]] | None
    """Mean and deviation of the temporal and the framewise score; None without an ensemble."""
    made_from: str
    """Fingerprint of the scores; changes whenever the audit does."""
    known_errors: tuple[PlantedError, ...] = ()
    labels: str | None = None
    """Where corrected labels came from; None for the dataset's own."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Why checkpoints are not part of the trajectories, by scorer, fold and epoch."""
    changed: tuple[str, ...] = ()
    """Videos whose labels were corrected, and whose scores this audit therefore holds itself."""


def put_record(paths: RunPaths, record: AuditRecord) -> None:
    paths.root.put_json_if_changed(paths.AUDIT, asdict(record))


def read_record(paths: RunPaths) -> AuditRecord:
    if not paths.root.exists(paths.AUDIT):
        raise NotReadyError(f"{paths.root.url} has no flags yet; run `csl audit`")
    content: dict[str, Any] = paths.root.read_json(paths.AUDIT)
    errors = tuple(_known_error(error) for error in content.pop("known_errors"))
    changed = tuple(content.pop("changed"))
    scales = content.pop("scales")
    if scales is not None:
        scales = (tuple(scales[0]), tuple(scales[1]))
    return AuditRecord(known_errors=errors, changed=changed, scales=scales, **content)


def read_flags(paths: RunPaths) -> pd.DataFrame:
    """The flags of an audit, worst first."""
    if not paths.root.exists(RunPaths.FLAGS):
        raise NotReadyError(f"{paths.root.url} has no flags yet; run `csl audit`")
    return read_table(paths.root, RunPaths.FLAGS)


def _known_error(content: dict[str, Any]) -> PlantedError:
    kind, span = ErrorKind(content["kind"]), Span(**content["span"])
    return PlantedError(**content | {"kind": kind, "span": span})
