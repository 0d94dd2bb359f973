"""The route that hands out what `csl export` writes."""

import shutil
import tempfile
from pathlib import Path
from typing import Annotated
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
from fastapi import APIRouter, Query, Response
from fastapi.responses import FileResponse
from starlette.background import BackgroundTask

from csl_dist.audit.reader import Audit
from csl_dist.errors import DataError, NotReadyError
from csl_dist.export import FORMATS, export
from csl_dist.service.audits import AuditPool
from csl_dist.service.forms import Revision
from csl_dist.service.settings import MAX_EXPORT_BYTES
from csl_dist.types import Split

SUFFIXES = {
    "label-studio": ".json",
    "activitynet": ".json",
    "csv": ".csv",
    "parquet": ".parquet",
    "hdf5": ".h5",
}
"""Of formats that are one file; the others are folders."""


def export_routes(pool: AuditPool) -> APIRouter:
    """Downloads, below /api/audits."""
    routes = APIRouter(prefix="/api/audits", tags=["audits"])

    @routes.get("/{audit}/export", response_class=FileResponse)
    def download_export(
        audit: str,
        format: Annotated[str, Query(max_length=40, examples=["csv"])],
        revision: Revision = None,
    ) -> Response:
        """Flags for other tools, as `csl export` writes them; several files come as a zip."""
        if format not in FORMATS:
            raise DataError(f"format is {format!r}, expected one of {', '.join(FORMATS)}")
        return pool.read(audit, revision, lambda opened: _download(opened.audit, audit, format))

    return routes


def _download(audit: Audit, audit_id: str, name: str) -> Response:
    """Writes an export to a temporary folder, which goes when the file was sent."""
    if not audit.has_flags:
        raise NotReadyError(f"audit {audit_id!r} has no flags yet")
    if name == "hdf5":
        _require_room(audit)
    folder = Path(tempfile.mkdtemp(prefix="csl-export-"))
    try:
        export(audit, name, folder / "made" / f"{audit_id}-{name}{SUFFIXES.get(name, '')}")
        path = _one_file(folder / "made", folder / f"{audit_id}-{name}.zip")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return FileResponse(
        path,
        media_type="application/octet-stream",
        filename=path.name,
        background=BackgroundTask(shutil.rmtree, folder, ignore_errors=True),
    )


def _one_file(made: Path, archive: Path) -> Path:
    """The file that was written; several of them, or those of a folder, as an archive."""
    first, *others = sorted(made.iterdir())
    if not others and first.is_file():
        return first
    inside = made if others else first
    with ZipFile(archive, "w", ZIP_DEFLATED) as packed:
        for file in sorted(inside.rglob("*")):
            # Links to videos stay out: whoever owns the run has those.
            if file.is_file() and not file.is_symlink():
                packed.write(file, file.relative_to(inside))
    return archive


def _require_room(audit: Audit) -> None:
    num_bytes = 0
    for video in audit.held_out_videos():
        if video.split is Split.AUDIT:
            for scorer in audit.scorers:
                shape = audit.log_probabilities(video.id, scorer=scorer).shape
                num_bytes += 2 * int(np.prod(shape))
        if num_bytes > MAX_EXPORT_BYTES:
            raise DataError(
                f"the trajectories take more than {MAX_EXPORT_BYTES >> 20} MiB; write them with "
                "`csl export --format hdf5` where the run is"
            )
