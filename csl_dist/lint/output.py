"""Findings as JSON and CSV, and the table of segments as a file."""

import csv
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from csl_dist.errors import DataError
from csl_dist.lint.findings import Finding, grouped
from csl_dist.lint.run import LintResult
from csl_dist.lint.segments import COLUMNS as SEGMENT_COLUMNS
from csl_dist.storage.spreadsheet import as_text

COLUMNS = (
    *("kind", "video", "annotator", "file", "start", "stop", "label", "score", "probability"),
    "sentence",
)

FINDINGS_BEGIN = ",".join(COLUMNS).encode()
PAGE_BEGINS = b"<!doctype html>"


def segments_begin(path: Path | None) -> bytes:
    """How a file of segments begins: Parquet where its name says so, else CSV."""
    is_parquet = path is not None and path.suffix.lower() == ".parquet"
    return b"PAR1" if is_parquet else ",".join(SEGMENT_COLUMNS).encode()


def as_json(result: LintResult) -> dict[str, Any]:
    """Everything but the table of segments, as JSON-like data."""
    return {
        "title": result.title,
        "unit": result.unit.value,
        "videos": result.num_videos,
        "files": result.num_files,
        "hours": round(result.hours, 4) if result.hours else None,
        "counts": {kind.value: len(found) for kind, found in grouped(result.findings).items()},
        "notes": list(result.notes),
        "findings": [
            {**_row(finding), "evidence": finding.evidence} for finding in result.findings
        ],
        "agreement": {
            "pairs": [asdict(pair) for pair in result.agreement.pairs],
            "classes": [asdict(one) for one in result.agreement.classes],
        },
    }


def _row(finding: Finding) -> dict[str, Any]:
    return {
        "kind": finding.kind.value,
        "video": finding.video,
        "annotator": finding.annotator,
        "file": finding.file,
        "start": _rounded(finding.start_seconds),
        "stop": _rounded(finding.stop_seconds),
        "label": finding.label,
        "score": _rounded(finding.score),
        "probability": _rounded(finding.probability),
        "sentence": finding.sentence,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def write_findings(result: LintResult, path: Path) -> None:
    """A CSV with one line a finding."""

    def write() -> None:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=COLUMNS)
            writer.writeheader()
            for finding in result.findings:
                writer.writerow({key: as_text(value) for key, value in _row(finding).items()})

    _writing(path, write)


def write_segments(result: LintResult, path: Path) -> None:
    """The table of segments, as Parquet where the name says so, else as CSV."""

    def write() -> None:
        if path.suffix.lower() != ".parquet":
            result.segments.write_csv(path)
            return
        import pandas as pd  # slow to import, and only Parquet needs it

        from csl_dist.storage.tables import table_bytes

        path.write_bytes(table_bytes(pd.DataFrame(result.segments.columns())))

    _writing(path, write)


def write_page(result: LintResult, path: Path) -> None:
    """The HTML page."""
    from csl_dist.lint.page.page import lint_page

    page = lint_page(result, title=result.title or "these videos")
    _writing(path, lambda: path.write_text(page, encoding="utf-8"))


def _writing(path: Path, write: Callable[[], object]) -> None:
    try:
        write()
    except OSError as error:
        raise DataError(f"can't write {path}: {error.strerror or error}") from error
