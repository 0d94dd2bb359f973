"""Findings that nobody wants to see again: whole kinds, and single ones that were found right."""

import csv
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from csl_dist.errors import ConfigError, DataError
from csl_dist.lint.findings import Finding, Kind
from csl_dist.lint.run import LintResult

PLACE = ("kind", "video", "annotator", "label", "start")
"""Columns that tell a finding from others; sentences have counts, which change with the dataset."""
Place = tuple[str, str, str, str, float | None]


def without_kinds(result: LintResult, kinds: Sequence[str]) -> LintResult:
    """A result without findings of these kinds."""
    for name in kinds:
        if name not in list(Kind):
            raise ConfigError(f"--ignore {name}: expected one of {', '.join(Kind)}")
    return _only(result, lambda finding: finding.kind not in kinds)


def without_accepted(result: LintResult, path: Path) -> LintResult:
    """A result without the findings that a CSV of an earlier lint lists."""
    known = _read(path)
    return _only(result, lambda finding: _place(finding) not in known)


def _only(result: LintResult, keep: Callable[[Finding], bool]) -> LintResult:
    kept = (tuple(filter(keep, found)) for found in (result.findings, result.nearly))
    return replace(result, findings=next(kept), nearly=next(kept))


def _place(finding: Finding) -> Place:
    start = finding.start_seconds
    return (
        finding.kind.value,
        finding.video or "",
        finding.annotator or "",
        finding.label or "",
        None if start is None else round(start, 4),
    )


def _read(path: Path) -> set[Place]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file)
            missing = [name for name in PLACE if name not in (rows.fieldnames or ())]
            if missing:
                raise DataError(
                    f"{path} lacks the column {missing[0]}; expected a file that --csv has written"
                )
            return {_row_place(path, row) for row in rows}
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise DataError(
            f"can't read the accepted findings {path}: {reason}; give a file that --csv has written"
        ) from error


def _row_place(path: Path, row: dict[str, str]) -> Place:
    kind, video, annotator, label, start = (row[name] or "" for name in PLACE)
    try:
        return kind, video, annotator, label, float(start) if start else None
    except ValueError as error:
        raise DataError(f"{path}: start is {start!r}, expected seconds") from error
