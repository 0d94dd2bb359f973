"""Findings for other tools: one module per format, each a function from an audit to files."""

from collections.abc import Callable
from pathlib import Path

from csl_dist.audit.reader import Audit
from csl_dist.errors import ConfigError
from csl_dist.export.activitynet import write_activitynet
from csl_dist.export.cvat import write_cvat
from csl_dist.export.fiftyone import write_fiftyone
from csl_dist.export.hdf5 import write_hdf5
from csl_dist.export.label_studio import write_label_studio
from csl_dist.export.tables import write_csv, write_parquet

__all__ = ["FORMATS", "export"]

Writer = Callable[[Audit, Path], str]
"""Writes an audit's findings to a path and says in words what it wrote."""

FORMATS: dict[str, Writer] = {
    "label-studio": write_label_studio,
    "fiftyone": write_fiftyone,
    "cvat": write_cvat,
    "activitynet": write_activitynet,
    "csv": write_csv,
    "parquet": write_parquet,
    "hdf5": write_hdf5,
}


def export(audit: Audit, name: str, out: Path) -> str:
    """Writes one format; returns what was written, in words."""
    if name not in FORMATS:
        raise ConfigError(f"--format is {name!r}, expected one of {', '.join(FORMATS)}")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        return FORMATS[name](audit, out)
    except OSError as error:
        raise ConfigError(f"can't write {out}: {error.strerror or error}") from error
