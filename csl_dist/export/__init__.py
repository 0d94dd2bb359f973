"""Flags for other tools: one module per format. A new format is a module and its line below."""

import os
from pathlib import Path

from csl_dist.audit.reader import Audit
from csl_dist.errors import ConfigError
from csl_dist.export.activitynet import ACTIVITYNET
from csl_dist.export.cvat import CVAT
from csl_dist.export.fiftyone import FIFTYONE
from csl_dist.export.format import Format
from csl_dist.export.hdf5 import HDF5
from csl_dist.export.label_studio import LABEL_STUDIO
from csl_dist.export.tables import CSV, PARQUET
from csl_dist.storage.output import require_parent

__all__ = ["FORMATS", "Format", "export", "format_of"]

FORMATS: tuple[Format, ...] = (
    LABEL_STUDIO,
    FIFTYONE,
    CVAT,
    ACTIVITYNET,
    CSV,
    PARQUET,
    HDF5,
)


def format_of(name: str) -> Format:
    """The format of a name; ConfigError if there is none."""
    found = next((one for one in FORMATS if one.name == name), None)
    if found is None:
        names = ", ".join(one.name for one in FORMATS)
        raise ConfigError(f"format is {name!r}, expected one of {names}")
    return found


def export(audit: Audit, form: str, out: Path) -> str:
    """Writes one format; returns a sentence that says what was written."""
    wanted = format_of(form)
    require_parent(out)
    if not wanted.suffix and out.suffix == wanted.inside:
        raise ConfigError(
            f"{form} is a folder with {wanted.inside} inside, and {out} reads like a file; give a "
            f"folder, such as {out.with_suffix('')}"
        )
    folder, name = (out.parent, out.name) if wanted.suffix else (out, "")
    try:
        folder.mkdir(exist_ok=True)
        return wanted.write(audit, audit.output_folder(folder), name)
    except OSError as error:
        # HDF5 puts pages of text where others have the system's few words.
        reason = os.strerror(error.errno) if error.errno else " ".join(str(error).split())
        raise ConfigError(f"can't write {out}: {reason}") from error
