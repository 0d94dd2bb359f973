"""The route that downloads what `csl export` writes."""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated
from zipfile import ZIP_DEFLATED, ZipFile

from fastapi import APIRouter, Query, Response
from fastapi.responses import FileResponse
from starlette.background import BackgroundTask

from csl_dist.audit.reader import Audit
from csl_dist.cluster.leftovers import own_folder
from csl_dist.errors import DataError, NotReadyError
from csl_dist.export import Format, export, format_of
from csl_dist.review.labels import corrections, write_corrected
from csl_dist.service.audits import OpenAudit
from csl_dist.service.context import ServiceContext
from csl_dist.service.forms import Revision
from csl_dist.service.media import may_read_labels, readable_folders
from csl_dist.service.settings import MAX_EXPORT_BYTES, ServiceSettings


def export_routes(context: ServiceContext) -> APIRouter:
    """Downloads, below /api/audits."""
    routes = APIRouter(prefix="/api/audits", tags=["audits"])
    pool = context.pool

    @routes.get("/{audit}/export", response_class=FileResponse)
    def download_export(
        audit: str,
        format: Annotated[str, Query(max_length=40, examples=["csv"])],
        revision: Revision = None,
    ) -> Response:
        """Flags for other tools, as `csl export` writes them; several files are sent as a zip."""
        wanted = format_of(format)
        return pool.read(audit, revision, lambda opened: _download(opened.audit, audit, wanted))

    @routes.get("/{audit}/corrected", response_class=FileResponse)
    def download_corrected(audit: str, revision: Revision = None) -> Response:
        """Labels as reviewers corrected them, in the dataset's own layout, as a zip."""
        return pool.read(
            audit, revision, lambda opened: _corrected(opened, audit, context.settings)
        )

    return routes


def _corrected(opened: OpenAudit, audit_id: str, settings: ServiceSettings) -> Response:
    decisions = opened.decisions.by_span()
    folders = readable_folders(opened.audit.config.dataset, settings)
    for video in corrections(decisions):
        if not may_read_labels(file := opened.video(video).labels, folders):
            raise DataError(
                f"the labels of video {video!r} ({file}) are no label file below the folder of the "
                "dataset; start the service with --media and their folder, or run `csl reviews "
                "export` on the machine of the run"
            )

    def write(folder: Path) -> Path:
        write_corrected(opened.audit, decisions, folder / "labels", store=opened.reviews)
        return _packed(folder / "labels", folder / f"{audit_id}-corrected.zip")

    return _sent(write)


def _download(audit: Audit, audit_id: str, wanted: Format) -> Response:
    if not audit.has_flags:
        raise NotReadyError(f"audit {audit_id!r} has no flags yet")
    _check_size(audit, wanted)
    name = f"{audit_id}-{wanted.name}"

    def write(folder: Path) -> Path:
        (folder / "written").mkdir()
        export(audit, wanted.name, folder / "written" / f"{name}{wanted.suffix}")
        return _one_file(folder / "written", folder / f"{name}.zip")

    return _sent(write)


def _sent(write: Callable[[Path], Path]) -> Response:
    """A file that is written to a temporary folder, as a download; the folder is deleted then."""
    folder = Path(tempfile.mkdtemp(prefix=own_folder("export")))
    try:
        path = write(folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return FileResponse(
        path,
        media_type="application/octet-stream",
        filename=path.name,
        background=BackgroundTask(shutil.rmtree, folder, ignore_errors=True),
    )


def _one_file(written: Path, archive: Path) -> Path:
    """The file that was written; several files, or a folder, as an archive."""
    first, *others = sorted(written.iterdir())
    if not others and first.is_file():
        return first
    return _packed(written if others else first, archive)


def _packed(inside: Path, archive: Path) -> Path:
    with ZipFile(archive, "w", ZIP_DEFLATED) as packed:
        for file in sorted(inside.rglob("*")):
            # Without links to videos: the owner of the run has these.
            if file.is_file() and not file.is_symlink():
                packed.write(file, file.relative_to(inside))
    return archive


def _check_size(audit: Audit, wanted: Format) -> None:
    """Refuses a large export as soon as it is known to be too large."""
    num_bytes = 0
    for more in wanted.video_bytes(audit):
        num_bytes += more
        if num_bytes > MAX_EXPORT_BYTES:
            raise DataError(
                f"the export is larger than {MAX_EXPORT_BYTES >> 20} MiB; write it with "
                f"`csl export --format {wanted.name}` on the machine of the run"
            )
